// Every operation on every register type at every width as CUDA C, against the interpreter's meaning of it: one program a width, of
// a kernel for each operation. The stand-in's functions are the host's: on a GPU the same test judges CUDA's own.
//
// Runs in a process of its own: the CUDA device takes its settings once in a process.

import { expect, test } from 'vitest';
import type { Width } from '../../src/codegen/loop/loop.ts';
import { mapLoop } from '../codegen/run-loop.ts';
import {
  argumentsOf,
  disagreements,
  longCases,
  nameOf,
  spellingCases,
} from '../codegen/emit/spelling-cases.ts';
import { onStandIn } from './standin/on-standin.ts';
import { runTrials, type Trial } from './trials.ts';

const cases = [...spellingCases, ...longCases];

onStandIn('operations as CUDA C', () => {
  test.each([1, 2, 4] as const)('at width %i equal the interpreter', async (width: Width) => {
    const trials = cases.map((row, i): Trial => {
      const inputs = argumentsOf(row);
      return { inputs, loop: { ...mapLoop(row, width, inputs[0]!.length), name: `apply_${i}` } };
    });
    const results = await runTrials(trials);
    const wrong = cases.flatMap((row, i) => {
      const found = disagreements(row, width, trials[i]!.inputs, results[i]!);
      return found.length === 0
        ? []
        : [`${nameOf(row)}, ${found.length} wrong: ${found.slice(0, 3).join('; ')}`];
    });
    expect(wrong).toEqual([]);
  });
});
