// When a planned program computes each value, how long it keeps it, and where most of them are in
// memory at once.

import { topological, type Graph, type Node } from '../../ir/graph.ts';
import type { Kernel } from '../kernel.ts';
import type { MemoryPlan } from '../memory/plan.ts';
import { membersOf, type Packs } from '../memory/pack.ts';

/** A graph with its kernels in order, and the bytes that a run of them takes. */
export interface Planned {
  readonly graph: Graph;
  readonly kernels: readonly Kernel[];
  readonly packs: Packs;
  /** Whether an intermediate value has a place in memory. */
  readonly isPlaced: (node: Node) => boolean;
  readonly bytesOf: (node: Node) => number;
  /** Device memory of a run: inputs, outputs and intermediates; and of the first two. */
  readonly bytes: number;
  readonly ends: number;
  /** Arithmetic of all kernels. */
  readonly flops: number;
}

/** A value in memory. */
export interface StoredSpan {
  readonly node: Node;
  readonly bytes: number;
  /** The kernels, by place, that write it first and read it last. */
  readonly from: number;
  readonly to: number;
  /** The last kernel up to the peak that reads it. */
  readonly lastEarly: number;
}

export interface MemoryTimeline {
  /** The nodes of the graph, inputs before users. */
  readonly order: readonly Node[];
  /** The first kernel that evaluates a node. */
  readonly timeOf: (node: Node) => number;
  /** The kernel at which most bytes are in memory. */
  readonly peak: number;
  readonly stored: ReadonlyMap<Node, StoredSpan>;
  /**
   * What the last kernel before `time` that computes anything writes, of values whose own time is
   * before it; undefined where there is none.
   */
  readonly writtenBefore: (time: number) => Node | undefined;
}

export function timelineOf({ graph, kernels, packs, isPlaced, bytesOf }: Planned): MemoryTimeline {
  const first = new Map<Node, number>();
  const last = new Map<Node, number>();
  const written = new Map<Node, number>();
  const writes = kernels.map((kernel) => kernel.writes.flatMap(({ node }) => membersOf(node, packs)));
  const reads = kernels.map((kernel) => kernel.reads.flatMap((node) => membersOf(node, packs)));
  kernels.forEach((kernel, i) => {
    for (const node of [...kernel.nodes, ...writes[i]!]) if (!first.has(node)) first.set(node, i);
    for (const node of writes[i]!) if (!written.has(node)) written.set(node, i);
    for (const node of reads[i]!) last.set(node, i);
  });
  const change = new Array<number>(kernels.length + 1).fill(0);
  for (const [node, from] of written) {
    if (!isPlaced(node)) continue;
    change[from]! += bytesOf(node);
    change[Math.max(from, last.get(node) ?? from) + 1]! -= bytesOf(node);
  }
  let [live, most, peak] = [0, -1, 0];
  kernels.forEach((_, i) => {
    live += change[i]!;
    if (live > most) [most, peak] = [live, i];
  });
  const lastEarly = new Map<Node, number>();
  for (let i = 0; i <= peak && i < kernels.length; i++) for (const node of reads[i]!) lastEarly.set(node, i);
  const stored = new Map<Node, StoredSpan>();
  for (const [node, from] of written) {
    if (!isPlaced(node)) continue;
    const to = Math.max(from, last.get(node) ?? from);
    stored.set(node, { node, bytes: bytesOf(node), from, to, lastEarly: lastEarly.get(node) ?? from });
  }
  const order = topological(graph.outputs);
  const times = new Map<Node, number>();
  for (const node of order) {
    const inputs = node.inputs.map((input) => times.get(input)!);
    times.set(node, Math.max(first.get(node) ?? 0, 0, ...inputs));
  }
  return {
    order,
    timeOf: (node) => times.get(node)!,
    peak,
    stored,
    writtenBefore: (time) => {
      for (let i = Math.min(time, kernels.length) - 1; i >= 0; i--) {
        // A kernel may come before what it does not read of its values' inputs, such as what a barrier
        // waits for: such a value has a later time, and to wait for it could be to wait for oneself.
        const early = writes[i]!.filter((each) => (times.get(each) ?? Infinity) < time);
        const [node] = early.sort((a, b) => b.id - a.id);
        if (node !== undefined) return node;
      }
      return undefined;
    },
  };
}

/** A schedule and its memory as what a budget is compared with. */
export function plannedOf(
  graph: Graph,
  inputs: readonly Node[],
  { kernels, packs }: { readonly kernels: readonly Kernel[]; readonly packs: Packs },
  { placeOf, arenas, overwrites }: Pick<MemoryPlan, 'placeOf' | 'arenas' | 'overwrites'>,
  bytesOf: (node: Node) => number,
): Planned {
  const given = new Set(inputs);
  const fresh = new Set(
    graph.outputs.filter((node) => !given.has(node) && !given.has(overwrites.get(node)!)),
  );
  const ends = [...given, ...fresh].reduce((sum, node) => sum + bytesOf(node), 0);
  return {
    graph,
    kernels,
    packs,
    isPlaced: (node) => placeOf.has(node),
    bytesOf,
    ends,
    bytes: ends + arenas.reduce((sum, bytes) => sum + bytes, 0),
    flops: kernels.reduce((sum, { flops }) => sum + flops, 0),
  };
}
