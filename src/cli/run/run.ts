// `sinter run`: a model on files: what comes out, whether it is what was expected, and what it
// takes.

import { writeFile } from 'node:fs/promises';
import { SinterError } from '../../errors.ts';
import { setDevice } from '../../index.ts';
import type { HostTensor } from '../../io/index.ts';
import { table } from '../../table.ts';
import { profileCalls } from '../../tensor/report/spans.ts';
import {
  text,
  texts,
  UsageError,
  wholeNumber,
  type Command,
  type Output,
  type OptionValues,
} from '../command.ts';
import {
  compared,
  showComparison,
  showNumber,
  summaryOf,
  type OutputComparison,
  type Summary,
} from './comparison.ts';
import { modelFile, type NamedTensors, type RunnableModel } from './model.ts';
import { readInputs } from './inputs.ts';
import { readDims } from '../program/dims.ts';
import { profileOf, profileTable, traceOf, type RunProfile } from './profile.ts';
import { checkFolder, checkWritable, namedFile, readTensorFile, writeTensorFile } from './tensor-files.ts';

/** Calls that a profile is the median of. */
const profiledCalls = 5;

/** What `--json` prints. */
export interface RunResult {
  readonly model: string;
  readonly device: string;
  readonly outputs: readonly Summary[];
  readonly written: readonly string[];
  readonly comparisons: readonly OutputComparison[];
  /** Milliseconds: until the model was open, of the first call, and of those after it. */
  readonly times: Times;
  readonly profile?: RunProfile;
}

interface Times {
  readonly load: number;
  readonly first: number;
  readonly median?: number;
  readonly min?: number;
  readonly calls: number;
}

