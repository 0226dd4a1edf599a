// Every differentiable primitive at special points, nested derivatives. `SINTER_NESTED_RUNS=2000` tries each a hundred times.

import * as fc from 'fast-check';
import { test } from 'vitest';
import { opNames } from '../../../src/ir/ops.ts';
import { seed } from '../../support/property.ts';
import { trials } from '../trials.ts';
import { checkNested } from './check.ts';
import { trialSamples } from './samples.ts';

const runs = Number(process.env['SINTER_NESTED_RUNS'] ?? 40) / 20;

for (const op of opNames) {
  const trial = trials[op];
  // It has no derivative.
  if (typeof trial === 'string') continue;
  test(op, () => {
    fc.assert(
      fc.property(trialSamples(op, trial), ({ sample, random }) => {
        if (sample !== undefined) checkNested(sample, random);
      }),
      { numRuns: Math.ceil(runs), seed },
    );
  });
}
