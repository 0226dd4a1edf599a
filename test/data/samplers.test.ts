// Samplers: each epoch is an order of its own that the seed and the epoch's number decide, with the frequencies that were asked for.

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as data from '../../src/data/index.ts';

const list = (sampler: data.Sampler, epoch = 0): number[] => [...sampler.indices(epoch)];
const sorted = (items: readonly number[]): number[] => items.toSorted((a, b) => a - b);
const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

test('a random order has every item once, is the seed’s, and another in another epoch', () =>
  fc.assert(
    fc.property(fc.integer({ min: 12, max: 60 }), fc.bigInt(0n, 2n ** 64n), fc.nat(5), (n, seed, epoch) => {
      const sampler = data.randomSampler(n, { seed });
      const order = list(sampler, epoch);
      expect(sorted(order)).toEqual(upTo(n));
      expect(list(data.randomSampler(n, { seed }), epoch)).toEqual(order);
      expect(list(sampler, epoch + 1)).not.toEqual(order);
    }),
    { numRuns: 50 },
  ));

test('every order of three is as likely', () => {
  const sampler = data.randomSampler(3, { seed: 1 });
  const counts = new Map<string, number>();
  for (let epoch = 0; epoch < 6000; epoch++) {
    const order = String(list(sampler, epoch));
    counts.set(order, (counts.get(order) ?? 0) + 1);
  }
  expect(counts.size).toBe(6);
  // Five standard deviations of a count of 1000 are 144.
  for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(144);
});

test('with replacement items may come twice, and any number can be drawn; without, in whole rounds', () => {
  const drawn = list(data.randomSampler(4, { seed: 2, replacement: true, count: 4000 }));
  expect(drawn.length).toBe(4000);
  for (const item of upTo(4))
    expect(Math.abs(drawn.filter((at) => at === item).length - 1000)).toBeLessThan(137);
  const rounds = list(data.randomSampler(4, { seed: 2, count: 10 }));
  expect([sorted(rounds.slice(0, 4)), sorted(rounds.slice(4, 8))]).toEqual([upTo(4), upTo(4)]);
  expect(new Set(rounds.slice(8)).size).toBe(2);
  expect(sorted(list(data.subsetRandomSampler([7, 3, 3, 9], { seed: 1 })))).toEqual([3, 3, 7, 9]);
});

describe('weights', () => {
  test('are the frequencies with replacement', () => {
    const drawn = list(data.weightedSampler([0, 1, 3, 0, 4, 0], { seed: 3, count: 8000 }));
    const counts = upTo(6).map((item) => drawn.filter((at) => at === item).length);
    const expected = [0, 1000, 3000, 0, 4000, 0];
    counts.forEach((count, i) =>
      expect(Math.abs(count - expected[i]!)).toBeLessThanOrEqual(5 * Math.sqrt(expected[i]!)),
    );
  });

  test('are those of the first of three that are drawn without', () => {
    const sampler = data.weightedSampler([1, 3, 0, 4], { seed: 3, replacement: false, count: 3 });
    const firsts = upTo(4).map(() => 0);
    for (let epoch = 0; epoch < 4000; epoch++) {
      const drawn = list(sampler, epoch);
      expect(sorted(drawn)).toEqual([0, 1, 3]);
      firsts[drawn[0]!]! += 1;
    }
    [500, 1500, 0, 2000].forEach((count, i) =>
      expect(Math.abs(firsts[i]! - count)).toBeLessThanOrEqual(5 * Math.sqrt(count)),
    );
  });

  test('that cannot be drawn are refused', () => {
    expect(() => data.weightedSampler([0, 0])).toThrow(/0 of 2 weights are above 0/);
    expect(() => data.weightedSampler([1, 0], { replacement: false })).toThrow(
      /2 items cannot be drawn: 1 of 2/,
    );
    expect(() => data.weightedSampler([1, -1])).toThrow(
      /the weights must be an array of numbers of at least 0/,
    );
  });
});

test('shards are parts of one order, of equal length', () =>
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 7 }),
      fc.boolean(),
      (n, shards, dropLast) => {
        const order = data.randomSampler(n, { seed: 9 });
        const parts = upTo(shards).map((shard) => data.shardedSampler(order, { shard, shards, dropLast }));
        const lists = parts.map((part) => list(part, 3));
        lists.forEach((items, i) => expect(items.length).toBe(parts[i]!.length));
        expect(new Set(lists.map(({ length }) => length)).size).toBe(1);
        const together = lists.flat();
        if (dropLast) expect(new Set(together).size).toBe(together.length);
        else expect(sorted([...new Set(together)])).toEqual(upTo(n));
        expect(together.length).toBe(dropLast ? n - (n % shards) : Math.ceil(n / shards) * shards);
      },
    ),
    { numRuns: 60 },
  ));

test('batches cut an order into pieces', () => {
  const batches = (dropLast: boolean): number[][] =>
    [...data.batchSampler(data.sequentialSampler(7), { batchSize: 3, dropLast }).batches(0)].map((batch) => [
      ...batch,
    ]);
  expect(batches(false)).toEqual([[0, 1, 2], [3, 4, 5], [6]]);
  expect(batches(true)).toEqual([
    [0, 1, 2],
    [3, 4, 5],
  ]);
});
