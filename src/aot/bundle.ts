// `sinter build`: functions compiled ahead of time into a folder of files that run without Sinter.
// Takes functions and options, gives the contents of the files; the caller writes them.

import { compileGraph, type CompileOptions, type PinnedTilings } from '../compile.ts';
import { SinterError } from '../errors.ts';
import type { Graph } from '../ir/graph.ts';
import { storedType } from '../ir/stored.ts';
import type {
  BundledImage,
  BundledKernel,
  BundledProgram,
  BundleTarget,
  BundleEntry,
  Manifest,
  Ports,
  BundleWeight,
} from '../bundle-runtime/manifest.ts';
import type { HostTensor } from '../io/host.ts';
import type { Program, ProgramKernel } from '../runtime/program.ts';
import { gpuTarget, softwareTarget, wasmTarget, type Target } from '../schedule/target.ts';
import type { Value } from '../tensor/values.ts';
import { type ImageCompiler, cudaTargetFor, usualArchs } from './cuda-images.ts';
import type { EntryPoint, EntryResult, TracedEntry, Wire, Wiring } from './entry.ts';
import { uniqueName, twin } from './names.ts';
import { filesOf, guideOf, packageOf, scriptOf, typesOf } from './texts.ts';
import { recordedEntry, type RecordedEntry } from './recorded.ts';
import type { OpenPoint } from './sizes.ts';
import { isPacked, pack, partsOf, type WeightFormat } from './formats.ts';
import { overStored, type Stored } from './storage.ts';
import { WeightTable, weightFiles } from './weights.ts';

export interface BundleOptions {
  readonly targets: readonly BundleTarget[];
  /** What made it, e.g. `sinter 0.1.0`. */
  readonly producer: string;
  /** The bundle's name in its README. */
  readonly title: string;
  /** The tree of tensors that entries take as their first argument, and return; none by default. */
  readonly state?: unknown;
  /** Names of captured tensors; by default they are numbered. */
  readonly names?: ReadonlyMap<Value, string>;
  /** The format of matrices that no call changes; unchanged by default. */
  readonly format?: WeightFormat;
  /** Most bytes of a file of weights; all in one by default. */
  readonly shardSize?: number;
  /** Whether programs check labels and indices; they do by default. */
  readonly checks?: boolean;
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
}

export interface BundleRuntime {
  /** A module that exports `load(options)`. */
  readonly script: string;
  /** By name, as `modulesOf` has them. */
  readonly modules: ReadonlyMap<string, string>;
}

/** The file that `index.js` loads where sizes have ranges. */
export const rangesModule = 'sizes.js';

