// `sinter budget`: kernels, bytes moved and peak memory of every workload, counted for a GPU
// without one.

import { explainFor } from '../../explain/explain.ts';
import { gpuTarget } from '../../schedule/target.ts';
import { showBytes, table } from '../../table.ts';
import { workloads } from '../../workloads/all.ts';
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

export const budgetCommand: Command = {
  name: 'budget',
  about: 'count kernels, bytes and memory of the workloads, without a device',
  details:
    'Compiles every workload for a GPU and counts its kernels, the bytes they move, and the memory of a run.\n' +
    'The lower bound of the bytes is each input read once and each output written once. The lower bound of the\n' +
    'peak is what must be in memory at the same time, if the kernels run in this order.',
  options: {
    workload: { type: 'string', value: 'NAME', about: 'count this one only' },
  },
  examples: ['sinter budget', 'sinter budget --json', 'sinter budget --workload softmax'],
  run: async (values, output) => {
    const name = text(values, 'workload');
    const lines = budget(name === undefined ? workloads : [chosenWorkload(name)]);
    if (values['json'] === true) {
      output.line(JSON.stringify(lines));
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
    output.line(table(head, rows, [1, 2, 3, 4, 5, 6]));
  },
};
