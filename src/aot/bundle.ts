// `sinter build`: functions compiled ahead of time into a folder of files that run without Sinter. Everything is data in, data out; who
// writes the files is the caller's affair.

import { compileGraph } from '../compile.ts';
import { SinterError } from '../errors.ts';
import type {
  BundledImage,
  BundledKernel,
  BundledProgram,
  BundleTarget,
  Entry,
  Manifest,
  Weight,
} from '../player/manifest.ts';
import type { HostTensor } from '../io/host.ts';
import type { ProgramKernel } from '../runtime/program.ts';
import { gpuTarget, wasmTarget } from '../schedule/target.ts';
import type { Handle } from '../tensor/handle.ts';
import type { ImageCompiler } from './cuda-images.ts';
import { cudaTargetFor, usualArchs } from './cuda-target.ts';
import { traceEntry, type EntryPoint, type TracedEntry } from './entry.ts';
import { guideOf, packageOf, scriptOf, typesOf } from './texts.ts';
import { isPacked, pack, partsOf, type WeightFormat } from './formats.ts';
import { overStored, type Stored } from './storage.ts';
import { WeightTable, weightFiles } from './weights.ts';

export interface BundleOptions {
  readonly targets: readonly BundleTarget[];
  /** What made it, e.g. `sinter 0.1.0`. */
  readonly producer: string;
  /** What the bundle is called in its README. */
  readonly title: string;
  /** The tree of tensors that entries take first, and hand on. */
  readonly state?: unknown;
  /** Names of captured tensors. */
  readonly names?: ReadonlyMap<Handle, string>;
  /** How matrices are stored that no call changes; as they are by default. */
  readonly format?: WeightFormat;
  /** Most bytes of a file of weights; all in one by default. */
  readonly shardSize?: number;
  /** The code that runs bundles for these targets, and the files that it loads beside it. */
  readonly player: Player;
  /** What GPUs CUDA's kernels are compiled for, and by what; without a compiler a bundle has their sources alone. */
  readonly archs?: readonly string[];
  readonly compiler?: ImageCompiler;
}

export interface Player {
  /** Leaves `sinterPlayer` behind, with `loadBundle`. */
  readonly script: string;
  /** By name: `cuda.js`. */
  readonly modules: ReadonlyMap<string, string>;
}

export interface Bundle {
  readonly manifest: Manifest;
  /** Contents by path in the folder. */
  readonly files: ReadonlyMap<string, string | Uint8Array>;
}

/** Compiles entries for targets. Throws what the compiler has against them, and E_UNSUPPORTED at what no bundle can do. */
export async function bundleOf(points: readonly EntryPoint[], options: BundleOptions): Promise<Bundle> {
  const table = new WeightTable(options.names ?? new Map());
  const traced = points.map((point) => ({ point, traced: traceEntry(point, options.state, table) }));
  const { weights, values, stored } = await storedWeights(
    table,
    options.format ?? 'f32',
    traced.map((one) => one.traced),
  );
  const files = new Map<string, string | Uint8Array>();
  const entries: Record<string, Entry> = {};
  for (const { point, traced: recorded } of traced) {
    const one = overStored(recorded, stored);
    const programs: Partial<Record<BundleTarget, BundledProgram>> = {};
    for (const target of options.targets)
      programs[target] = await bundled(point, one, target, options, files);
    entries[point.name] = { ...one.entry, programs };
  }
  const shards = weightFiles(weights, values, options.shardSize ?? Infinity);
  for (const { file, bytes } of shards) files.set(file.name, bytes);
  const manifest: Manifest = {
    version: 1,
    producer: options.producer,
    weights,
    files: shards.map(({ file }) => file),
    entries,
  };
  files.set('program.json', `${JSON.stringify(manifest)}\n`);
  files.set('index.js', scriptOf(manifest, options.player.script));
  for (const [name, script] of options.player.modules) files.set(name, script);
  files.set('index.d.ts', typesOf(manifest, options.targets));
  files.set('package.json', packageOf(options.targets));
  files.set('README.md', guideOf(manifest, options.title, options.targets, files));
  return { manifest, files };
}

/** Weights as they are stored: their types, their values, and where each weight's begin. */
async function storedWeights(
  table: WeightTable,
  format: WeightFormat,
  traced: readonly TracedEntry[],
): Promise<{ readonly weights: Weight[]; readonly values: HostTensor[]; readonly stored: Stored[] }> {
  // What a call hands out is handed out as it is.
  const shown = new Set(
    traced.flatMap(({ entry: { outputs, updates, wiring } }) =>
      [...outputs, ...updates].flatMap(({ from }) => {
        const wire = 'input' in from ? wiring[from.input] : undefined;
        return wire !== undefined && 'weight' in wire ? [wire.weight] : [];
      }),
    ),
  );
  const all = await table.values();
  const weights: Weight[] = [];
  const values: HostTensor[] = [];
  const stored = table.all.map((weight, i): Stored => {
    const own = !weight.state && !shown.has(i) && isPacked(format, weight) ? format : 'f32';
    const first = weights.length;
    if (own === 'f32') {
      weights.push(weight);
      values.push(all[i]!);
      return { format: own, first };
    }
    for (const { suffix, dtype, shape } of partsOf(own, weight.shape))
      weights.push({ name: weight.name + suffix, dtype, shape, state: false });
    values.push(...pack(own, all[i]!));
    return { format: own, first };
  });
  return { weights, values, stored };
}

/** An entry's program for a target; its kernels become files, equal ones the same. */
async function bundled(
  { name }: EntryPoint,
  { graph, scalars, donate }: TracedEntry,
  target: BundleTarget,
  options: BundleOptions,
  files: Map<string, string | Uint8Array>,
): Promise<BundledProgram> {
  const cuda = cudaTargetFor(options.archs ?? usualArchs);
  const targets = { cuda: cuda.target, webgpu: gpuTarget, wasm: wasmTarget };
  const { program } = compileGraph(graph, targets[target], { scalars, donate });
  if (program.steps.some(({ kind }) => kind === 'host'))
    throw new SinterError('E_UNSUPPORTED', `build: ${name} has steps that only the interpreter runs`);
  const width = Math.max(2, String(program.kernels.length - 1).length);
  const kernels = program.kernels.map(({ source, ...kernel }, i): BundledKernel => {
    const file = `kernels/${name}-${String(i).padStart(width, '0')}-${kernel.name}.${extensions[target]}`;
    return { ...kernel, file: withFile(files, file, contentOf(target, source)) };
  });
  if (target !== 'cuda') return { ...program, kernels };
  const images = await imagesOf(name, program.kernels, options, files);
  return { ...program, kernels, arch: cuda.arch, images };
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
    const path = `kernels/${entry}-${arch}.${arch.startsWith('sm_') ? 'cubin' : 'ptx'}`;
    images.push({ arch, file: withFile(files, path, await compiler.compile(kernels, arch)) });
  }
  return images;
}

function contentOf(target: BundleTarget, source: ProgramKernel['source']): string | Uint8Array {
  return target === 'wasm' ? Uint8Array.from(atob(source), (letter) => letter.charCodeAt(0)) : source;
}

/** The path of a file with this content: one that there is, else a new one. */
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
  files.set(path, content);
  return path;
}