export const runCommand: Command = {
  name: 'run',
  about: 'run a model on files, compare its results, time it',
  details:
    'MODEL is an ONNX model, a module that exports a function and `inputs` (as `sinter explain` takes it), or a folder that\n' +
    '`sinter build` wrote. Inputs come from .npy, .npz, .safetensors, TensorProto .pb, PNG or JPEG files, or are numbers:\n' +
    'x=in.npy, x=all.npz#x, x=cat.jpg, length=3, sizes=1,2,3. A model of one input or output needs no name. Images are laid\n' +
    'out as the input asks, with values from 0 to 1, then (value − mean) / std.\n\n' +
    'Exits with 1 if an output differs from --expect.',
  operand: { name: 'model', value: 'MODEL', about: 'an ONNX model, a module, or a folder of `sinter build`' },
  options: {
    input: { type: 'string', multiple: true, value: 'NAME=FILE', about: 'an input; repeatable' },
    output: {
      type: 'string',
      multiple: true,
      value: '[NAME=]FILE',
      about: 'write outputs as .npy, .npz, .safetensors or .pb; without it, print a summary',
    },
    expect: {
      type: 'string',
      multiple: true,
      value: '[NAME=]FILE',
      about: 'compare an output with this file',
    },
    rtol: { type: 'string', value: 'R', about: 'relative tolerance (default 0.001)' },
    atol: { type: 'string', value: 'A', about: 'absolute tolerance (default 0.00001)' },
    random: {
      type: 'string',
      value: 'SEED',
      about: 'fill inputs that are not given with numbers from 0 to 1',
    },
    dim: { type: 'string', multiple: true, value: 'NAME=SIZE', about: 'a size that the model leaves open' },
    mean: { type: 'string', value: 'LIST', about: 'means of images, by channel: 0.485,0.456,0.406' },
    std: {
      type: 'string',
      value: 'LIST',
      about: 'standard deviations of images, by channel: 0.229,0.224,0.225',
    },
    export: { type: 'string', value: 'NAME', about: 'which function of a module, or entry of a bundle' },
    device: { type: 'string', value: 'NAME', about: 'where to run: see `sinter devices`' },
    repeat: { type: 'string', value: 'N', about: 'time N calls after the first' },
    profile: { type: 'boolean', about: 'print the time of each kernel' },
    trace: { type: 'string', value: 'FILE', about: "write the times for Chrome's and Perfetto's viewers" },
  },
  examples: [
    'sinter run model.onnx --input x=in.npy --output out.npy',
    'sinter run model.onnx --input image=cat.png --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225',
    'sinter run model.onnx --input input_0.pb --expect output_0.pb --rtol 0.001',
    'sinter run model.onnx --random 1 --dim batch=8 --repeat 50 --profile --trace trace.json',
    'sinter run bundle --random 1 --device wasm:2',
  ],
  run: async (values, output) => {
    const file = text(values, 'model');
    if (file === undefined)
      throw new UsageError('run: no MODEL given\n  try: sinter run model.onnx --input x=in.npy');
    const outputs = texts(values, 'output').map(namedFile);
    for (const one of outputs) checkWritable(one.file);
    const trace = text(values, 'trace');
    if (trace !== undefined) checkFolder('--trace', trace);
    const tolerance = { rtol: number(values, 'rtol', 1e-3), atol: number(values, 'atol', 1e-5) };
    const dims = readDims(texts(values, 'dim').join(',') || undefined);
    const repeat = wholeNumber(values, 'repeat', 0, 1);
    const seed = text(values, 'random') === undefined ? undefined : wholeNumber(values, 'random', 0, 0);
    const normalisation = { mean: numbers(values, 'mean'), std: numbers(values, 'std') };
    const asked = text(values, 'device');
    if (asked !== undefined) setDevice(asked);

    output.live(`run: loading ${file}`);
    const start = performance.now();
    const onProgress = (progress: string): void => output.live(`run: ${progress}`);
    const model = await modelFile(file, { name: text(values, 'export'), device: asked, onProgress });
    const load = performance.now() - start;
    try {
      const profiled = values['profile'] === true || trace !== undefined;
      const given = texts(values, 'input');
      const inputs = await readInputs(model.inputs, { given, dims, seed, normalisation });
      const call = model.prepare(inputs);
      output.live(`run: compiling ${model.name}`);
      const { results, times } = await timedCalls(call, repeat, output);
      const profile = profiled ? await profiledRun(model, call, output) : undefined;
      const written = await writeOutputs(outputs, results);
      const comparisons: OutputComparison[] = [];
      for (const expected of texts(values, 'expect').map(namedFile)) {
        const [name, got] = chosenOutput(results, expected.name, '--expect');
        comparisons.push(await compared(name, got, await readTensorFile(expected.file), tolerance));
      }
      if (trace !== undefined && profile !== undefined)
        await writeFile(trace, JSON.stringify(traceOf(profile, `sinter run ${model.name}`)));
      const result: RunResult = {
        model: model.name,
        device: await model.device(),
        outputs: await Promise.all([...results].map(([name, host]) => summaryOf(name, host))),
        written: [...written, ...(trace === undefined ? [] : [trace])],
        comparisons,
        times: { load, ...times },
        ...(profile !== undefined && { profile }),
      };
      if (values['json'] === true) output.line(JSON.stringify(result));
      else {
        show(result, values, output);
        for (const one of comparisons) output.line(showComparison(one, tolerance));
      }
      const wrong = comparisons.filter(({ ok }) => !ok).map(({ name }) => name);
      if (wrong.length > 0) throw new SinterError('E_VALUE', `run: not as expected: ${wrong.join(', ')}`);
    } finally {
      model.close();
    }
  },
};

