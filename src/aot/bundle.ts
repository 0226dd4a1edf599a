// `sinter build`: functions compiled ahead of time into a folder of files that run without Sinter.
// Takes functions and options, gives the contents of the files; the caller writes them.

import { compileGraph, type CompiledGraph, type CompileOptions, type PinnedTilings } from '../compile.ts';
import { SinterError } from '../errors.ts';
import type { Graph } from '../ir/graph.ts';
import type {
  BundledImage,
  BundledKernel,
  BundledProgram,
  BundleTarget,
  BundleEntry,
  Manifest,
} from '../bundle-runtime/manifest.ts';
import type { ExpectedBundle, ExpectedProgram } from '../bundle-runtime/expected.ts';
import { everyStep, type ProgramKernel } from '../runtime/program.ts';
import { gpuTarget, softwareTarget, wasmTarget, type Target } from '../schedule/target.ts';
import { type ImageCompiler, cudaTargetFor, usualArchs } from './cuda-images.ts';
import type { EntryPoint, TracedEntry } from './entry.ts';
import { expectedProgram } from './expected.ts';
import { portedProgram } from './ported.ts';
import { prepared, type PrepareOptions } from './prepared.ts';
import type { OpenPoint } from './sizes.ts';
import { overStored } from './storage.ts';
import { checkTypesOf, filesOf, guideOf, packageOf, scriptOf, typesOf } from './texts.ts';
import { weightFiles } from './weights.ts';

export interface BundleOptions extends PrepareOptions {
  readonly targets: readonly BundleTarget[];
  /** What made it, e.g. `sinter 0.1.0`. */
  readonly producer: string;
  /** The bundle's name in its README. */
  readonly title: string;
  /** Most bytes of a file of weights; all in one by default. */
  readonly shardSize?: number;
  /** The code that runs bundles for these targets, and the files that it loads beside it. */
  readonly runtime: BundleRuntime;
  /**
   * Schedules of a graph's kernels for a target, where there are others than the model's; none by
   * default.
   */
  readonly schedules?: FindBundleSchedules;
  /**
   * Kernels of WebGPU are scheduled for software adapters, where barriers are expensive; for GPUs
   * by default.
   */
  readonly software?: boolean;
  /**
   * What GPUs CUDA's kernels are compiled for; by default `sm_80`, `sm_90` and `compute_80`.
   */
  readonly archs?: readonly string[];
  /** What compiles for them; none by default, and then a bundle has their sources alone. */
  readonly compiler?: ImageCompiler;
  /** With what its kernels compute by the interpreter, and the code that compares; without by default. */
  readonly check?: boolean;
}

export interface BundleRuntime {
  /** A module that exports `load(options)`. */
  readonly script: string;
  /** By name, as `modulesOf` has them. */
  readonly modules: ReadonlyMap<string, string>;
}

/** The file that `index.js` loads where sizes have ranges. */
export const rangesModule = 'sizes.js';
/** The file that checks a bundle, which `index.js` does not load. */
export const checkModule = 'check.js';

/** Names of the files that `index.js` loads for some of these targets alone, of that for ranges, and of that which checks. */
export function modulesOf(targets: readonly BundleTarget[]): string[] {
  const lazilyLoaded = targets.filter(
    (target) => target === 'cuda' || (target === 'wasm' && targets.length > 1),
  );
  return [...lazilyLoaded.map((target) => `${target}.js`), rangesModule, checkModule];
}

export type FindBundleSchedules = (
  name: BundleTarget,
  graph: Graph,
  target: Target,
  options: CompileOptions,
) => Promise<PinnedTilings | undefined>;

export interface Bundle {
  readonly manifest: Manifest;
  /** Contents by path in the folder. */
  readonly files: ReadonlyMap<string, string | Uint8Array>;
  /** What is not as it was asked for. */
  readonly notes: readonly string[];
}

