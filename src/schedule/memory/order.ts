// The order kernels run in.

import { CompilerBug } from '../../errors.ts';
import type { Node } from '../../ir/graph.ts';
import type { Kernel } from '../kernel.ts';
import { membersOf, type Packs } from '../merge/pack.ts';

/**
 * Kahn's algorithm over "reads what another writes", earliest recorded first. A kernel whose result
 * may overwrite a donated parameter is delayed, while other kernels can run, until the parameter's
 * other readers are done: only then is writing in place safe.
 */
export function orderKernels(
  kernels: readonly Kernel[],
  donations: ReadonlyMap<Node, Node>,
  packs: Packs = new Map(),
): Kernel[] {
  const writers = new Map<Node, Kernel[]>();
  const readersLeft = new Map<Node, number>();
  const reads = new Map<Kernel, ReadonlySet<Node>>();
  const writes = new Map<Kernel, readonly Node[]>();
  for (const kernel of kernels) {
    reads.set(kernel, new Set(kernel.reads.flatMap((node) => membersOf(node, packs))));
    writes.set(
      kernel,
      kernel.writes.flatMap(({ node }) => membersOf(node, packs)),
    );
    for (const node of new Set(writes.get(kernel)!))
      writers.set(node, [...(writers.get(node) ?? []), kernel]);
    for (const node of reads.get(kernel)!) readersLeft.set(node, (readersLeft.get(node) ?? 0) + 1);
  }
  const readers = new Map<Kernel, Kernel[]>();
  const waiting = new Map<Kernel, number>();
  for (const kernel of kernels) {
    const sources = new Set([...reads.get(kernel)!].flatMap((node) => writers.get(node) ?? []));
    waiting.set(kernel, sources.size);
    for (const source of sources) {
      const list = readers.get(source);
      if (list === undefined) readers.set(source, [kernel]);
      else list.push(kernel);
    }
  }
  const overwritesEarly = (kernel: Kernel): boolean =>
    writes.get(kernel)!.some((node) => {
      const parameter = donations.get(node);
      if (parameter === undefined) return false;
      return (readersLeft.get(parameter) ?? 0) > (reads.get(kernel)!.has(parameter) ? 1 : 0);
    });
  const age = (kernel: Kernel): number => Math.min(...kernel.writes.map((write) => write.node.id));
  const ready = kernels.filter((kernel) => waiting.get(kernel) === 0).sort((a, b) => age(a) - age(b));
  const ordered: Kernel[] = [];
  const held: Kernel[] = [];
  const run = (kernel: Kernel): void => {
    ordered.push(kernel);
    for (const node of reads.get(kernel)!) readersLeft.set(node, readersLeft.get(node)! - 1);
    for (const reader of readers.get(kernel) ?? []) {
      waiting.set(reader, waiting.get(reader)! - 1);
      if (waiting.get(reader) === 0) ready.push(reader);
    }
  };
  for (let next = 0; next < ready.length || held.length > 0;) {
    const safe = held.findIndex((kernel) => !overwritesEarly(kernel));
    if (safe >= 0) run(held.splice(safe, 1)[0]!);
    else if (next === ready.length) run(held.shift()!);
    else {
      const kernel = ready[next++]!;
      if (overwritesEarly(kernel)) held.push(kernel);
      else run(kernel);
    }
  }
  if (ordered.length !== kernels.length) {
    throw new CompilerBug('schedule', 'kernels depend on each other in a cycle');
  }
  return ordered;
}
