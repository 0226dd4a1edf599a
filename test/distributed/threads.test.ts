// Collectives over threads of one process, against a plain reference, and what becomes of the others where one rank
// does something else, does not come, or ends.

import { expect, test } from 'vitest';
import { startThreads, type RankEnd } from '../../src/distributed/engines/threads-start.ts';
import { seed } from '../support/property.ts';
import { builtChild } from './built.ts';

const child = await builtChild('thread');

interface Outcome {
  readonly value?: unknown;
  readonly code?: string;
  readonly message?: string;
}

/** Plays a scenario on four threads; gives the outcome of each that had one. */
async function onThreads(
  scenario: string,
  given = 1,
  env: NodeJS.ProcessEnv = {},
): Promise<{ readonly outcomes: readonly (Outcome | undefined)[]; readonly ends: readonly RankEnd[] }> {
  const { workers, ended } = startThreads(4, child, () => ({
    workerData: { scenario, seed: given },
    execArgv: [],
    env: { ...process.env, ...env },
  }));
  const outcomes: (Outcome | undefined)[] = workers.map(() => undefined);
  workers.forEach((worker, rank) =>
    worker.on('message', (outcome: Outcome) => {
      outcomes[rank] = outcome;
      if (outcomes.filter((one) => one !== undefined).length === 3) workers[2]!.postMessage('go', []);
    }),
  );
  return { ends: await ended, outcomes };
}

test('every action on every dtype over every group gives what the reference gives', async () => {
  const { outcomes } = await onThreads('every', seed);
  expect(outcomes).toEqual(Array.from({ length: 4 }, () => ({ value: 5 * (11 + 12 * 15) })));
});

test('blocks that go in pieces do, too', async () => {
  const { outcomes } = await onThreads('large', seed);
  expect(outcomes).toEqual(Array.from({ length: 4 }, () => ({ value: 4 * 2 * 9 })));
});

test('sums of random floats have the same bits on all ranks at every run', async () => {
  const first = await onThreads('bits', 7);
  const second = await onThreads('bits', 7);
  expect(first.outcomes[0]!.value).toMatch(/^-?\d+$/);
  expect(first.outcomes).toEqual(Array.from({ length: 4 }, () => first.outcomes[0]));
  expect(second.outcomes).toEqual(first.outcomes);
});

const reduceOf16 = 'allReduce sum of f32, 16 bytes, over ranks 0,1,2,3';

for (const phase of ['first', 'later'])
  for (const [what, said] of [
    ['another action', 'allGather of f32, 4 bytes, over ranks 0,1,2,3'],
    ['another size', 'allReduce sum of f32, 32 bytes, over ranks 0,1,2,3'],
    ['another dtype', 'allReduce sum of i32, 16 bytes, over ranks 0,1,2,3'],
    ['another monoid', 'allReduce max of f32, 16 bytes, over ranks 0,1,2,3'],
    ['another group', 'allReduce sum of f32, 16 bytes, over ranks 2,3'],
  ] as const)
    test(`${phase}, one rank that calls ${what} is an error on all ranks`, async () => {
      const { outcomes } = await onThreads(`${phase}: ${what}`);
      for (const outcome of outcomes) {
        expect(outcome).toMatchObject({ code: 'E_COLLECTIVE' });
        expect(outcome!.message).toContain(`${said}`);
        expect(outcome!.message).toContain(reduceOf16);
        expect(outcome!.message).toContain('rank 2 ');
      }
    });

for (const phase of ['first', 'later'])
  for (const [what, said, code] of [
    [
      'wrong blocks',
      'rank 2: allReduce sum of f32, 16 bytes, over ranks 0,1,2,3: it takes 16 bytes',
      'E_COLLECTIVE',
    ],
    ['throws', 'rank 2 has failed: the disk is full', 'Error'],
    ['leaves', 'rank 2 has ended, and rank', undefined],
    ['exits', 'rank 2 has ended with exit code 3', undefined],
  ] as const)
    test(`${phase}, one rank that ${what} ends the waits of all others`, async () => {
      const { outcomes, ends } = await onThreads(`${phase}: ${what}`);
      for (const rank of [0, 1, 3]) {
        expect(outcomes[rank]).toMatchObject({ code: 'E_COLLECTIVE' });
        expect(outcomes[rank]!.message).toContain(said);
      }
      expect(outcomes[2]?.code).toBe(code);
      expect(ends.map(({ rank, code: exit }) => [rank, exit]).toSorted()).toEqual([
        [0, 0],
        [1, 0],
        [2, what === 'exits' ? 3 : 0],
        [3, 0],
      ]);
    });

test('a rank that does not come in time is named, with the collective', async () => {
  const { outcomes } = await onThreads('first: does not come', 1, { SINTER_COLLECTIVE_TIMEOUT: '4' });
  for (const outcome of [outcomes[0], outcomes[1], outcomes[3]])
    expect(outcome).toEqual({
      code: 'E_COLLECTIVE',
      message: expect.stringContaining(`rank 2 has not come to ${reduceOf16}, within 4 s`) as string,
    });
  // It comes when the others have given up.
  expect(outcomes[2]!.message).toContain('rank 2 has not come');
});
