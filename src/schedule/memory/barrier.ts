// The kernels that a kernel must wait for because of barriers: a kernel behind a barrier waits for the
// kernels that compute the barrier's event.

import { readInputs, type Node } from '../../ir/graph.ts';
import type { Kernel } from '../kernel.ts';

/** Whether the kernel reads anything through a barrier: it is to run late, so nothing joins it. */
export function isBehindBarrier({ nodes }: Kernel): boolean {
  return nodes.some(({ op }) => op === 'barrier');
}

/**
 * Of each kernel behind barriers, the kernels that should have run before. An event that no kernel
 * writes is computed by its readers: what these need for it counts then.
 */
export function eventsOf(
  kernels: readonly Kernel[],
  writersOf: (node: Node) => readonly Kernel[],
): Map<Kernel, readonly Kernel[]> {
  const found = new Map<Node, ReadonlySet<Kernel>>();
  const computing = (event: Node): ReadonlySet<Kernel> => {
    const known = found.get(event);
    if (known !== undefined) return known;
    const all = new Set<Kernel>();
    const seen = new Set<Node>([event]);
    for (const node of seen) {
      const writers = writersOf(node);
      for (const writer of writers) all.add(writer);
      if (writers.length === 0) for (const input of readInputs(node)) seen.add(input);
    }
    found.set(event, all);
    return all;
  };
  const events = new Map<Kernel, readonly Kernel[]>();
  for (const kernel of kernels) {
    const before = new Set<Kernel>();
    for (const { op, inputs } of kernel.nodes)
      if (op === 'barrier') for (const other of computing(inputs[1]!)) before.add(other);
    before.delete(kernel);
    if (before.size > 0) events.set(kernel, [...before]);
  }
  return events;
}