function show(
  { device, outputs, written, comparisons, times, profile, model }: RunResult,
  values: OptionValues,
  output: Output,
): void {
  if (written.length === 0 && comparisons.length === 0) {
    const rows = outputs.map(({ name, dtype, shape, min, max, mean, nan, first }) => [
      name,
      `${dtype}[${shape.join(', ')}]`,
      ...[min, max, mean].map(showNumber),
      `${first.map(showNumber).join(', ')}${shape.reduce((a, b) => a * b, 1) > first.length ? ', …' : ''}${nan > 0 ? ` (${nan} NaN)` : ''}`,
    ]);
    output.line(`${table(['output', 'type', 'min', 'max', 'mean', 'elements'], rows, [2, 3, 4])}\n`);
  }
  for (const file of written) output.line(`wrote ${file}`);
  if (profile !== undefined && values['profile'] === true) output.line(`${profileTable(profile)}\n`);
  const { load, first, median, min, calls } = times;
  const ms = (time: number): string => `${time.toFixed(time < 10 ? 2 : 1)} ms`;
  const later = median === undefined ? '' : `, then median ${ms(median)}, min ${ms(min!)} of ${calls} calls`;
  output.note(`${model} on ${device}: loaded in ${ms(load)}, first call ${ms(first)}${later}`);
}

/** The first call's results, and how long it and those after it took. */
async function timedCalls(
  call: () => Promise<NamedTensors>,
  repeat: number,
  output: Output,
): Promise<{ readonly results: NamedTensors; readonly times: Omit<Times, 'load'> }> {
  const timed = async (): Promise<readonly [number, NamedTensors]> => {
    const start = performance.now();
    const results = await call();
    return [performance.now() - start, results];
  };
  const [first, results] = await timed();
  if (repeat === 0) return { results, times: { first, calls: 0 } };
  // One that is not counted: engines make the final code of kernels after a while.
  await call();
  const later: number[] = [];
  for (let i = 0; i < repeat; i++) {
    output.live(`run: call ${i + 1} of ${repeat}`);
    later.push((await timed())[0]);
  }
  later.sort((a, b) => a - b);
  return { results, times: { first, median: later[later.length >> 1]!, min: later[0]!, calls: repeat } };
}

async function profiledRun(
  { steps }: RunnableModel,
  call: () => Promise<NamedTensors>,
  output: Output,
): Promise<RunProfile> {
  if (steps !== undefined) return profileOf([steps]);
  output.live('run: timing kernels');
  return profileOf(await profileCalls(call, profiledCalls));
}

async function writeOutputs(
  wanted: readonly { readonly name: string | undefined; readonly file: string }[],
  results: NamedTensors,
): Promise<string[]> {
  // A file that is named several times holds all of these.
  const files = new Map<string, Map<string, HostTensor>>();
  for (const { name, file } of wanted) {
    const tensors = files.get(file) ?? new Map<string, HostTensor>();
    const part = name === undefined ? results : [chosenOutput(results, name, '--output')];
    for (const [output, host] of part) tensors.set(output, host);
    files.set(file, tensors);
  }
  for (const [file, tensors] of files) await writeTensorFile(file, tensors);
  return [...files.keys()];
}

/** The output of this name, or the only one. Throws UsageError listing what there is. */
function chosenOutput(
  results: NamedTensors,
  name: string | undefined,
  option: string,
): readonly [string, HostTensor] {
  const [only] = results;
  const host = name === undefined ? undefined : results.get(name);
  if (name !== undefined && host !== undefined) return [name, host];
  if (name === undefined && only !== undefined && results.size === 1) return only;
  const problem = name === undefined ? 'a name is missing' : `there is no output '${name}'`;
  throw new UsageError(`${option}: ${problem}: expected NAME=FILE with ${[...results.keys()].join(', ')}`);
}

function number(values: OptionValues, name: string, fallback: number): number {
  const given = text(values, name);
  if (given === undefined) return fallback;
  const value = Number(given);
  if (given.trim() !== '' && value >= 0) return value;
  throw new UsageError(`--${name}: expects a number of at least 0, got '${given}'`);
}

/** Numbers between commas; none where the option is not given. */
function numbers(values: OptionValues, name: string): readonly number[] {
  const list = text(values, name)?.split(',') ?? [];
  const strange = list.find((part) => part.trim() === '' || !Number.isFinite(Number(part)));
  if (strange !== undefined)
    throw new UsageError(`--${name}: expects numbers, one by channel or one for all, got '${strange}'`);
  if (name === 'std' && list.some((part) => Number(part) === 0))
    throw new UsageError('--std: expects no zero');
  return list.map(Number);
}
