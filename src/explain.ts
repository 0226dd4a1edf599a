// explain: what a function or a pending tensor becomes, graph to kernels, without running it and without a device. Counts are
// the compiler's own: arithmetic, and the bytes each kernel must move at least.

import { compileGraph, type KernelSummary } from './compile.ts';
import { explanationPage } from './explain-html.ts';
import { SinterError } from './errors.ts';
import { rewrite, type Graph, type Node } from './ir/graph.ts';
import { print } from './ir/print.ts';
import type { Program } from './runtime/program.ts';
import { nodeBytes } from './schedule/cost.ts';
import { gpuTarget, softwareTarget, type Target } from './schedule/target.ts';
import { expectFunction } from './tensor/expect.ts';
import { storageOf } from './tensor/leaf.ts';
import { canonical } from './tensor/recording.ts';
import { graphOf, skeletonOf } from './tensor/skeleton.ts';
import { nodeOf } from './tensor/record.ts';
import { Tensor } from './tensor/tensor.ts';
import { traceFlat, type Traced } from './tensor/trace-function.ts';
import { flatten } from './tensor/tree.ts';
import { showBytes, showCount, table } from './table.ts';

/** One kernel of an explanation, in the order the kernels run. */
export type ExplainedKernel = KernelSummary;

/** Sums over the kernels of an explanation. */
export interface Totals {
  readonly kernels: number;
  readonly flops: number;
  /** Every distinct element a kernel reads once, and every element it writes once, over all kernels. */
  readonly bytes: number;
  /** What one perfect kernel would move: each input read once, each output written once. */
  readonly lowerBoundBytes: number;
}

/** Device memory of one run, in bytes. */
export interface MemoryUse {
  readonly inputs: number;
  readonly outputs: number;
  /** Intermediate values that reach memory, sharing what they can. */
  readonly scratch: number;
  readonly peak: number;
}

/** The plain data of an explanation. */
export interface Explained {
  readonly target: string;
  /** The recorded graph as IR text, before any pass. */
  readonly graph: string;
  readonly kernels: readonly ExplainedKernel[];
  readonly totals: Totals;
  readonly memory: MemoryUse;
}

/** What a program will do: read its fields, print it, or write `toHTML()` to a file. */
export class Explanation implements Explained {
  readonly target: string;
  readonly graph: string;
  readonly kernels: readonly ExplainedKernel[];
  readonly totals: Totals;
  readonly memory: MemoryUse;

  constructor({ target, graph, kernels, totals, memory }: Explained) {
    this.target = target;
    this.graph = graph;
    this.kernels = kernels;
    this.totals = totals;
    this.memory = memory;
  }

  /** The graph, then a table of its kernels; sources are left to `kernels` and `toHTML`. */
  toString(): string {
    const { totals, memory } = this;
    const rows = this.kernels.map((kernel, i) => [
      String(i),
      kernel.name,
      kernel.kind,
      kernel.reads.join(' '),
      kernel.writes.join(' '),
      showCount(kernel.flops),
      showBytes(kernel.bytes),
      kernel.schedule,
    ]);
    const sum =
      `${totals.kernels} ${totals.kernels === 1 ? 'kernel' : 'kernels'} for ${this.target}: ` +
      `${showCount(totals.flops)} flops, ${showBytes(totals.bytes)} moved, at least ${showBytes(totals.lowerBoundBytes)}; ` +
      `memory ${showBytes(memory.peak)}, of it ${showBytes(memory.scratch)} scratch`;
    const head = ['#', 'kernel', 'kind', 'reads', 'writes', 'flops', 'bytes', 'schedule'];
    return [this.graph, ...(rows.length === 0 ? [] : [table(head, rows, [5, 6]), '']), sum].join('\n');
  }

  /** Plain data for `JSON.stringify`. */
  toJSON(): Explained {
    const { target, graph, kernels, totals, memory } = this;
    return { target, graph, kernels, totals, memory };
  }

  /** One self-contained page: totals, kernels with their sources, graph. */
  toHTML(): string {
    return explanationPage(this);
  }
}

/**
 * What computing `subject` would run: a function, traced on `args` (trees of tensors and numbers; only their shapes count), or
 * a pending tensor, which stays pending. Nothing is computed and no device is needed; kernels are those for a GPU.
 */
export function explain(
  subject: Tensor | ((...args: never[]) => unknown),
  ...args: readonly unknown[]
): Explanation {
  return explainFor(gpuTarget, subject, ...args);
}

