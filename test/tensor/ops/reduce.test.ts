// Reductions, scans and sorts where PyTorch's figures do not reach.

import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { variance } from '../../../src/tensor/ops/reduce/reduce.ts';
import * as sn from '../../../src/operations/index.ts';
import { setChecks } from '../../../src/tensor/debug.ts';
import { setDevice } from '../../../src/tensor/device.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { holds, read, toTensor } from './support.ts';
import { everyDevice } from '../../support/devices.ts';

beforeAll(() => setDevice('interpreter'));

const of = (...values: number[]): Tensor => sn.tensor(values);

describe('reductions', () => {
  test('varMean gives both, and a large mean cancels nothing', async () => {
    const [variance, mean] = sn.varMean(of(1e6, 1e6 + 1, 1e6 + 2));
    expect([await read(variance), await read(mean)]).toEqual([[1], [1e6 + 1]]);
    const [kept] = sn.varMean(sn.ones([2, 3]), 1, { keepdim: true, correction: 0 });
    expect(kept.shape).toEqual([2, 1]);
  });

  test('variance of too few elements is unknown', async () => {
    expect(await read(variance(of(3)))).toEqual([NaN]);
    expect(await read(variance(of(1, 2), 0, { correction: 2 }))).toEqual([Infinity]);
    expect(await read(sn.std(sn.zeros([0])))).toEqual([NaN]);
  });

  test('countNonzero counts NaN too', async () => {
    const counted = sn.countNonzero(of(0, -0, NaN, 3));
    expect([counted.dtype, await read(counted)]).toEqual(['i32', [2]]);
  });

  test('no axes at all reduce nothing', async () => {
    expect(sn.sum(sn.ones([2, 3]), []).shape).toEqual([2, 3]);
  });

  test('a wider dtype can be asked for', async () => {
    const bytes = sn.full([300], 100, { dtype: 'u8' });
    expect(await read(sn.sum(bytes))).toEqual([30000]);
    expect(await read(sn.sum(bytes, 0, { dtype: 'i64' }))).toEqual([30000]);
    expect(await read(sn.sum(bytes, 0, { dtype: 'u8' }))).toEqual([30000 % 256]);
  });

  test('maxWithIndices sends the gradient to the first of equals, amax shares it', async () => {
    const x = of(1, 3, 3).requiresGrad_();
    sn.sum(sn.maxWithIndices(x, 0)[0]).backward();
    expect(await read(x.grad!)).toEqual([0, 1, 0]);
    x.zeroGrad();
    sn.sum(sn.amax(x)).backward();
    expect(await read(x.grad!)).toEqual([0, 0.5, 0.5]);
  });

  test('logsumexp of −∞ alone is −∞, and 0 over one element has gradient 1', async () => {
    expect(await read(sn.logsumexp(of(-Infinity, -Infinity)))).toEqual([-Infinity]);
    const x = of(0).requiresGrad_();
    sn.sum(sn.logsumexp(x)).backward();
    expect(await read(x.grad!)).toEqual([1]);
  });
});

describe('scans', () => {
  test('run in reverse and without the element itself', async () => {
    const x = of(1, 2, 3, 4);
    expect(await read(sn.cumsum(x, 0, { reverse: true }))).toEqual([10, 9, 7, 4]);
    expect(await read(sn.cumsum(x, 0, { exclusive: true }))).toEqual([0, 1, 3, 6]);
    expect(await read(sn.cumprod(x, 0, { exclusive: true, reverse: true }))).toEqual([24, 12, 4, 1]);
    expect(await read(sn.cumsum(sn.tensor([true, true, false]), 0))).toEqual([1, 2, 2]);
  });

  test('logcumsumexp keeps a small start before a huge element, and both infinities', async () => {
    expect(await read(sn.logcumsumexp(of(-1e4, 0, 1e4), 0))).toEqual([-1e4, 0, 1e4]);
    expect(await read(sn.logcumsumexp(of(-Infinity, 1, Infinity, 0), 0))).toEqual([
      -Infinity,
      1,
      Infinity,
      Infinity,
    ]);
    expect(await read(sn.logcumsumexp(of(1, NaN, 2), 0))).toEqual([1, NaN, NaN]);
  });

  test('cummin and cummax send the gradient to the holder', async () => {
    const x = of(3, 1, 2, 1).requiresGrad_();
    const [values, places] = sn.cummin(x, 0);
    expect([await read(values), await read(places)]).toEqual([
      [3, 1, 1, 1],
      [0, 1, 1, 3],
    ]);
    sn.sum(values).backward();
    expect(await read(x.grad!)).toEqual([1, 2, 0, 1]);
  });
});

