// Random tensors: the very words of Philox, moments within their error bars, and a generator that advances as documented.

import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { randomWords } from '../../../src/ir/interpret/random.ts';
import * as sn from '../../../src/operations/index.ts';
import { setDevice } from '../../../src/tensor/device.ts';
import { manualSeed, restoreRngState, saveRngState } from '../../../src/tensor/generator.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { read } from './support.ts';

beforeAll(() => setDevice('interpreter'));
beforeEach(() => manualSeed(42));

const words = (count: number, from = 0): number[] => [...randomWords([42, 0], [from, 0], count)];
const mean = (list: readonly number[]): number => list.reduce((a, b) => a + b, 0) / list.length;
const counter = (): number => Number(saveRngState().counter);

describe('draws are the words of Philox', () => {
  test('rand is the upper 24 bits over 2²⁴', async () => {
    expect(await read(sn.rand([7]))).toEqual(words(7).map((word) => (word >>> 8) / 2 ** 24));
  });

  test('randn is Box–Muller on pairs of words', async () => {
    const found = await read(sn.randn([3, 3]));
    const bits = words(10);
    found.forEach((value, i) => {
      const [first, second] = [bits[i - (i % 2)]!, bits[i - (i % 2) + 1]!];
      const radius = Math.sqrt(-2 * Math.log(((first >>> 8) + 1) / 2 ** 24));
      const angle = (2 * Math.PI * (second >>> 8)) / 2 ** 24;
      expect(value).toBeCloseTo(radius * (i % 2 === 0 ? Math.cos(angle) : Math.sin(angle)), 5);
    });
  });

  test('randint is the upper half of word · range, and covers all words', async () => {
    expect(await read(sn.randint(-3, 4, [9]))).toEqual(
      words(9).map((word) => Math.floor((word * 7) / 2 ** 32) - 3),
    );
    expect(await read(sn.randint(0, 2 ** 32, [4], { dtype: 'u32' }))).toEqual(words(4, 3));
    expect(await read(sn.randint(-(2 ** 31), 2 ** 31, [2]))).toEqual(
      words(2, 4).map((word) => word - 2 ** 31),
    );
  });

  test('randint of wide integers is exact beyond 32 bits with a sign', async () => {
    const wide = await read(sn.randint(-1, 2 ** 32 - 1, [4], { dtype: 'i64' }));
    expect(wide).toEqual(words(4).map((word) => word - 1));
    expect(wide.some((value) => value >= 2 ** 31)).toBe(true);
  });

  test('dropout zeroes where the word is below p · 2³² and scales the rest', async () => {
    const x = sn.full([11], 3);
    expect(await read(sn.dropout(x, 0.25))).toEqual(words(11).map((word) => (word < 2 ** 30 ? 0 : 4)));
  });

  test('dropout by a seed of its own takes the words of that key, and leaves the generator alone', async () => {
    const [x, seed] = [sn.full([11], 3), 4_000_000_000];
    const own = [...randomWords([seed, 0], [0, 0], 11)];
    const expected = own.map((word) => (word < 2 ** 30 ? 0 : 4));
    for (const _ of [1, 2]) expect(await read(sn.dropout(x, 0.25, { seed }))).toEqual(expected);
    expect(saveRngState()).toEqual({ seed: '42', counter: '0' });
  });

  test.each(['f16', 'bf16'] as const)('rand in %s never gives 1', async (dtype) => {
    const drawn = await read(sn.rand([4096], { dtype }));
    expect(Math.max(...drawn)).toBeLessThan(1);
    expect(mean(drawn)).toBeCloseTo(0.5, 1);
  });
});

describe('the generator', () => {
  test('advances by a quarter of the elements, rounded up, when a draw is recorded', () => {
    sn.rand([5]);
    expect(counter()).toBe(2);
    sn.randn([4]);
    expect(counter()).toBe(3);
    sn.rand([0]);
    expect(counter()).toBe(3);
  });

  test('stays where it is for dropout without effect', () => {
    const x = sn.ones([3]);
    expect(sn.dropout(x, 0)).toBe(x);
    expect(sn.dropout(x, 0.9, { training: false })).toBe(x);
    expect(counter()).toBe(0);
  });

  test('repeats itself from a saved state, and goes on otherwise', async () => {
    const state = saveRngState();
    const first = await read(sn.randn([6]));
    const second = await read(sn.randn([6]));
    expect(second).not.toEqual(first);
    restoreRngState(state);
    expect(await read(sn.randn([6]))).toEqual(first);
  });

  test('draws in the order of recording, not of reading', async () => {
    const [first, second] = [sn.rand([4]), sn.rand([4])];
    expect(await read(second)).toEqual(words(4, 1).map((word) => (word >>> 8) / 2 ** 24));
    expect(await read(first)).toEqual(words(4).map((word) => (word >>> 8) / 2 ** 24));
  });
});

