// The corners that users meet, on every device here: long sums, NaN and infinities, negative zero, empty and rank-0 tensors.
// Expected values are PyTorch's.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import * as sn from '../../src/index.ts';
import { everyDevice } from '../support/devices.ts';

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));
  afterAll(() => sn.setDevice(undefined));

  const values = async (x: sn.Tensor): Promise<unknown[]> => [...((await x.data()) as Float32Array)];

  test('the sum of 2^24 values 0.1 is right to 1e-6', async () => {
    const total = Number(
      await sn
        .tensor(new Float32Array(2 ** 24).fill(0.1), { shape: [2 ** 24] })
        .sum()
        .item(),
    );
    const exact = 2 ** 24 * Math.fround(0.1);
    expect(Math.abs(total - exact) / exact).toBeLessThan(1e-6);
  });

  test('isNaN, isInf and isFinite look at the bits', async () => {
    const x = sn.tensor([nan, inf, -inf, 0, -0, 1, 1e-45, 3.4e38]);
    expect(await values(sn.isNan(x))).toEqual([1, 0, 0, 0, 0, 0, 0, 0]);
    expect(await values(sn.isInf(x))).toEqual([0, 1, 1, 0, 0, 0, 0, 0]);
    expect(await values(sn.isFinite(x))).toEqual([0, 0, 0, 1, 1, 1, 1, 1]);
  });

  test('comparisons with NaN are false, but for ne', async () => {
    const [x, y] = [sn.tensor([nan, nan, 1, inf]), sn.tensor([nan, 1, nan, inf])];
    expect(await values(sn.eq(x, y))).toEqual([0, 0, 0, 1]);
    expect(await values(sn.ne(x, y))).toEqual([1, 1, 1, 0]);
    expect(await values(sn.lt(x, y))).toEqual([0, 0, 0, 0]);
    expect(await values(sn.ge(x, y))).toEqual([0, 0, 0, 1]);
  });

  test('NaN goes through max, min, relu, clamp, and wins argmax and argmin', async () => {
    const x = sn.tensor([1, nan, 3, -inf]);
    expect(await x.max().item()).toBeNaN();
    expect(await x.min().item()).toBeNaN();
    expect(await x.argmax().item()).toBe(1);
    expect(await x.argmin().item()).toBe(1);
    expect(await values(sn.relu(x))).toEqual([1, nan, 3, 0]);
    expect(await values(sn.clamp(x, 0, 2))).toEqual([1, nan, 2, 0]);
    expect(await values(sn.maximum(x, 2))).toEqual([2, nan, 3, 2]);
  });

  test('ties give the first position', async () => {
    expect(await sn.tensor([2, 5, 5, 1]).argmax().item()).toBe(1);
    expect(await sn.tensor([-inf, -inf]).argmax().item()).toBe(0);
  });

  test('−0 + 0 and 0 − 0 are 0, not −0, where a quotient shows it', async () => {
    const [zeros, one] = [sn.tensor([-0, 0, 2]), sn.tensor(1)];
    expect(await values(one.div(zeros.add(0)))).toEqual([inf, inf, 0.5]);
    expect(await values(one.div(sn.sub(0, zeros)))).toEqual([inf, inf, -0.5]);
    expect(await values(sn.tensor([nan, inf, -inf]).add(0))).toEqual([nan, inf, -inf]);
    expect(await values(sn.sub(0, sn.tensor([nan, inf, -inf])))).toEqual([nan, -inf, inf]);
  });

  test('infinities and signed zeros follow IEEE', async () => {
    const [x, zero] = [sn.tensor([1, -1, 0, inf]), sn.tensor([0, 0, 0, 0])];
    expect(await values(x.div(zero))).toEqual([inf, -inf, nan, inf]);
    expect(await values(sn.tensor([0, 1]).neg())).toEqual([-0, -1]);
    expect(await values(sn.sqrt(sn.tensor([-0, -1, inf])))).toEqual([-0, nan, inf]);
    expect(await values(sn.exp(sn.tensor([-inf, inf, nan, 0])))).toEqual([0, inf, nan, 1]);
    expect(await values(sn.log(sn.tensor([0, -1, inf, nan])))).toEqual([-inf, nan, inf, nan]);
    expect(await values(sn.tanh(sn.tensor([100, -100, inf, nan])))).toEqual([1, -1, 1, nan]);
    expect(await values(sn.pow(sn.tensor([-2, 0, nan, -8]), sn.tensor([3, 0, 0, 1 / 3])))).toEqual([
      -8,
      1,
      1,
      nan,
    ]);
  });

  test('softmax of a row of −inf is NaN, of a mixed row is not', async () => {
    const x = sn.tensor([
      [-inf, -inf],
      [0, -inf],
    ]);
    expect(await values(sn.softmax(x))).toEqual([nan, nan, 1, 0]);
  });

  test('softmax of large logits does not overflow', async () => {
    expect(await values(sn.softmax(sn.tensor([1e4, -1e4, 1e4])))).toEqual([0.5, 0, 0.5]);
  });

  test('folds over nothing are their identity', async () => {
    const none = sn.zeros([0, 3]);
    expect(await values(none.sum(0))).toEqual([0, 0, 0]);
    expect(await values(none.prod(0))).toEqual([1, 1, 1]);
    expect(await values(none.mean(0))).toEqual([nan, nan, nan]);
    expect(await values(sn.any(none.gt(0), 0))).toEqual([0, 0, 0]);
    expect(await values(sn.all(none.gt(0), 0))).toEqual([1, 1, 1]);
    expect(() => none.max(0)).toThrow(/max/);
    expect(() => none.argmax(0)).toThrow(/arg/i);
  });

  test('both parts of a complex mean over nothing are NaN', async () => {
    const none = sn.complex(sn.zeros([0, 2]), sn.zeros([0, 2])).mean(0);
    expect(await values(sn.real(none))).toEqual([nan, nan]);
    expect(await values(sn.imag(none))).toEqual([nan, nan]);
  });

  test('empty tensors pass through every kind of operation', async () => {
    const none = sn.zeros([0, 3]);
    expect((await none.add(1).data()).length).toBe(0);
    expect((await sn.cat([none, sn.ones([2, 3])]).data()).length).toBe(6);
    expect(await values(sn.matmul(sn.zeros([2, 0]), sn.zeros([0, 3])))).toEqual([0, 0, 0, 0, 0, 0]);
    expect((await sn.softmax(none).data()).length).toBe(0);
    expect((await none.transpose(0, 1).reshape([3, 0, 1]).data()).length).toBe(0);
  });

  test('rank-0 tensors compute, reduce and give their item', async () => {
    const x = sn.tensor(3);
    expect(x.shape).toEqual([]);
    expect(await x.mul(x).add(1).item()).toBe(10);
    expect(await x.sum().item()).toBe(3);
    expect(await sn.softmax(x.reshape([1])).item()).toBe(1);
  });

  test('equal programs give equal bits twice', async () => {
    const run = async (): Promise<unknown[]> => {
      sn.manualSeed(5);
      const x = sn.randn([64, 70]);
      return values(sn.softmax(sn.matmul(x, x.transpose(0, 1))).sum(0));
    };
    expect(await run()).toEqual(await run());
  });
});