describe('sorting', () => {
  const values = fc.array(fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constant(NaN)), { maxLength: 12 });
  const compare = (a: number, b: number): number =>
    Number.isNaN(a) ? (Number.isNaN(b) ? 0 : 1) : Number.isNaN(b) ? -1 : a - b;

  test('is stable in both directions, NaN the greatest', async () => {
    await holds(100, fc.tuple(values, fc.boolean()), async ([list, descending]) => {
      const order = list
        .map((_, i) => i)
        .toSorted((i, j) => (descending ? -1 : 1) * compare(list[i]!, list[j]!));
      const [sorted, places] = sn.sort(toTensor({ shape: [list.length], data: list }), 0, { descending });
      expect(await read(places)).toEqual(order);
      expect(await read(sorted)).toEqual(order.map((i) => list[i]!));
    });
  });

  test('works along any axis and on integers, bool and rank 0', async () => {
    const x = sn.tensor(
      [
        [3, 1],
        [2, 2],
        [1, 3],
      ],
      { dtype: 'i32' },
    );
    expect(await sn.sort(x, 0)[0].array()).toEqual([
      [1, 1],
      [2, 2],
      [3, 3],
    ]);
    expect(await read(sn.argsort(sn.tensor([true, false, true])))).toEqual([1, 0, 2]);
    expect(sn.sort(sn.tensor(3))[0].shape).toEqual([]);
  });

  test('topk takes the best first, and its gradient goes where they were', async () => {
    const x = of(1, 9, 5, 7).requiresGrad_();
    const [best, places] = sn.topk(x, 2);
    expect([await read(best), await read(places)]).toEqual([
      [9, 7],
      [1, 3],
    ]);
    expect(await read(sn.topk(x, 2, 0, { largest: false })[0])).toEqual([1, 5]);
    expect(sn.topk(x, 0)[0].shape).toEqual([0]);
    sn.sum(sn.mul(best, of(10, 20))).backward();
    expect(await read(x.grad!)).toEqual([0, 10, 0, 20]);
  });

  test('searchsorted finds where values go', async () => {
    const limits = of(1, 3, 3, 5);
    expect(await read(sn.searchsorted(limits, of(0, 1, 3, 4, 6, NaN)))).toEqual([0, 0, 1, 3, 4, 4]);
    expect(await read(sn.searchsorted(limits, of(0, 1, 3, 4, 6, NaN), { right: true }))).toEqual([
      0, 1, 3, 3, 4, 4,
    ]);
  });
});

describe.each(everyDevice)('folds of integers, %s', (device) => {
  beforeAll(() => setDevice(device));
  afterAll(() => setDevice('interpreter'));

  const extremes = { i8: 100, u8: 200, i16: 30_000, i32: 2e9, u32: 4e9 } as const;
  const types = Object.keys(extremes) as (keyof typeof extremes)[];

  test.each(types)('sums of %s have 32 bits, running ones as well', async (dtype) => {
    const value = extremes[dtype];
    const wide = value < 1e5 ? 'i32' : dtype;
    const x = sn.full([2, 2], value, { dtype });
    const twice = value < 1e5 ? 2 * value : ((2 * value) % 2 ** 32) | 0;
    const expected = dtype === 'u32' ? twice >>> 0 : twice;
    const mask = sn.full([2, 2], true);
    const found: Readonly<Record<string, Tensor>> = {
      sum: sn.sum(x, 0),
      nansum: sn.nansum(x, 0),
      cumsum: sn.at(sn.cumsum(x, 0), -1),
      masked: sn.at(sn.masked.cumsum(x, 0, { mask }), -1),
      trace: sn.broadcastTo(sn.trace(x), [2]),
      einsum: sn.einsum('ij->j', x),
      reduce: sn.reduce(x, 'i j -> j', 'sum'),
    };
    for (const [name, y] of Object.entries(found))
      expect([name, y.dtype, await read(y)]).toEqual([name, wide, [expected, expected]]);
    for (const y of [sn.prod(x, 0), sn.cumprod(x, 0), sn.masked.cumprod(x, 0)]) expect(y.dtype).toBe(wide);
  });

  test.each(types)('means of %s are not wrapped', async (dtype) => {
    const value = extremes[dtype];
    const line = sn.full([1, 1, 8], value, { dtype });
    const rows = sn.full([4, 3], value, { dtype });
    const means: readonly Tensor[] = [
      sn.avgPool1d(line, 4),
      sn.avgPool1d(line, 3, { padding: 1, countIncludePad: false }),
      sn.avgPool2d(sn.reshape(line, [1, 2, 4]), 2),
      sn.scatterReduce(rows, 0, sn.zeros([4, 3], { dtype: 'i32' }), rows, 'mean'),
      sn.indexReduce(rows, 0, sn.zeros([4], { dtype: 'i32' }), rows, 'mean'),
    ];
    for (const y of means) {
      expect(y.dtype).toBe(dtype);
      expect(new Set(await read(y))).toEqual(new Set([value]));
    }
  });

  test('what a norm or a transform makes floats of becomes so before it is multiplied', async () => {
    const x = sn.tensor([200, 200, 200], { dtype: 'u8' });
    expect(
      (await read(sn.localResponseNorm(sn.reshape(x, [1, 3, 1]), 1, { alpha: 1, beta: 1, k: 0 })))[0],
    ).toBe(Math.fround(1 / 200));
    const window = sn.tensor([200, 200], { dtype: 'u8' });
    const spectra = sn.stft(x, 2, { window, center: false });
    expect((await read(sn.real(spectra))).slice(0, 2)).toEqual([80_000, 80_000]);
  });
});