/** As `explain`, for another target: `targetOf(device.facts)` is that of an open device. */
export function explainFor(
  target: Target,
  subject: Tensor | ((...args: never[]) => unknown),
  ...args: readonly unknown[]
): Explanation {
  const { graph, scalars } = subjectGraph(subject, args);
  const { program, kernels } = compileGraph(graph, target, { scalars });
  const moved = (pick: (kernel: KernelSummary) => number): number =>
    kernels.reduce((sum, kernel) => sum + pick(kernel), 0);
  return new Explanation({
    target: target.name,
    graph: print(graph),
    kernels,
    totals: {
      kernels: kernels.length,
      flops: moved((kernel) => kernel.flops),
      bytes: moved((kernel) => kernel.bytes),
      lowerBoundBytes: lowerBound(graph, scalars),
    },
    memory: memoryUse(program),
  });
}

/** A generated kernel. */
export interface LoweredSource {
  readonly name: string;
  readonly kind: string;
  readonly source: string;
}

export interface LowerOptions {
  /** Which language; `wgsl` is the only one so far. */
  readonly target?: string;
  /** Schedules kernels for a software adapter instead of a GPU. */
  readonly software?: boolean;
}

/**
 * The kernels of `fn` as sources, in the order they run, without a device. Throws E_UNSUPPORTED for a target that there is no
 * generator for.
 */
export function lower(
  fn: Tensor | ((...args: never[]) => unknown),
  args: readonly unknown[] = [],
  options: LowerOptions = {},
): LoweredSource[] {
  const { target = 'wgsl', software = false } = options;
  if (target !== 'wgsl') {
    throw new SinterError('E_UNSUPPORTED', `lower: there is no target ${target}: expected wgsl`);
  }
  const { graph, scalars } = subjectGraph(fn, args);
  const { kernels } = compileGraph(graph, software ? softwareTarget : gpuTarget, { scalars });
  return kernels.map(({ name, kind, source }) => ({ name, kind, source }));
}

interface SubjectGraph {
  readonly graph: Graph;
  readonly scalars: ReadonlySet<number>;
}

function subjectGraph(
  subject: Tensor | ((...args: never[]) => unknown),
  args: readonly unknown[],
): SubjectGraph {
  if (subject instanceof Tensor) {
    const leaf = (node: Node): object | undefined => {
      const storage = storageOf(node);
      return storage?.lost === undefined ? storage : undefined;
    };
    const skeleton = skeletonOf([canonical(nodeOf(subject))], leaf);
    return { graph: graphOf(skeleton, skeleton.outputs, () => undefined), scalars: new Set() };
  }
  expectFunction('explain', subject);
  const flat = flatten(args, 'explain');
  const traced = traceFlat(subject, flat);
  return { graph: withNames(traced, flat.paths), scalars: traced.scalarIndices };
}

/** The traced graph with parameters named after where they come from: `arg0.layers[1].w`, `captured2`, `seed0`. */
function withNames(traced: Traced, paths: readonly string[]): Graph {
  const argument = (leaf: number): string => paths[leaf]!.replace(/^\[(\d+)\]/, 'arg$1');
  let [tensor, scalar] = [0, 0];
  const names = traced.graph.parameters.map((_, i) => {
    if (traced.scalarIndices.has(i)) {
      const origin = traced.scalars[scalar++]!;
      return origin.kind === 'number' ? argument(origin.leaf) : `${origin.kind}${scalar - 1}`;
    }
    const { origin, part } = traced.inputs[tensor++]!;
    const name = origin.kind === 'argument' ? argument(origin.leaf) : `captured${tensor - 1}`;
    return part === 'grad' ? `${name}.grad` : name;
  });
  return rewrite(traced.graph, (node, _, b) => {
    if (node.op !== 'parameter') return undefined;
    return b.add('parameter', [], { ...node.attrs, name: names[node.attrs.index]! }) as Node;
  });
}

function lowerBound({ parameters, outputs }: Graph, scalars: ReadonlySet<number>): number {
  const read = parameters.filter((_, i) => !scalars.has(i)) as readonly Node[];
  const written = [...new Set(outputs)].filter((node) => node.op !== 'parameter');
  return [...read, ...written].reduce((sum, node) => sum + nodeBytes(node), 0);
}

function memoryUse({ buffers, arenas, inputs, outputs }: Program): MemoryUse {
  const bytesOf = (list: Iterable<number>): number =>
    [...list].reduce((sum, buffer) => sum + buffers[buffer]!.bytes, 0);
  const read = new Set(inputs);
  const use = {
    inputs: bytesOf(read),
    outputs: bytesOf(new Set(outputs.filter((buffer) => !read.has(buffer)))),
    scratch: arenas.reduce((sum, arena) => sum + arena, 0),
  };
  return { ...use, peak: use.inputs + use.outputs + use.scratch };
}