/** Names of the files that `index.js` loads for some of these targets alone, and of that for ranges. */
export function modulesOf(targets: readonly BundleTarget[]): string[] {
  const lazilyLoaded = targets.filter(
    (target) => target === 'cuda' || (target === 'wasm' && targets.length > 1),
  );
  return [...lazilyLoaded.map((target) => `${target}.js`), rangesModule];
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
  const twice = twin(points.map(({ name }) => name));
  if (twice !== undefined)
    throw new SinterError(
      'E_UNSUPPORTED',
      `build: two functions are called ${twice}, the name of a default export too\n  try: another name`,
    );
  const table = new WeightTable(options.names ?? new Map());
  const recorded: RecordedEntry[] = [];
  const notes: string[] = [];
  for (const point of points) {
    const given: OpenPoint = 'at' in point ? point : { name: point.name, sizes: [{}], at: () => point };
    const open: OpenPoint =
      options.checks === false
        ? { ...given, at: async (sizes) => ({ ...(await given.at(sizes)), checks: false }) }
        : given;
    recorded.push({ name: open.name, ...(await recordedEntry(open, options.state, table, notes)) });
  }
  const { weights, values, stored } = await storedWeights(
    table,
    options.format ?? 'f32',
    recorded.flatMap(({ cases }) => cases.map(({ traced }) => traced)),
  );
  const files = new Map<string, string | Uint8Array>();
  const entries = new Map<string, BundleEntry>();
  for (const { name, cases, entry } of recorded) {
    const programs: Partial<Record<BundleTarget, BundledProgram[]>> = {};
    for (const { traced, sizes: own, least } of cases)
      for (const target of options.targets) {
        const label = cases.length === 1 ? name : [name, ...Object.values(own)].join('-');
        const program = await bundled(label, overStored(traced, stored), target, options, files);
        (programs[target] ??= []).push({ ...program, sizes: own, ...(least && { least }) });
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
  const modules = [...options.runtime.modules].filter(([name]) => name !== rangesModule || hasRanges);
  const names = modules.map(([name]) => name);
  files.set('files.js', filesOf([...files.keys()], names));
  files.set('index.js', scriptOf(manifest, options.runtime.script));
  for (const [name, script] of modules) files.set(name, script);
  files.set('index.d.ts', typesOf(manifest, options.targets));
  files.set('package.json', packageOf(options.targets));
  files.set('README.md', guideOf(manifest, options.title, options.targets, files));
  return { manifest, files, notes };
}

/** Weights as they are stored: their types, their values, and where each weight's begin. */
async function storedWeights(
  table: WeightTable,
  format: WeightFormat,
  traced: readonly TracedEntry[],
): Promise<{ readonly weights: BundleWeight[]; readonly values: HostTensor[]; readonly stored: Stored[] }> {
  const weightsOf = (results: readonly EntryResult[], wires: readonly Wire[]): number[] =>
    results.flatMap((from) => {
      const wire = 'input' in from ? wires[from.input] : undefined;
      return wire !== undefined && 'weight' in wire ? [wire.weight] : [];
    });
  // A weight that a call returns is stored unquantised.
  const shown = new Set(
    traced.flatMap(({ wiring: { results, updates, wires } }) =>
      weightsOf([...results, ...updates.map(({ from }) => from)], wires),
    ),
  );
  const used = new Set(
    traced.flatMap(({ wiring: { wires, updates } }) => [
      ...wires.flatMap((wire) => ('weight' in wire ? [wire.weight] : [])),
      ...updates.map(({ weight }) => weight),
    ]),
  );
  const all = await table.values();
  const weights: BundleWeight[] = [];
  const values: HostTensor[] = [];
  const stored: Stored[] = [];
  const constants: number[] = [];
  const names = new Set(table.all.filter((_, i) => used.has(i)).map(({ name }) => name));
  const isConstant = (i: number): boolean =>
    used.has(i) && !shown.has(i) && !table.isNamed(i) && !table.all[i]!.state;
  for (const [i, weight] of table.all.entries()) {
    const own = !weight.state && !shown.has(i) && isPacked(format, weight) ? format : 'f32';
    // Each recording makes its constants anew.
    const twin = isConstant(i) ? constants.find((other) => isSame(all[other]!, all[i]!)) : undefined;
    if (twin !== undefined) {
      stored.push(stored[twin]!);
      continue;
    }
    if (isConstant(i)) constants.push(i);
    stored.push({ format: own, first: weights.length });
    if (!used.has(i)) continue;
    if (own === 'f32') {
      const { name, state } = weight;
      weights.push({ name, ...storedType(weight), state });
      values.push(all[i]!);
      continue;
    }
    for (const part of partsOf(own, weight.shape))
      weights.push({ name: uniqueName(weight.name + part.suffix, names), ...storedType(part), state: false });
    values.push(...pack(own, all[i]!));
  }
  return { weights, values, stored };
}

function isSame(one: HostTensor, other: HostTensor): boolean {
  return (
    one.dtype === other.dtype &&
    `${one.shape}` === `${other.shape}` &&
    one.data.every((byte, i) => byte === other.data[i])
  );
}

/** An entry's program for a target; its kernels become files, equal ones the same. */
async function bundled(
  name: string,
  { graph, scalars, donate, wiring: traced, inputs: given }: TracedEntry,
  target: BundleTarget,
  options: BundleOptions,
  files: Map<string, string | Uint8Array>,
): Promise<Omit<BundledProgram, 'sizes'>> {
  const { cuda, targets } = targetsOf(options);
  const schedules = await options.schedules?.(target, graph, targets[target], { scalars, donate });
  const compiled = compileGraph(graph, targets[target], {
    scalars,
    donate,
    ...(schedules && { schedules }),
    title: () => `${name}-${target}`,
  });
  const { program, wiring } = withCopies(compiled.program, traced);
  if (program.steps.some(({ kind }) => kind === 'host'))
    throw new SinterError('E_UNSUPPORTED', `build: ${name} has steps that only the interpreter runs`);
  const width = Math.max(2, String(program.kernels.length - 1).length);
  const kernels = program.kernels.map(({ source, ...kernel }, i): BundledKernel => {
    const file = `kernels/${fileWord(name)}-${String(i).padStart(width, '0')}-${kernel.name}.${extensions[target]}`;
    return { ...kernel, file: withFile(files, file, contentOf(target, source)) };
  });
  const ports = portsOf(program, wiring, given.length);
  if (target !== 'cuda') return { ...program, kernels, ports };
  const images = await imagesOf(name, program.kernels, options, files);
  return { ...program, kernels, ports, arch: cuda.arch, images };
}

/**
 * The program, preceded by copies of weights whose old values a call returns and whose values it
 * then replaces.
 */
function withCopies(
  program: Program,
  wiring: Wiring,
): { readonly program: Program; readonly wiring: Wiring } {
  const changed = new Set(wiring.updates.map(({ weight }) => weight));
  const [buffers, outputs] = [[...program.buffers], [...program.outputs]];
  const copies: Program['steps'][number][] = [];
  const results = wiring.results.map((from): EntryResult => {
    const wire = 'input' in from ? wiring.wires[from.input] : undefined;
    if (!('input' in from && wire !== undefined && 'weight' in wire && changed.has(wire.weight))) return from;
    const held = program.inputs[from.input]!;
    const copy = buffers.push({ ...buffers[held]!, role: 'output' }) - 1;
    copies.push({ kind: 'copy', from: held, to: copy });
    return { output: outputs.push(copy) - 1 };
  });
  const steps = [...copies, ...program.steps];
  return { program: { ...program, buffers, outputs, steps }, wiring: { ...wiring, results } };
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

/** Which buffers of a program hold the entry's inputs and outputs, and the bundle's weights. */
function portsOf({ inputs, outputs }: Program, wiring: Wiring, count: number): Ports {
  const { wires, sources, results, updates, draws, checks } = wiring;
  const bufferOf = (from: EntryResult): number =>
    'output' in from ? outputs[from.output]! : inputs[from.input]!;
  return {
    args: Array.from({ length: count }, (_, argument) => {
      const at = wires.findIndex((wire) => 'argument' in wire && wire.argument === argument);
      return inputs[at] ?? -1;
    }),
    weights: wires.flatMap((wire, i) => ('weight' in wire ? [{ ...wire, buffer: inputs[i]! }] : [])),
    scalars: sources,
    results: results.map(bufferOf),
    updates: updates.map(({ weight, from }) => ({ weight, buffer: bufferOf(from) })),
    draws,
    ...(checks.length > 0 && {
      checks: checks.map(({ from, ...check }) => ({ ...check, buffer: bufferOf(from) })),
    }),
  };
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