/** Names of a model's own members; a `then` would make it a promise. */
const reserved = ['target', 'description', 'weight', 'seed', 'dispose', 'load', 'then'];

/**
 * Compiles entries for targets. Throws the compiler's errors, and E_UNSUPPORTED for what bundles do
 * not support.
 */
export async function bundleOf(
  points: readonly (EntryPoint | OpenPoint)[],
  options: BundleOptions,
): Promise<Bundle> {
  const taken = points.find(({ name }) => reserved.includes(name) || name in Object.prototype);
  if (taken !== undefined)
    throw new SinterError(
      'E_UNSUPPORTED',
      `build: models have a ${taken.name} of their own\n  try: another name`,
    );
  const { recorded, weights, values, stored, notes } = await prepared(points, options);
  const expected = new Map<BundledProgram, ExpectedProgram>();
  const files = new Map<string, string | Uint8Array>();
  const entries = new Map<string, BundleEntry>();
  for (const { name, cases, entry } of recorded) {
    const programs: Partial<Record<BundleTarget, BundledProgram[]>> = {};
    for (const { traced, sizes: own, least } of cases)
      for (const target of options.targets) {
        const label = cases.length === 1 ? name : [name, ...Object.values(own)].join('-');
        const whole = overStored(traced, stored);
        const { compiled, ...made } = await bundled(label, whole, target, options, files);
        const program = { ...made.program, sizes: own, ...(least && { least }) };
        (programs[target] ??= []).push(program);
        if (options.check !== true) continue;
        const subject = { title: label, traced: whole, entry, compiled, program, values };
        expected.set(program, await expectedProgram(subject));
      }
    entries.set(name, { ...entry, programs });
  }
  const shards = weightFiles(weights, values, options.shardSize ?? Infinity);
  for (const { file, bytes } of shards) files.set(file.name, bytes);
  const hasRanges = recorded.some(({ entry }) => entry.ranges);
  const manifest: Manifest = {
    version: 1,
    producer: options.producer,
    weights,
    files: shards.map(({ file }) => file),
    entries: Object.fromEntries(entries),
    ...(hasRanges && { ranged: true }),
  };
  files.set('program.json', `${JSON.stringify(manifest)}\n`);
  const modules = [...options.runtime.modules].filter(
    ([name]) => (name !== rangesModule || hasRanges) && (name !== checkModule || options.check === true),
  );
  const names = modules.flatMap(([name]) => (name === checkModule ? [] : [name]));
  files.set('files.js', filesOf([...files.keys()], names));
  files.set('index.js', scriptOf(manifest, options.runtime.script));
  for (const [name, script] of modules) files.set(name, script);
  files.set('index.d.ts', typesOf(manifest, options.targets));
  if (options.check === true) {
    const all = Object.values(manifest.entries);
    const of = (target: BundleTarget): ExpectedProgram[] =>
      all.flatMap(({ programs }) => (programs[target] ?? []).map((program) => expected.get(program)!));
    const check: ExpectedBundle = {
      version: 1,
      targets: Object.fromEntries(options.targets.map((target) => [target, of(target)])),
    };
    files.set('check.json', `${JSON.stringify(check)}\n`);
    files.set('check.d.ts', checkTypesOf(options.targets));
  }
  files.set('package.json', packageOf(options.targets));
  files.set('README.md', guideOf(manifest, options.title, options.targets, files));
  return { manifest, files, notes };
}

