// Small kernels that do not depend on each other share a dispatch: each has its own workgroups in
// it (Li et al., Automatic Horizontal Fusion for GPU Kernels, 2022). Small reductions cost mostly
// their launches.

import { nodeBytes, type Node } from '../../ir/graph.ts';
import type { Kernel } from '../kernel.ts';
import { isBehindBarrier } from '../memory/barrier.ts';
import { membersOf, type Packs } from '../memory/pack.ts';
import type { Target } from '../target.ts';

/** The workgroup that a kernel's generated code needs. */
export interface GroupShape {
  readonly invocations: number;
  readonly workgroupBytes: number;
  /** Without barriers, some invocations of a workgroup may be idle. */
  readonly barriers: boolean;
}

/** A kernel is small if it runs no longer than this many launches. */
const smallLaunches = 2;

/** Kernels in one dispatch. */
const mostParts = 8;

/**
 * Puts small independent kernels together, as far as bindings and workgroup memory allow; undefined
 * where there are none to put together. The result is in no order.
 */
export function batchDispatches(
  kernels: readonly Kernel[],
  packs: Packs,
  target: Target,
  shapeOf: (kernel: Kernel) => GroupShape,
): Kernel[] | undefined {
  const small = kernels.map((kernel) => isSmall(kernel, target));
  if (small.filter(Boolean).length < 2) return undefined;
  const reach = new Reach(kernels, packs);
  const shapes = kernels.map((kernel, i) => (small[i] ? shapeOf(kernel) : undefined));
  const fitsIn = (group: readonly number[]): boolean =>
    fits(
      group.map((at) => kernels[at]!),
      target,
      group.map((at) => shapes[at]!),
    );
  const groups: number[][] = [];
  /** Groups that take more parts. */
  const open: number[][] = [];
  const grouped = new Set<number>();
  for (const i of kernels.keys()) {
    if (!small[i]) continue;
    const at = open.findIndex((group) => !reach.dependent(group, i) && fitsIn([...group, i]));
    const into = open[at];
    if (into === undefined) {
      groups.push([i]);
      open.push(groups.at(-1)!);
      continue;
    }
    reach.merge(into, i);
    into.push(i);
    for (const part of into) grouped.add(part);
    if (into.length === mostParts) open.splice(at, 1);
  }
  if (grouped.size === 0) return undefined;
  const alone = kernels.filter((_, i) => !grouped.has(i));
  const shared = groups.filter((group) => group.length > 1);
  return [...alone, ...shared.map((group) => together(group.map((i) => kernels[i]!)))];
}

function isSmall(kernel: Kernel, target: Target): boolean {
  const { kind, bytes, flops } = kernel;
  if ((kind !== 'map' && kind !== 'row-reduction') || isBehindBarrier(kernel)) return false;
  return bytes / target.bandwidth + flops / target.arithmetic <= smallLaunches * target.launch;
}

function fits(kernels: readonly Kernel[], target: Target, shapes: readonly GroupShape[]): boolean {
  const { storageBuffers, workgroupBytes } = target.limits;
  const bound = new Set(
    kernels.flatMap(({ reads, writes }) => [...reads, ...writes.map(({ node }) => node)]),
  );
  const invocations = Math.max(...shapes.map((shape) => shape.invocations));
  return (
    bound.size <= storageBuffers &&
    shapes.reduce((sum, shape) => sum + shape.workgroupBytes, 0) <= workgroupBytes &&
    shapes.every((shape) => shape.invocations === invocations || !shape.barriers)
  );
}

function together(parts: readonly Kernel[]): Kernel {
  const [first] = parts as readonly [Kernel, ...Kernel[]];
  const sum = (count: (kernel: Kernel) => number): number =>
    parts.reduce((all, kernel) => all + count(kernel), 0);
  const reads = new Set<Node>(parts.flatMap((kernel) => kernel.reads));
  // What several parts read is counted once.
  const repeated = sum((kernel) => kernel.reads.reduce((bytes, node) => bytes + nodeBytes(node), 0));
  const once = [...reads].reduce((bytes, node) => bytes + nodeBytes(node), 0);
  return {
    ...first,
    kind: 'batched-dispatch',
    body: { kind: 'batched-dispatch', parts },
    reads: [...reads],
    writes: parts.flatMap((kernel) => kernel.writes),
    nodes: [...new Set(parts.flatMap((kernel) => kernel.nodes))],
    flops: sum((kernel) => kernel.flops),
    bytes: sum((kernel) => kernel.bytes) - repeated + once,
  };
}

/** The transitive dependencies of each kernel; kernels of one dispatch count as one. */
class Reach {
  /** A bit set for each kernel: the kernel and all that must run before it. */
  readonly #before: Uint32Array[];

  constructor(kernels: readonly Kernel[], packs: Packs) {
    const writers = new Map<Node, number[]>();
    const words = Math.ceil(kernels.length / 32);
    this.#before = [];
    for (const [i, { reads, writes }] of kernels.entries()) {
      const row = new Uint32Array(words);
      row[i >> 5]! |= 1 << (i & 31);
      for (const node of reads.flatMap((read) => membersOf(read, packs)))
        for (const at of writers.get(node) ?? []) join(row, this.#before[at]!);
      for (const node of writes.flatMap((write) => membersOf(write.node, packs)))
        writers.set(node, [...(writers.get(node) ?? []), i]);
      this.#before.push(row);
    }
  }

  /** Whether one of the group needs kernel `i`, or it one of them. */
  dependent(group: readonly number[], i: number): boolean {
    return group.some((at) => has(this.#before[i]!, at) || has(this.#before[at]!, i));
  }

  merge(group: readonly number[], i: number): void {
    const both = this.#before[i]!.slice();
    for (const at of group) join(both, this.#before[at]!);
    for (const row of this.#before) {
      if (has(row, i) || group.some((at) => has(row, at))) join(row, both);
    }
  }
}

function has(row: Uint32Array, i: number): boolean {
  return ((row[i >> 5]! >>> (i & 31)) & 1) === 1;
}

function join(into: Uint32Array, from: Uint32Array): void {
  for (let word = 0; word < into.length; word++) into[word]! |= from[word]!;
}
