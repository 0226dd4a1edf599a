// `sinter build`: functions of a module compiled ahead of time into a folder that runs without
// Sinter.

import { constants, existsSync } from 'node:fs';
import { access, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import {
  bundleOf,
  checkModule,
  modulesOf,
  rangesModule,
  type Bundle,
  type BundleRuntime,
} from '../../aot/bundle.ts';
import { findImageCompiler, type ImageCompiler, cudaTargetFor, usualArchs } from '../../aot/cuda-images.ts';
import { SinterError } from '../../errors.ts';
import { setDevice } from '../../index.ts';
import type { BundledProgram, BundleTarget, Manifest } from '../../bundle-runtime/manifest.ts';
import { showBytes, table } from '../../table.ts';
import { buildC, chosenC, cOptions, expectNoC } from './c.ts';
import { buildSchedules } from './schedules.ts';
import { buildSource } from './source.ts';
import { chosenFormat, fixOption } from '../program/choice.ts';
import { text, UsageError, wholeNumber, type Command, type OptionValues, type Output } from '../command.ts';
import { version } from '../version.ts';

/** In the order in which bundles try them. */
const known: readonly BundleTarget[] = ['cuda', 'webgpu', 'wasm'];
const usual = 'webgpu,wasm';

/** What `--json` prints. */
export interface BuildResult {
  readonly out: string;
  readonly targets: readonly BundleTarget[];
  readonly entries: readonly string[];
  /** Kernels by target, and dispatches: how often one runs when every entry is called once. */
  readonly kernels: Readonly<Partial<Record<BundleTarget, number>>>;
  readonly dispatches: Readonly<Partial<Record<BundleTarget, number>>>;
  /** GPUs that CUDA's kernels are compiled for; none where there is no compiler. */
  readonly archs?: readonly string[];
  /** Kinds of contractions with a schedule that was measured, by target. */
  readonly tuned?: Readonly<Partial<Record<BundleTarget, number>>>;
  readonly weights: number;
  /** Bytes of `index.js`, and gzipped, and of all files. */
  readonly script: number;
  readonly scriptGzip: number;
  /** Bytes of `check.json`, with `--check`. */
  readonly check?: number;
  /** Bytes, gzipped, of the files that it loads for some targets alone, and of `check.js`. */
  readonly modulesGzip: Readonly<Record<string, number>>;
  readonly total: number;
}

export const buildCommand: Command = {
  name: 'build',
  about: 'compile functions ahead of time into a folder that needs no compiler',
  details:
    'Traces the functions that FILE exports, and writes a folder that runs them: kernels, weights, and an index.js that imports\n' +
    'nothing. It works in pages and in Node; its README.md shows how. With --target c it is a folder of C, with a Makefile.\n\n' +
    'FILE is an ONNX model, or a module that exports functions and `inputs`: an object with an array of example arguments for each\n' +
    'function, or the array alone for a single function. Tensors that a function captures become weights. If the module exports\n' +
    '`state`, a tree of tensors, every function takes it first, and may return { state, ...outputs } to change it. The state stays on\n' +
    'the device from call to call, so train steps and caches work as they do in a program.\n\n' +
    'An export `dims` or --dim declares sizes that are left open; `inputs` is then a function of them. A range has one\n' +
    'program for all of its sizes, a list has one for each. The inputs of a call determine its sizes.',
  operand: {
    name: 'file',
    value: 'FILE',
    about: 'an ONNX model, or a module with functions and inputs for them',
  },
  options: {
    target: {
      type: 'string',
      value: 'LIST',
      about: 'of cuda, webgpu and wasm, or c alone; webgpu,wasm by default',
    },
    software: {
      type: 'boolean',
      about: 'schedule WebGPU for adapters without a GPU, such as browsers in tests; slow on GPUs',
    },
    out: { type: 'string', value: 'DIR', about: 'the folder to write; created if it is missing' },
    export: { type: 'string', value: 'LIST', about: 'the functions of FILE to build; all by default' },
    dim: {
      type: 'string',
      multiple: true,
      value: 'LIST',
      about:
        'sizes left open: length=1..2048 or 16..64:16, one program for all; batch=1,4, one for each; repeatable',
    },
    fix: fixOption,
    arch: {
      type: 'string',
      value: 'LIST',
      about: `GPUs to compile CUDA kernels for; ${usualArchs.join(',')} by default; sm_90a alone uses features of that GPU only`,
    },
    dtype: {
      type: 'string',
      value: 'FORMAT',
      about: 'store matrices that no call changes as f16, q8_0 or q4_0; f32 by default',
    },
    tune: {
      type: 'boolean',
      about: 'measure schedules of contractions on the devices of this machine, and use the fastest',
    },
    'no-checks': {
      type: 'boolean',
      about:
        'do not check labels and indices: outside, read 0 and write nothing; by default an E_INDEX error',
    },
    check: {
      type: 'boolean',
      about:
        'compute by the interpreter what every kernel writes, so that `sinter check DIR` and check.js can compare',
    },
    schedules: { type: 'string', value: 'FILE', about: 'schedules that were measured before, as JSON' },
    'shard-size': {
      type: 'string',
      value: 'MIB',
      about: 'split weights into files of at most this many MiB; one file by default',
    },
    ...cOptions,
  },
  examples: [
    'sinter build model.onnx --dim batch=1 --out bundle',
    'sinter build model.onnx --dim batch=1,4,16 --dim length=16..64:16 --out bundle',
    'sinter build reshape.onnx --fix shape=2,-1 --out bundle',
    'sinter build model.ts --out bundle',
    'sinter build model.ts --export predict --target wasm --out bundle',
    'sinter build language.ts --out bundle --dtype q8_0 --shard-size 32',
    'sinter build model.onnx --tune --target wasm --out bundle',
    'sinter build model.ts --check --out bundle',
    'sinter build model.onnx --target cuda,wasm --arch sm_90a --out bundle',
    'sinter build model.ts --target c --name digits --out digits',
  ],
  run: async (values, output) => {
    const file = text(values, 'file');
    if (file === undefined)
      throw new UsageError('build: no FILE given\n  try: sinter build model.ts --out bundle');
    const out = text(values, 'out');
    if (out === undefined)
      throw new UsageError(`build: no folder given\n  try: sinter build ${file} --out bundle`);
    if (
      text(values, 'target')
        ?.split(',')
        .some((name) => name.trim() === 'c')
    ) {
      await runC(file, out, values, output);
      return;
    }
    expectNoC(values);
    const targets = chosenTargets(values);
    const archs = chosenArchs(values, targets);
    const format = chosenFormat(values);
    const shard = wholeNumber(values, 'shard-size', 0, 1);
    await claim(out);
    // Weights are computed here, whatever the bundle is for.
    setDevice('wasm');
    output.live(`build: loading ${file}`);
    const { points, names, state } = await buildSource(file, values);
    output.live(`build: compiling ${points.map(({ name }) => name).join(', ')}`);
    const schedules = await buildSchedules(values, output);
    const compiler = targets.includes('cuda') ? await findImageCompiler(archs) : undefined;
    const { manifest, files, notes } = await bundleOf(points, {
      targets,
      producer: `sinter ${version()}`,
      title: basename(file).replace(/\.\w+$/, ''),
      state,
      names,
      runtime: await bundleRuntimeFor(targets),
      format,
      archs,
      software: values['software'] === true,
      checks: values['no-checks'] !== true,
      check: values['check'] === true,
      ...(compiler !== undefined && { compiler }),
      ...(schedules !== undefined && { schedules: schedules.find }),
      ...(shard > 0 && { shardSize: shard * 2 ** 20 }),
    });
    for (const note of notes) output.note(note);
    await write(out, files);
    const script = Buffer.from(files.get('index.js')!);
    const gzipped = (path: string): number => gzipSync(files.get(path)!, { level: 9 }).length;
    const modules = modulesOf(targets).filter((name) => files.has(name));
    const sizes = [...files].map(([path, content]) => [path, Buffer.byteLength(content)] as const);
    const kernelsOf = (target: BundleTarget): number =>
      programsOf(manifest, target).reduce((sum, { kernels }) => sum + kernels.length, 0);
    const result: BuildResult = {
      out,
      targets,
      entries: Object.keys(manifest.entries),
      kernels: Object.fromEntries(targets.map((target) => [target, kernelsOf(target)])),
      dispatches: Object.fromEntries(targets.map((target) => [target, dispatchesOf(manifest, target)])),
      ...(targets.includes('cuda') && { archs: compiler === undefined ? [] : archs }),
      ...(schedules !== undefined && { tuned: schedules.counts() }),
      weights: manifest.weights.length,
      script: script.length,
      scriptGzip: gzipped('index.js'),
      ...(files.has('check.json') && { check: Buffer.byteLength(files.get('check.json')!) }),
      modulesGzip: Object.fromEntries(modules.map((name) => [name, gzipped(name)])),
      total: sizes.reduce((sum, [, bytes]) => sum + bytes, 0),
    };
    if (values['json'] === true) {
      output.line(JSON.stringify(result));
      return;
    }
    const bytes = (test: (path: string) => boolean): string =>
      showBytes(sizes.reduce((sum, [path, size]) => sum + (test(path) ? size : 0), 0));
    const rows = [
      ['index.js', bytes((path) => path === 'index.js'), `the code, ${showBytes(result.scriptGzip)} gzipped`],
      ['program.json', bytes((path) => path === 'program.json'), `${result.entries.join(', ')}`],
      [
        'kernels/',
        bytes((path) => path.startsWith('kernels/')),
        targets.map((target) => `${kernelsOf(target)} for ${target}${tunedText(result, target)}`).join(', '),
      ],
      ['weights', bytes((path) => path.endsWith('.safetensors')), `${result.weights} tensors`],
    ];
    const about = (name: string): string =>
      result.archs !== undefined && name === 'cuda.js'
        ? compiledFor(result.archs, compiler)
        : name === checkModule
          ? `compares kernels with check.json, ${showBytes(result.check ?? 0)}; pages load neither`
          : `loaded ${name === rangesModule ? 'for sizes within ranges' : 'where that is taken'}, ${showBytes(gzipped(name))} gzipped`;
    rows.splice(1, 0, ...modules.map((name) => [name, bytes((path) => path === name), about(name)]));
    output.line(
      `wrote ${out}\n\n${table(['file', 'size', 'what it is'], rows, [1])}\n\n${join(out, 'README.md')} shows how to use it`,
    );
  },
};

/** A folder of C. */
async function runC(file: string, out: string, values: OptionValues, output: Output): Promise<void> {
  if (text(values, 'target')!.trim() !== 'c')
    throw new UsageError('--target: a folder of C is for C alone\n  try: --target c');
  if (values['check'] === true)
    throw new UsageError('--check: C has nothing that compares\n  try: sinter check with the model itself');
  const options = chosenC(values);
  const format = chosenFormat(values);
  await makeFolder(out);
  setDevice('wasm');
  output.live(`build: loading ${file}`);
  const source = await buildSource(file, values);
  output.live(`build: compiling ${source.points.map(({ name }) => name).join(', ')}`);
  const own = {
    producer: `sinter ${version()}`,
    title: basename(file).replace(/\.\w+$/, ''),
    format,
    checks: values['no-checks'] !== true,
  };
  await buildC(out, source, { ...options, ...own }, values, output);
}

const firstLine = '// Made by sinter';
/** What bundles consist of. */
const parts =
  /^(?:(?:index|files|cuda|wasm|sizes|check)\.js|(?:index|check)\.d\.ts|(?:package|program|check)\.json|README\.md|kernels|weights.*\.safetensors)$/;

/** Throws UsageError where the folder cannot be written to. */
async function makeFolder(out: string): Promise<void> {
  try {
    await mkdir(out, { recursive: true });
    await access(out, constants.W_OK);
  } catch (error) {
    throw new UsageError(`--out: ${out} is no folder to write to: ${(error as Error).message}`);
  }
}

/**
 * Makes the folder. Throws UsageError, before anything is compiled, where the folder cannot be
 * written to, or holds files that the bundle would replace and no earlier build wrote.
 */
async function claim(out: string): Promise<void> {
  await makeFolder(out);
  const script = await readFile(join(out, 'index.js'), 'utf8').catch(() => '');
  if (script.startsWith(firstLine)) return;
  const others = (await readdir(out)).filter((name) => parts.test(name));
  if (others.length === 0) return;
  throw new UsageError(
    `--out: ${out} is no bundle, and its ${others.join(', ')} would be replaced\n  try: --out ${join(out, 'bundle')}`,
  );
}

/**
 * Writes a bundle in place of one that was there before. `program.json` is written last, so that a
 * folder in which it is missing is known to be incomplete.
 */
async function write(out: string, files: Bundle['files']): Promise<void> {
  const last = 'program.json';
  const stale = (await readdir(out)).filter((name) => parts.test(name));
  for (const name of stale) await rm(join(out, name), { recursive: true });
  const paths = [...files.keys()].filter((path) => path !== last && path !== 'index.js');
  for (const path of ['index.js', ...paths, last]) {
    await mkdir(dirname(join(out, path)), { recursive: true });
    await writeFile(join(out, path), files.get(path)!);
  }
}

function tunedText({ tuned }: BuildResult, target: BundleTarget): string {
  return tuned === undefined ? '' : ` (${tuned[target] ?? 0} measured)`;
}

function compiledFor(archs: readonly string[], compiler: ImageCompiler | undefined): string {
  return compiler === undefined
    ? 'neither NVRTC nor nvcc is here: kernels are compiled where they run'
    : `kernels are compiled for ${archs.join(', ')} by ${compiler.name}`;
}

/** Every entry's programs for a target. */
function programsOf({ entries }: Manifest, target: BundleTarget): BundledProgram[] {
  return Object.values(entries).flatMap((entry) => entry.programs[target] ?? []);
}

function dispatchesOf(manifest: Manifest, target: BundleTarget): number {
  const steps = programsOf(manifest, target).flatMap((program) => program.steps);
  return steps.filter(({ kind }) => kind === 'dispatch').length;
}

function chosenTargets(values: OptionValues): BundleTarget[] {
  const names = (text(values, 'target') ?? usual).split(',').map((name) => name.trim());
  const strange = names.find((name) => !(known as readonly string[]).includes(name));
  if (strange !== undefined)
    throw new UsageError(`--target: there are no bundles for '${strange}': expected ${known.join(', ')}`);
  return known.filter((name) => names.includes(name));
}

function chosenArchs(values: OptionValues, targets: readonly BundleTarget[]): readonly string[] {
  const list = text(values, 'arch');
  if (list === undefined) return usualArchs;
  if (!targets.includes('cuda')) throw new UsageError('--arch: expects --target with cuda');
  const archs = list.split(',').map((name) => name.trim());
  try {
    cudaTargetFor(archs);
  } catch (error) {
    throw new UsageError(`--arch: ${(error as Error).message}`);
  }
  return [...new Set(archs)];
}

/** The code that runs bundles for these targets, as `npm run build` made it. */
async function bundleRuntimeFor(targets: readonly BundleTarget[]): Promise<BundleRuntime> {
  const folders = ['../../bundle-runtimes/', '../../../dist/bundle-runtimes/'].map(
    (path) => new URL(path, import.meta.url),
  );
  const folder = folders.find((url) => existsSync(url));
  if (folder === undefined)
    throw new SinterError('E_STATE', `${folders[0]!.pathname} is not there\n  try: npm run build`);
  const read = (name: string): Promise<string> => readFile(new URL(name, folder), 'utf8');
  const modules = modulesOf(targets).map(async (name) => [name, await read(`modules/${name}`)] as const);
  return { script: await read(`${targets.join('-')}.js`), modules: new Map(await Promise.all(modules)) };
}
