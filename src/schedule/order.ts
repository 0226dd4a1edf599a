// The order kernels run in, and their names.

import { CompilerBug } from '../errors.ts';
import type { Node } from '../ir/graph.ts';
import type { Op } from '../ir/ops.ts';
import type { Kernel, KernelKind } from './kernel.ts';

/**
 * Kahn's algorithm over "reads what another writes", earliest recorded first. A kernel whose result may overwrite a donated
 * parameter waits, while anything else can run, until the parameter's other readers are done: only then is it safe.
 */
export function orderKernels(kernels: readonly Kernel[], donations: ReadonlyMap<Node, Node>): Kernel[] {
  const writer = new Map<Node, Kernel>();
  const readersLeft = new Map<Node, number>();
  for (const kernel of kernels) {
    for (const write of kernel.writes) writer.set(write.node, kernel);
    for (const read of kernel.reads) readersLeft.set(read, (readersLeft.get(read) ?? 0) + 1);
  }
  const readers = new Map<Kernel, Kernel[]>();
  const waiting = new Map<Kernel, number>();
  for (const kernel of kernels) {
    const sources = new Set(kernel.reads.map((node) => writer.get(node)).filter((k) => k !== undefined));
    waiting.set(kernel, sources.size);
    for (const source of sources) {
      const list = readers.get(source);
      if (list === undefined) readers.set(source, [kernel]);
      else list.push(kernel);
    }
  }
  const overwritesEarly = (kernel: Kernel): boolean =>
    kernel.writes.some(({ node }) => {
      const parameter = donations.get(node);
      if (parameter === undefined) return false;
      return (readersLeft.get(parameter) ?? 0) > (kernel.reads.includes(parameter) ? 1 : 0);
    });
  const age = (kernel: Kernel): number => Math.min(...kernel.writes.map((write) => write.node.id));
  const ready = kernels.filter((kernel) => waiting.get(kernel) === 0).sort((a, b) => age(a) - age(b));
  const ordered: Kernel[] = [];
  const held: Kernel[] = [];
  const run = (kernel: Kernel): void => {
    ordered.push(kernel);
    for (const read of kernel.reads) readersLeft.set(read, readersLeft.get(read)! - 1);
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

/** What a kind of kernel computes where it says no more than that. */
const plainOps: Partial<Record<KernelKind, Op>> = {
  row: 'reduce',
  sort: 'argSort',
  ranks: 'digitRanks',
  search: 'searchSorted',
  segments: 'foldSegments',
};

/** Names tell what a kernel computes: its anchor, then up to two ops of its epilogue, then its place in the program. */
export function nameKernels(kernels: readonly Kernel[]): Kernel[] {
  return kernels.map((kernel, i) => {
    const last = kernel.writes[0]!.node;
    const plain = last.op === kernel.kind || last.op === plainOps[kernel.kind];
    const tail = plain ? '' : `_${last.op}`;
    return { ...kernel, name: `${kernel.kind}${tail}_${i}`.toLowerCase() };
  });
}
