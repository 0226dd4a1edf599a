// `sinter check`: every kernel of a model on a device, beside the interpreter, and a table of what to avoid there.

import { stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SinterError } from '../../errors.ts';
import { check, setDevice, type DeviceCheck, type CheckedKernel, type Workarounds } from '../../index.ts';
import {
  text,
  texts,
  UsageError,
  wholeNumber,
  type Command,
  type Output,
  type OptionValues,
} from '../command.ts';
import { countedPrompt } from '../llm/generate.ts';
import { withModel } from '../llm/options.ts';
import { readDims } from '../program/dims.ts';
import { readInputs } from '../run/inputs.ts';
import { modelFile } from '../run/model.ts';
import { checkFolder } from '../run/tensor-files.ts';
import { device as openDevice } from '../../tensor/device.ts';

/** What `--json` prints. */
export interface CheckResult {
  readonly device: string;
  /** The adapter and its driver. */
  readonly description: string;
  readonly kernels: readonly CheckedKernel[];
  /** Kernels that were not compared, because they read what a wrong kernel wrote. */
  readonly skipped?: number;
  readonly workarounds?: Workarounds;
}

export const checkCommand: Command = {
  name: 'check',
  about: 'compare every kernel of a model on your device with the interpreter',
  details:
    'MODEL is an ONNX model, a module that exports a function and `inputs` (as `sinter explain` takes it), a GGUF file, a\n' +
    'folder of Hugging Face, or a bundle that `sinter build --check` wrote. The model runs once, on inputs of a seed (of language models: a prompt and two tokens). Each\n' +
    'kernel runs alone, and what it writes is compared with what the interpreter computes from the same values, up to\n' +
    'rounding. Kernels that differ are named with adapter and driver. Of kernels of equal source and size one is compared.\n\n' +
    'Where kernels are wrong, Sinter looks for another schedule, for the device without one of its features, or for another\n' +
    'device. --write writes that into a file, which programs obey if SINTER_WORKAROUNDS names it or `useWorkarounds` is given it.\n\n' +
    'A bundle is compared with what the interpreter computed when it was built. Where kernels are wrong, the other targets of\n' +
    'the bundle are tried. A page checks the bundle by its check.js.\n\n' +
    'Exits with 1 if a kernel is wrong.',
  operand: {
    name: 'model',
    value: 'MODEL',
    about: 'an ONNX model, a module, a GGUF file, a folder of Hugging Face, or a bundle',
  },
  options: {
    device: { type: 'string', value: 'NAME', about: 'which device: see `sinter devices`' },
    random: { type: 'string', value: 'SEED', about: 'the seed of inputs that are not given (default 1)' },
    input: { type: 'string', multiple: true, value: 'NAME=FILE', about: 'an input; repeatable' },
    dim: { type: 'string', multiple: true, value: 'NAME=SIZE', about: 'a size that the model leaves open' },
    export: { type: 'string', value: 'NAME', about: 'which function of a module' },
    'prompt-tokens': {
      type: 'string',
      value: 'N',
      about: 'tokens of a language model’s prompt (default 16)',
    },
    write: { type: 'string', value: 'FILE', about: 'write what programs have to avoid, as JSON' },
  },
  examples: [
    'sinter check model.onnx --device webgpu',
    'sinter check model.gguf --device cuda --write workarounds.json',
    'sinter check bundle --device wasm',
    'SINTER_WORKAROUNDS=workarounds.json sinter generate model.gguf --prompt "Once upon a time"',
  ],
  run: async (values, output) => {
    const file = text(values, 'model');
    if (file === undefined) throw new UsageError('check: no MODEL given\n  try: sinter check model.onnx');
    const written = text(values, 'write');
    if (written !== undefined) checkFolder('--write', written);
    const found = await checked[await kindOf(file)](file, values, output);
    output.live('');
    const { device, description, kernels, wrong, skipped, workarounds } = found;
    const none: Workarounds = { version: 1, entries: [] };
    if (written !== undefined)
      await writeFile(written, `${JSON.stringify(workarounds ?? none, undefined, 1)}\n`);
    const result: CheckResult = {
      device,
      description,
      kernels,
      ...(skipped > 0 && { skipped }),
      ...(workarounds && { workarounds }),
    };
    output.line(values['json'] === true ? JSON.stringify(result) : String(found));
    if (written !== undefined) output.note(`wrote ${written}`);
    if (wrong.length === 0) return;
    const names = [...new Set(wrong.map(({ name }) => name))].join(', ');
    throw new SinterError('E_VALUE', `check: wrong on ${device}: ${names}`);
  },
};

