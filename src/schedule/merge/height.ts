// How far each kernel is from the end of the program: kernels of one height cannot depend on each
// other.

import type { Node } from '../../ir/graph.ts';
import type { Kernel } from '../kernel.ts';

/** The longest path from each kernel to one whose results no kernel reads. */
export function heightsOf(kernels: readonly Kernel[]): Map<Kernel, number> {
  // Several kernels may write parts of one value.
  const writers = new Map<Node, Set<Kernel>>();
  for (const kernel of kernels) {
    for (const { node } of kernel.writes) writers.set(node, (writers.get(node) ?? new Set()).add(kernel));
  }
  const sources = new Map<Kernel, Set<Kernel>>();
  const readers = new Map<Kernel, number>();
  for (const kernel of kernels) {
    const from = new Set(kernel.reads.flatMap((node) => [...(writers.get(node) ?? [])]));
    sources.set(kernel, from);
    for (const source of from) readers.set(source, (readers.get(source) ?? 0) + 1);
  }
  const heights = new Map<Kernel, number>(kernels.map((kernel) => [kernel, 0]));
  const ready = kernels.filter((kernel) => !readers.has(kernel));
  for (let kernel = ready.pop(); kernel !== undefined; kernel = ready.pop()) {
    for (const source of sources.get(kernel)!) {
      heights.set(source, Math.max(heights.get(source)!, heights.get(kernel)! + 1));
      const left = readers.get(source)! - 1;
      readers.set(source, left);
      if (left === 0) ready.push(source);
    }
  }
  return heights;
}
