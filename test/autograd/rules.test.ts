import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rules } from '../../src/autograd/rules.ts';
import { isCollective, opNames, type Op } from '../../src/ir/ops.ts';
import { checkTrial, randomNumbers } from './differences.ts';
import { trials } from './trials.ts';

describe('first and second derivatives equal central differences', () => {
  for (const op of opNames) {
    const trial = trials[op];
    if (typeof trial === 'string') continue;
    it(op, () => {
      fc.assert(
        fc.property(trial, fc.integer(), (sample, seed) => checkTrial(sample, randomNumbers(seed))),
        { numRuns: 60 },
      );
    });
  }
});

it('an op has a rule exactly if it has a derivative to try', () => {
  // Rules that refuse say so where a derivative is asked for; what is made of these ops has rules of its own.
  // Loops have derivatives as a whole (test/control/), and collectives and edges over several processes (collective.test.ts, test/sharding/edges.test.ts).
  const refusing = new Set<Op>([
    'jacobiRows',
    'completeRows',
    'iterate',
    'toPart',
    'toWhole',
    ...opNames.filter(isCollective),
  ]);
  const own = opNames.filter((op) => !refusing.has(op));
  for (const op of own) expect([op, rules[op] === 'flat']).toEqual([op, typeof trials[op] === 'string']);
});
