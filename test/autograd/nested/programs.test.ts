// Random programs over all primitives, nested derivatives at special points. `SINTER_NESTED_RUNS=5000` looks further than CI does.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Op } from '../../../src/ir/ops.ts';
import { seed } from '../../support/property.ts';
import { checkNested } from './check.ts';
import { programSamples } from './samples.ts';

const runs = Number(process.env['SINTER_NESTED_RUNS'] ?? 40);

test(`${runs} random programs`, () => {
  /** Programs with a value, with a point that can be known, with a second derivative; and by how many derivatives were compared. */
  const tally = { valued: 0, known: 0, curved: 0, compared: [0, 0, 0, 0] };
  const ops = new Set<Op>();
  fc.assert(
    fc.property(programSamples, ({ sample, random, ops: used }) => {
      const held = sample === undefined ? undefined : checkNested(sample, random);
      if (held === undefined) return;
      tally.valued += 1;
      tally.known += held.known ? 1 : 0;
      tally.curved += held.curved ? 1 : 0;
      tally.compared[held.compared]! += 1;
      for (const op of used) ops.add(op);
    }),
    { numRuns: runs, seed },
  );
  console.log(
    `seed ${seed}: ${JSON.stringify(tally)}, ${ops.size} primitives: ${[...ops].toSorted().join(' ')}`,
  );
  expect(tally.valued).toBeGreaterThan(runs / 4);
  expect(tally.compared[3]).toBeGreaterThan(runs / 8);
});
