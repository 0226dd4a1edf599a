// `sinter budget`: kernels and bytes of every workload, counted for a GPU without one.

import { explain } from '../explain.ts';
import { showBytes, table } from '../table.ts';
import { workloads } from '../workloads/all.ts';
import { chosenWorkload } from './choice.ts';
import { text, type Command } from './command.ts';

/** One line of the budget. */
export interface BudgetLine {
  readonly workload: string;
  readonly kernels: number;
  /** Moved by all kernels: each distinct element read once, each element written once. */
  readonly bytes: number;
  /** What a single perfect kernel would move. */
  readonly lowerBoundBytes: number;
}

/** Kernels and bytes of these workloads; needs no device. */
export function budget(list: typeof workloads = workloads): BudgetLine[] {
  return list.map(({ name, fn, args }) => {
    const { kernels, bytes, lowerBoundBytes } = explain(fn, ...args()).totals;
    return { workload: name, kernels, bytes, lowerBoundBytes };
  });
}

export const budgetCommand: Command = {
  name: 'budget',
  about: 'count kernels and bytes of the workloads, without a device',
  details:
    'Compiles every workload for a GPU and counts its kernels and the bytes they move. The lower bound\n' +
    'is every input read once and every output written once.',
  options: {
    workload: { type: 'string', value: 'NAME', about: 'this one only' },
  },
  examples: ['sinter budget', 'sinter budget --json', 'sinter budget --workload softmax'],
  run: async (values, output) => {
    const name = text(values, 'workload');
    const lines = budget(name === undefined ? workloads : [chosenWorkload(name)]);
    if (values['json'] === true) {
      output.line(JSON.stringify(lines));
      return;
    }
    const rows = lines.map(({ workload, kernels, bytes, lowerBoundBytes }) => [
      workload,
      String(kernels),
      showBytes(bytes),
      showBytes(lowerBoundBytes),
      (bytes / lowerBoundBytes).toFixed(2),
    ]);
    output.line(table(['workload', 'kernels', 'moved', 'lower bound', 'ratio'], rows, [1, 2, 3, 4]));
  },
};