describe.each(everyDevice)('searches, %s', (device) => {
  beforeAll(() => setDevice(device));
  afterAll(() => setDevice('interpreter'));

  test.each(['f32', 'f16', 'f64'] as const)('NaN is last among %s', async (dtype) => {
    if (dtype === 'f64' && device.startsWith('webgpu')) return;
    const boundaries = sn.tensor([1, 2, NaN, NaN, NaN, NaN, NaN], { dtype });
    const values = sn.tensor([0, 1.5, 2, 5, NaN, Infinity], { dtype });
    // What numpy.searchsorted gives.
    expect(await read(sn.searchsorted(boundaries, values))).toEqual([0, 1, 1, 2, 2, 2]);
    expect(await read(sn.searchsorted(boundaries, values, { right: true }))).toEqual([0, 1, 2, 2, 7, 2]);
  });
});

describe.each(everyDevice)('additions in no fixed order, %s', (device) => {
  beforeAll(() => setDevice(device));
  afterAll(() => setDevice('interpreter'));

  const count = 3000;
  const places = Array.from({ length: count }, (_, i) => (i * i) % 700);
  // Eighths: every order of additions is exact.
  const values = Array.from({ length: count }, (_, i) => ((i * 37) % 41) / 8 - 2);
  const loose = { deterministic: false } as const;

  test('give what ordered ones give, where sums are exact, and its gradient', async () => {
    const index = sn.tensor(places, { dtype: 'i32' });
    for (const dtype of ['f32', 'i32', 'f16'] as const) {
      const x = sn.full([700], 3, { dtype });
      const source = sn.tensor(values, { dtype });
      const ordered = await read(sn.scatterAdd(x, 0, index, source));
      expect(await read(sn.scatterAdd(x, 0, index, source, loose))).toEqual(ordered);
      expect(await read(sn.indexAdd(x, 0, index, source, loose))).toEqual(ordered);
      expect(await read(sn.add(sn.segmentSum(source, index, 700, loose), x))).toEqual(ordered);
    }
    const grown = sn.scatterAdd(sn.zeros([2, 5]), 1, sn.tensor([[1, 1]], { dtype: 'i32' }), 2, loose);
    expect(await read(grown)).toEqual([0, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
    const source = sn.tensor(values).requiresGrad_();
    const weights = sn.cast(sn.arange(700), 'f32');
    sn.sum(sn.mul(sn.scatterAdd(sn.zeros([700]), 0, index, source, loose), weights)).backward();
    expect(await read(source.grad!)).toEqual(places);
  });

  test('are asked for by true or false', () => {
    const [x, index] = [sn.zeros([3]), sn.tensor([1], { dtype: 'i32' })];
    const wrong = { deterministic: 'no' } as unknown as { deterministic: boolean };
    expect(() => sn.scatterAdd(x, 0, index, 1, wrong)).toThrow(
      /^scatterAdd: deterministic must be true or false, got 'no'/,
    );
  });
});

describe('gather and scatter', () => {
  test('take, takeAlongAxis, indexAdd, indexCopy and segmentSum', async () => {
    const x = sn.tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    const index = (...list: number[]): Tensor => sn.tensor(list, { dtype: 'i32' });
    expect(await read(sn.take(x, index(5, 0)))).toEqual([6, 1]);
    const order = sn.tensor([[2, 1, 0]], { dtype: 'i64' });
    expect(await sn.takeAlongAxis(x, order, 1).array()).toEqual([
      [3, 2, 1],
      [6, 5, 4],
    ]);
    expect(await sn.indexAdd(x, 1, index(0, 0), sn.ones([2, 2]), { alpha: 10 }).array()).toEqual([
      [21, 2, 3],
      [24, 5, 6],
    ]);
    expect(await sn.indexCopy(x, 0, index(1), sn.zeros([1, 3])).array()).toEqual([
      [1, 2, 3],
      [0, 0, 0],
    ]);
    expect(await sn.segmentSum(x, index(3, 3), 4).array()).toEqual([
      [0, 0, 0],
      [0, 0, 0],
      [0, 0, 0],
      [5, 7, 9],
    ]);
  });

  test('without checks, positions outside read 0 and are not written', async () => {
    setDevice('wasm');
    setChecks(false);
    onTestFinished(() => {
      setDevice('interpreter');
      setChecks(true);
    });
    const wild = sn.tensor([0, 7, -1], { dtype: 'i32' });
    expect(await read(sn.gather(of(5, 6), 0, wild))).toEqual([5, 0, 0]);
    expect(await read(sn.scatter(of(5, 6), 0, wild, 9))).toEqual([9, 6]);
    expect(await read(sn.oneHot(wild, 2))).toEqual([1, 0, 0, 0, 0, 0]);
    expect(await read(sn.segmentSum(of(1, 2, 3), wild, 2))).toEqual([1, 0]);
  });
});