/** An entry's program for a target; its kernels become files, equal ones the same. */
async function bundled(
  name: string,
  { graph, scalars, donate, wiring: traced, inputs: given }: TracedEntry,
  target: BundleTarget,
  options: BundleOptions,
  files: Map<string, string | Uint8Array>,
): Promise<{ readonly program: Omit<BundledProgram, 'sizes'>; readonly compiled: CompiledGraph }> {
  const { cuda, targets } = targetsOf(options);
  const schedules = await options.schedules?.(target, graph, targets[target], { scalars, donate });
  const compiled = compileGraph(graph, targets[target], {
    scalars,
    donate,
    ...(schedules && { schedules }),
    ...(options.check && { inspect: true }),
    title: () => `${name}-${target}`,
  });
  if ([...everyStep(compiled.program.steps)].some(({ kind }) => kind === 'collective')) {
    const problem = `build: ${name} has collectives, and a bundle is run by one process`;
    throw new SinterError('E_UNSUPPORTED', `${problem}\n  try: build what one process computes between them`);
  }
  const { program, ports } = portedProgram(name, compiled.program, traced, given.length);
  const width = Math.max(2, String(program.kernels.length - 1).length);
  const kernels = program.kernels.map(({ source, ...kernel }, i): BundledKernel => {
    const file = `kernels/${fileWord(name)}-${String(i).padStart(width, '0')}-${kernel.name}.${extensions[target]}`;
    return { ...kernel, file: withFile(files, file, contentOf(target, source)) };
  });
  if (target !== 'cuda') return { program: { ...program, kernels, ports }, compiled };
  const images = await imagesOf(name, program.kernels, options, files);
  return { program: { ...program, kernels, ports, arch: cuda.arch, images }, compiled };
}

function targetsOf({ archs = usualArchs, software = false }: BundleOptions): {
  readonly cuda: ReturnType<typeof cudaTargetFor>;
  readonly targets: Readonly<Record<BundleTarget, Target>>;
} {
  const cuda = cudaTargetFor(archs);
  const webgpu = software ? softwareTarget : gpuTarget;
  return { cuda, targets: { cuda: cuda.target, webgpu, wasm: wasmTarget } };
}

const extensions = { cuda: 'cu', webgpu: 'wgsl', wasm: 'wasm' } as const satisfies Record<
  BundleTarget,
  string
>;

/** An entry's kernels compiled, in files. */
async function imagesOf(
  entry: string,
  kernels: readonly ProgramKernel[],
  { archs = usualArchs, compiler }: BundleOptions,
  files: Map<string, string | Uint8Array>,
): Promise<BundledImage[]> {
  if (compiler === undefined || kernels.length === 0) return [];
  const images: BundledImage[] = [];
  for (const arch of archs) {
    const path = `kernels/${fileWord(entry)}-${arch}.${arch.startsWith('sm_') ? 'cubin' : 'ptx'}`;
    images.push({ arch, file: withFile(files, path, await compiler.compile(kernels, arch)) });
  }
  return images;
}

function contentOf(target: BundleTarget, source: ProgramKernel['source']): string | Uint8Array {
  return target === 'wasm' ? Uint8Array.from(atob(source), (letter) => letter.charCodeAt(0)) : source;
}

/**
 * A name as a part of a file's name: characters that all file systems and URLs allow, and at most
 * 80.
 */
function fileWord(name: string): string {
  return name.replaceAll(/[^\w$.-]/g, '_').slice(0, 80);
}

/**
 * The path of a file with this content: an existing one, else a new one. Names that differ only in
 * case are one file in some systems, so the second gets a different name.
 */
function withFile(
  files: Map<string, string | Uint8Array>,
  path: string,
  content: string | Uint8Array,
): string {
  for (const [known, held] of files) {
    if (!known.startsWith('kernels/') || held.length !== content.length) continue;
    const isSame =
      typeof held === 'string' || typeof content === 'string'
        ? held === content
        : held.every((byte, i) => byte === content[i]);
    if (isSame) return known;
  }
  const taken = new Set(Array.from(files.keys(), (known) => known.toLowerCase()));
  const [, stem = path, ending = ''] = /^(.*)(\.\w+)$/.exec(path) ?? [];
  let own = path;
  for (let i = 2; taken.has(own.toLowerCase()); i++) own = `${stem}-${i}${ending}`;
  files.set(own, content);
  return own;
}
