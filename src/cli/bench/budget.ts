// `sinter budget`: kernels, bytes moved and peak memory of every workload, counted for a GPU
// without one, and what processes send each other.

import { explainFor } from '../../explain/explain.ts';
import { gpuTarget } from '../../schedule/target.ts';
import { showBytes, table } from '../../table.ts';
import { explainParallel } from '../../distributed/explain.ts';
import { workloads } from '../../workloads/all.ts';
import { parallelWorkloads } from '../../workloads/parallel.ts';
import { chosenWorkload } from '../program/choice.ts';
import { text, type Command } from '../command.ts';

/** One line of the budget. */
export interface BudgetLine {
  readonly workload: string;
  readonly kernels: number;
  /** Moved by all kernels: each distinct element read once, each element written once. */
  readonly bytes: number;
  /** What a single perfect kernel would move. */
  readonly lowerBoundBytes: number;
  /** Device memory of a run: inputs, outputs and intermediates. */
  readonly peakBytes: number;
  /** The least that these kernels, in this order, can do with. */
  readonly leastPeakBytes: number;
}

/** Kernels, bytes and memory of these workloads on a GPU; needs no device. */
export function budget(list: typeof workloads = workloads): BudgetLine[] {
  return list.map(({ name, fn, args }) => {
    const { totals, memory } = explainFor(gpuTarget, fn, ...args());
    const { kernels, bytes, lowerBoundBytes } = totals;
    const { peak: peakBytes, lowerBound: leastPeakBytes } = memory;
    return { workload: name, kernels, bytes, lowerBoundBytes, peakBytes, leastPeakBytes };
  });
}

/** What the processes of a mesh send each other in a step. */
export interface ParallelLine {
  readonly workload: string;
  readonly mesh: string;
  readonly collectives: number;
  /** Bytes that each process sends. */
  readonly sentBytes: number;
  readonly bytesByCollective: Readonly<Record<string, number>>;
}

/** Collectives of these workloads and their bytes; needs no other process. */
export function parallelBudget(list: typeof parallelWorkloads = parallelWorkloads): ParallelLine[] {
  return list.map(({ name, fn, mesh, plans, args }) => {
    const { collectives, bytes, bytesByCollective } = explainParallel(fn, mesh, plans(), ...args());
    const line = { workload: name, mesh: mesh.text, collectives: collectives.length };
    return { ...line, sentBytes: bytes, bytesByCollective };
  });
}

export const budgetCommand: Command = {
  name: 'budget',
  about: 'count kernels, bytes and memory of the workloads, without a device',
  details:
    'Compiles every workload for a GPU and counts its kernels, the bytes they move, and the memory of a run.\n' +
    'The lower bound of the bytes is each input read once and each output written once. The lower bound of the\n' +
    'peak is what must be in memory at the same time, if the kernels run in this order.\n' +
    'Of train steps that processes share it counts what each process sends.',
  options: {
    workload: { type: 'string', value: 'NAME', about: 'count this one only' },
  },
  examples: ['sinter budget', 'sinter budget --json', 'sinter budget --workload softmax'],
  run: async (values, output) => {
    const name = text(values, 'workload');
    const shared = parallelWorkloads.filter((one) => name === undefined || one.name === name);
    const isShared = name !== undefined && shared.length > 0;
    const lines = isShared ? [] : budget(name === undefined ? workloads : [chosenWorkload(name)]);
    const parallel = parallelBudget(shared);
    if (values['json'] === true) {
      output.line(JSON.stringify([...lines, ...parallel]));
      return;
    }
    const rows = lines.map(({ workload, kernels, bytes, lowerBoundBytes, peakBytes, leastPeakBytes }) => [
      workload,
      String(kernels),
      showBytes(bytes),
      showBytes(lowerBoundBytes),
      (bytes / lowerBoundBytes).toFixed(2),
      showBytes(peakBytes),
      (peakBytes / leastPeakBytes).toFixed(2),
    ]);
    const head = ['workload', 'kernels', 'moved', 'lower bound', 'ratio', 'peak', 'ratio'];
    if (rows.length > 0) output.line(table(head, rows, [1, 2, 3, 4, 5, 6]));
    if (parallel.length === 0) return;
    const sent = parallel.map(({ workload, mesh, collectives, sentBytes, bytesByCollective }) => {
      const parts = Object.entries(bytesByCollective).map(([kind, bytes]) => `${kind} ${showBytes(bytes)}`);
      return [workload, mesh, String(collectives), showBytes(sentBytes), parts.join(', ')];
    });
    if (rows.length > 0) output.line('');
    output.line(table(['workload', 'mesh', 'collectives', 'each sends', 'by collective'], sent, [2, 3]));
  },
};
