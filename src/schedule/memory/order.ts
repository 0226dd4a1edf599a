// The order in which kernels run. It is the recorded order, unless barriers say that values are computed
// again to save memory. Then memory is freed as early as possible, and kernels behind a barrier come late.

import { CompilerBug } from '../../errors.ts';
import { nodeBytes, type Node } from '../../ir/graph.ts';
import type { Kernel } from '../kernel.ts';
import { membersOf, type Packs } from './pack.ts';
import { eventsOf } from './barrier.ts';

/**
 * Kahn's algorithm over "reads what another writes", earliest recorded first. A kernel whose result
 * may overwrite a donated parameter is delayed, while other kernels can run, until the parameter's
 * other readers are done: only then is writing in place safe. So is a kernel behind a barrier, until
 * what the barrier waits for is computed; where there are barriers, or `isFrugal`, kernels that take no more memory
 * than they give back come first of all that are ready.
 */
export function orderKernels(
  kernels: readonly Kernel[],
  donations: ReadonlyMap<Node, Node>,
  packs: Packs = new Map(),
  isFrugal = false,
): readonly Kernel[] {
  if (kernels.length < 2) return kernels;
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
  const events = eventsOf(kernels, (node) => writers.get(node) ?? []);
  const hasBarriers = isFrugal || events.size > 0;
  const done = new Set<Kernel>();
  const waits = (kernel: Kernel): boolean =>
    overwritesEarly(kernel) || (events.get(kernel) ?? []).some((event) => !done.has(event));
  /** Bytes that the kernel takes, less those that it is the last to read. */
  const growth = (kernel: Kernel): number => {
    let bytes = 0;
    for (const node of writes.get(kernel)!) if ((readersLeft.get(node) ?? 0) > 0) bytes += nodeBytes(node);
    for (const node of reads.get(kernel)!)
      if (writers.has(node) && readersLeft.get(node) === 1) bytes -= nodeBytes(node);
    return bytes;
  };
  const age = (kernel: Kernel): number => Math.min(...kernel.writes.map((write) => write.node.id));
  const ready = kernels.filter((kernel) => waiting.get(kernel) === 0).sort((a, b) => age(a) - age(b));
  /** Brings the kernel that is to run next to the place `at` of those that are ready. */
  const choose = (at: number): void => {
    const rank = (kernel: Kernel): readonly [number, number] => [Math.min(growth(kernel), 1), age(kernel)];
    let best = at;
    let least = rank(ready[at]!);
    for (let i = at + 1; i < ready.length; i++) {
      const found = rank(ready[i]!);
      if (found[0] < least[0] || (found[0] === least[0] && found[1] < least[1])) [best, least] = [i, found];
    }
    [ready[at], ready[best]] = [ready[best]!, ready[at]!];
  };
  const ordered: Kernel[] = [];
  const held: Kernel[] = [];
  const run = (kernel: Kernel): void => {
    ordered.push(kernel);
    done.add(kernel);
    for (const node of reads.get(kernel)!) readersLeft.set(node, readersLeft.get(node)! - 1);
    for (const reader of readers.get(kernel) ?? []) {
      waiting.set(reader, waiting.get(reader)! - 1);
      if (waiting.get(reader) === 0) ready.push(reader);
    }
  };
  for (let next = 0; next < ready.length || held.length > 0;) {
    const safe = held.findIndex((kernel) => !waits(kernel));
    if (safe >= 0) {
      const [kernel] = held.splice(safe, 1) as [Kernel];
      // What has waited long enough is one of those that are ready.
      if (hasBarriers && next < ready.length && !overwritesEarly(kernel)) ready.push(kernel);
      else run(kernel);
    } else if (next === ready.length) run(held.shift()!);
    else {
      if (hasBarriers) choose(next);
      const kernel = ready[next++]!;
      if (waits(kernel)) held.push(kernel);
      else run(kernel);
    }
  }
  if (ordered.length !== kernels.length) {
    throw new CompilerBug('schedule', 'kernels depend on each other in a cycle');
  }
  return ordered;
}