type Checked = (file: string, values: OptionValues, output: Output) => Promise<DeviceCheck>;

type ModelKind = 'bundle' | 'language model' | 'model';

const checked: Readonly<Record<ModelKind, Checked>> = {
  bundle: bundleChecked,
  'language model': languageModelChecked,
  model: modelChecked,
};

async function kindOf(file: string): Promise<ModelKind> {
  const found = await stat(file).catch(() => undefined);
  if (found?.isDirectory() !== true) return file.endsWith('.gguf') ? 'language model' : 'model';
  const has = async (name: string): Promise<boolean> =>
    (await stat(join(file, name)).catch(() => undefined)) !== undefined;
  return !(await has('config.json')) && (await has('program.json')) ? 'bundle' : 'language model';
}

/** What `check.js` of a bundle exports. */
interface BundleCheckModule {
  check(options: object): Promise<DeviceCheck>;
}

/** Throws UsageError where the bundle has nothing to be compared with, and at options that say what only models have. */
async function bundleChecked(folder: string, values: OptionValues, output: Output): Promise<DeviceCheck> {
  const others = ['random', 'input', 'dim', 'export', 'prompt-tokens', 'write'];
  const other = others.find((name) => values[name] !== undefined);
  if (other !== undefined)
    throw new UsageError(`--${other}: a bundle was given its inputs when it was built, and obeys no table`);
  const script = join(folder, 'check.js');
  if ((await stat(script).catch(() => undefined)) === undefined) {
    const problem = `${folder} was built without what its kernels are compared with`;
    throw new UsageError(`check: ${problem}\n  try: sinter build FILE --check --out ${folder}`);
  }
  const { check: own } = (await import(pathToFileURL(resolve(script)).href)) as BundleCheckModule;
  return own({ ...(await bundlePlace(text(values, 'device'))), onProgress: progress(output) });
}

/** Where a bundle runs, as its code takes it. In Node it has no WebGPU of its own. */
async function bundlePlace(device: string | undefined): Promise<object> {
  if (device === undefined) return {};
  const [target, number] = device.split(':');
  if (target === 'webgpu') {
    setDevice(device);
    const native = (await (await openDevice()).sharing?.())?.native;
    return { target, ...(native?.api === 'webgpu' && { device: native.device }) };
  }
  return {
    target,
    ...(number !== undefined && { [target === 'cuda' ? 'device' : 'threads']: Number(number) }),
  };
}

function progress(output: Output): (done: number, total: number) => void {
  return (done, total) => output.live(`check: kernel ${Math.min(done + 1, total)} of ${total}`);
}

async function modelChecked(file: string, values: OptionValues, output: Output): Promise<DeviceCheck> {
  const device = text(values, 'device');
  if (device !== undefined) setDevice(device);
  const onProgress = (done: string): void => output.live(`check: ${done}`);
  const model = await modelFile(file, { name: text(values, 'export'), device, onProgress });
  try {
    const dims = readDims(texts(values, 'dim').join(',') || undefined);
    const seed = wholeNumber(values, 'random', 1, 0);
    const given = texts(values, 'input');
    const inputs = await readInputs(model.inputs, {
      given,
      dims,
      seed,
      normalisation: { mean: [], std: [] },
    });
    return await check(model.prepare(inputs), { onProgress: progress(output) });
  } finally {
    model.close();
  }
}

async function languageModelChecked(_: string, values: OptionValues, output: Output): Promise<DeviceCheck> {
  const prompt = countedPrompt(wholeNumber(values, 'prompt-tokens', 16, 1));
  const options = { maxTokens: 3, temperature: 0, ignoreEnd: true };
  let found: DeviceCheck | undefined;
  await withModel('check', values, output, { most: prompt.length + 8 }, async (model) => {
    const write = async (): Promise<void> => {
      for await (const _ of model.generate(prompt, options).pieces());
    };
    found = await check(write, { onProgress: progress(output) });
  });
  return found!;
}