describe('distributions', () => {
  const n = 20_000;
  test.each<readonly [string, () => Tensor, number, number]>([
    ['rand', () => sn.rand([n]), 1 / 2, 1 / 12],
    ['uniform', () => sn.uniform([n], { low: -2, high: 4 }), 1, 3],
    ['randn', () => sn.randn([n]), 0, 1],
    ['normal', () => sn.normal([n], { mean: 5, std: 0.5 }), 5, 0.25],
    ['bernoulli', () => sn.bernoulli(sn.full([n], 0.3)), 0.3, 0.21],
    ['dropout', () => sn.dropout(sn.ones([n]), 0.2), 1, 0.25],
    ['randint', () => sn.randint(0, 10, [n]), 4.5, 8.25],
  ])('%s has its mean and variance', async (_, draw, expectedMean, expectedVariance) => {
    const drawn = await read(draw());
    const centre = mean(drawn);
    // Five standard errors of the mean; the variance within a tenth.
    expect(Math.abs(centre - expectedMean)).toBeLessThan(5 * Math.sqrt(expectedVariance / n));
    const variance = mean(drawn.map((x) => (x - centre) ** 2));
    expect(Math.abs(variance / expectedVariance - 1)).toBeLessThan(0.1);
  });

  test('randperm is a permutation, and not the identity', async () => {
    const order = await read(sn.randperm(100));
    expect(order.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => i));
    expect(order).not.toEqual(order.toSorted((a, b) => a - b));
    expect(await read(sn.randperm(0))).toEqual([]);
  });

  test('multinomial draws by weight; without replacement all are different and none weighs 0', async () => {
    const weights = sn.tensor([
      [1, 0, 3],
      [0, 5, 0],
    ]);
    const drawn = await read(sn.multinomial(weights, 4000, { replacement: true }));
    const [first, second] = [drawn.slice(0, 4000), drawn.slice(4000)];
    expect(mean(first.map((i) => (i === 2 ? 1 : 0)))).toBeCloseTo(0.75, 1);
    expect(first).not.toContain(1);
    expect(new Set(second)).toEqual(new Set([1]));
    const chosen = await read(sn.multinomial(sn.tensor([1, 0, 1, 1]), 3));
    expect(chosen.toSorted()).toEqual([0, 2, 3]);
  });

  test('noise of logarithms is finite, and weights of 0 are never drawn', async () => {
    // The last of the first four words of this key gives the largest number below 1.
    const key = sn.key(39_075);
    expect((await read(sn.rand([4], { key })))[3]).toBe(1 - 2 ** -24);
    expect(await read(sn.multinomial(sn.tensor([1, 2, 1, 0]), 1, { key }))).not.toEqual([3]);
    const soft = sn.withKey(key, () => sn.gumbelSoftmax(sn.tensor([1, 2, 1, 0])));
    expect((await read(soft))[3]).toBeGreaterThan(0.99);
  });

  test('weights of 0 are never drawn with replacement, where sums are made of parts', async () => {
    const weights = Float32Array.from({ length: 12_000 }, (_, i) =>
      i % 3 === 1 ? ((i * 40_503) % 1000) / 997 : 0,
    );
    await setDevice('wasm');
    const drawn = await read(
      sn.multinomial(sn.tensor(weights), 4, { replacement: true, key: sn.key(972_109) }),
    );
    await setDevice('interpreter');
    expect(drawn.map((place) => place % 3)).toEqual([1, 1, 1, 1]);
  });

  test('dropout at p = 1 gives zeros, also for infinities', async () => {
    expect(await read(sn.dropout(sn.tensor([1, Infinity, NaN]), 1))).toEqual([0, 0, 0]);
  });

  test('the backward pass uses the mask of the forward pass', async () => {
    const x = sn.ones([40]).requiresGrad_();
    const y = sn.dropout(x, 0.5);
    sn.sum(y).backward();
    expect(await read(x.grad!)).toEqual(await read(y));
  });
});
