// Elements chosen by masks, distinct elements, and writing into copies: against models that walk every element, on every device.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { everyDevice } from '../../support/devices.ts';
import { holds, read } from '../ops/support.ts';

const numbers = fc.array(fc.constantFrom(-2, -1, 0, 0, 1, 2, 3), { maxLength: 40 });
const flags = (length: number): fc.Arbitrary<boolean[]> =>
  fc.array(fc.boolean(), { minLength: length, maxLength: length });
const masked = numbers.chain((data) => fc.tuple(fc.constant(data), flags(data.length)));
const vector = (data: readonly number[], dtype: sn.DType = 'f32'): sn.Tensor =>
  sn.tensor([...data], { dtype, shape: [data.length] });
const mask = (kept: readonly boolean[]): sn.Tensor =>
  sn.tensor([...kept], { dtype: 'bool', shape: [kept.length] });
/** Compiling takes its time: few examples where kernels are made by other compilers. */
const runs = (device: string): number => ({ interpreter: 40, wasm: 8 })[device] ?? 2;

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => sn.setDevice(device));

  test('maskedSelect keeps order, and expandByMask puts back what it took', async () => {
    await holds(runs(device), masked, async ([data, kept]) => {
      const chosen = await sn.maskedSelect(vector(data), mask(kept));
      expect(await read(chosen)).toEqual(data.filter((_, i) => kept[i]));
      const back = sn.expandByMask(chosen, mask(kept));
      expect(await read(back)).toEqual(data.map((x, i) => (kept[i] === true ? x : 0)));
    });
  });

  test('the gradient of a selection is where it was taken from, and of its gradient a selection', async () => {
    await holds(runs(device), masked, async ([data, kept]) => {
      const x = vector(data).requiresGrad_();
      const [chosen] = sn.maskedSelect(x, mask(kept), { size: kept.filter(Boolean).length });
      const [g] = sn.gradients(sn.sum(sn.mul(chosen, chosen).mul(chosen)), [x]);
      expect(await read(g!)).toEqual(data.map((v, i) => (kept[i] === true ? 3 * v * v : 0)));
      const [h] = sn.gradients(sn.sum(g!), [x]);
      expect(await read(h!)).toEqual(data.map((v, i) => (kept[i] === true ? 6 * v : 0)));
    });
  });

  test('nonzero lists positions in C-order, cut off or filled up where a size is given', async () => {
    const shapes = fc.tuple(fc.integer({ min: 0, max: 4 }), fc.integer({ min: 0, max: 5 }));
    const matrices = shapes.chain(([rows, columns]) =>
      fc.tuple(fc.constant([rows, columns]), flags(rows * columns), fc.integer({ min: 0, max: 9 })),
    );
    await holds(runs(device), matrices, async ([shape, kept, size]) => {
      const x = sn.tensor(kept.map(Number), { shape });
      const expected = kept.flatMap((is, i) => (is ? [[Math.floor(i / shape[1]!), i % shape[1]!]] : []));
      expect(await (await sn.nonzero(x)).array()).toEqual(expected);
      const [places, count] = sn.nonzero(x, { size });
      expect(await count.item()).toBe(expected.length);
      const filled = Array.from({ length: size }, (_, i) => expected[i] ?? [0, 0]);
      expect(await places.array()).toEqual(filled);
    });
  });

  test('unique sorts, names the like of each element and counts them', async () => {
    await holds(runs(device), numbers, async (data) => {
      const x = vector(data, 'i32');
      const { values, inverse, counts } = await sn.unique(x, {
        returnInverse: true,
        returnCounts: true,
      });
      const distinct = [...new Set(data)].sort((a, b) => a - b);
      expect(await read(values)).toEqual(distinct);
      expect(await read(inverse)).toEqual(data.map((at) => distinct.indexOf(at)));
      expect(await read(counts)).toEqual(distinct.map((at) => data.filter((x) => x === at).length));
    });
  });

  test('unique slices stand in lexicographic order', async () => {
    const rows = fc.integer({ min: 1, max: 5 }).chain((width) =>
      fc.array(fc.array(fc.integer({ min: 0, max: 2 }), { minLength: width, maxLength: width }), {
        minLength: 1,
        maxLength: 8,
      }),
    );
    await holds(runs(device), rows, async (list) => {
      const { values, inverse, counts } = await sn.unique(sn.tensor(list), {
        axis: 0,
        returnInverse: true,
        returnCounts: true,
      });
      const compare = (a: readonly number[], b: readonly number[]): number =>
        a.map((at, i) => at - b[i]!).find((d) => d !== 0) ?? 0;
      const sorted = [...list].sort(compare);
      const distinct = sorted.filter((row, i) => i === 0 || compare(sorted[i - 1]!, row) !== 0);
      expect(await values.array()).toEqual(distinct);
      expect(await read(inverse)).toEqual(
        list.map((row) => distinct.findIndex((at) => compare(at, row) === 0)),
      );
      expect(await read(counts)).toEqual(
        distinct.map((row) => list.filter((at) => compare(at, row) === 0).length),
      );
    });
  });

  test('uniqueConsecutive collapses neighbours, and every NaN stands alone', async () => {
    const x = sn.tensor([1, 1, NaN, NaN, 2, 1, 1]);
    const { values, counts } = await sn.uniqueConsecutive(x, { returnCounts: true });
    expect(await read(values)).toEqual([1, NaN, NaN, 2, 1]);
    expect(await read(counts)).toEqual([2, 1, 1, 1, 2]);
    expect(await read((await sn.unique(x)).values)).toEqual([1, 2, NaN, NaN]);
  });

  test('sizes fixed beforehand serve compiled functions, and others are refused there', async () => {
    const chosen = sn.compile((x: sn.Tensor) => {
      const { values, count } = sn.unique(sn.maskedSelect(x, x.gt(0), { size: 4 })[0], { size: 3 });
      return [values, count] as const;
    });
    const [values, count] = chosen(sn.tensor([3, -1, 2, 3, 2]));
    expect([await read(values), await count.item()]).toEqual([[2, 3, 0], 2]);
    expect(() => sn.compile((x: sn.Tensor) => void sn.nonzero(x))(sn.tensor([1]))).toThrow(/size/);
  });

  test('segmentReduce folds neighbours as a loop would, and their gradient goes back', async () => {
    const lengths = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 6 });
    await holds(runs(device), lengths, async (list) => {
      const total = list.reduce((sum, n) => sum + n, 0);
      const data = Array.from({ length: total }, (_, i) => ((i * 7) % 5) - 2);
      const x = vector(data).requiresGrad_();
      const counts = vector(list, 'i32');
      let start = 0;
      const parts = list.map((n) => data.slice(start, (start += n)));
      const sums = sn.segmentReduce(x, 'sum', { lengths: counts });
      expect(await read(sums)).toEqual(parts.map((part) => part.reduce((a, b) => a + b, 0)));
      const most = sn.segmentReduce(x, 'max', { lengths: counts, initial: -1 });
      expect(await read(most)).toEqual(parts.map((part) => Math.max(-1, ...part)));
      const weights = list.map((_, i) => i + 1);
      const [g] = sn.gradients(sn.sum(sums.mul(vector(weights))), [x]);
      expect(await read(g!)).toEqual(list.flatMap((n, i) => new Array<number>(n).fill(i + 1)));
    });
  });

  test('what is written into a part of a copy is what is read there', async () => {
    const x = sn.arange(24, undefined, undefined, { dtype: 'f32' }).reshape([4, 6]);
    const part = sn.full([4, 2], -1);
    const there = sn.sliceScatter(x, part, 1, 1, 6, 3);
    expect(await read(there.slice(1, 1, 6, 3))).toEqual(await read(part));
    expect(await read(sn.sum(there))).toEqual([276 - (1 + 4 + 7 + 10 + 13 + 16 + 19 + 22) - 8]);
    const row = sn.tensor([9, 8, 7, 6, 5, 4]);
    expect(await read(sn.selectScatter(x, row, 0, -1).select(0, 3))).toEqual([9, 8, 7, 6, 5, 4]);
    const diagonal = sn.tensor([-1, -2, -3]);
    const put = sn.diagonalScatter(x, diagonal, { offset: -1 });
    expect(await read(sn.diagonal(put, { offset: -1 }))).toEqual([-1, -2, -3]);
    expect(await read(sn.sliceWrite(x, 0, sn.tensor(1, { dtype: 'i32' }), sn.zeros([2, 6])).sum(1))).toEqual([
      15, 0, 0, 123,
    ]);
    expect(await read(sn.sliceWrite(x, 0, 2, sn.zeros([2, 6])).sum(1))).toEqual([15, 51, 0, 0]);
  });

  test('strided views read and write by steps of any sign', async () => {
    const x = sn.arange(12, undefined, undefined, { dtype: 'f32' });
    expect(await sn.asStrided(x, [3, 2], [-3, 1], 6).array()).toEqual([
      [6, 7],
      [3, 4],
      [0, 1],
    ]);
    const written = sn.asStridedScatter(x, sn.tensor([[90, 91]]), [1, 2], [1, 5], 2);
    expect(await read(written)).toEqual([0, 1, 90, 3, 4, 5, 6, 91, 8, 9, 10, 11]);
    expect(() => sn.asStrided(x, [2, 2], [10, 2])).toThrow(/leave the 12/);
  });

  test('indexPut writes where at reads, adds what meets, and takes masks', async () => {
    const x = sn.zeros([3, 3]);
    const [i, j] = [sn.tensor([0, 2, 0], { dtype: 'i32' }), sn.tensor([1, -1, 1], { dtype: 'i32' })];
    expect(await sn.indexPut(x, [i, j], sn.tensor([1, 2, 3]), { accumulate: true }).array()).toEqual([
      [0, 4, 0],
      [0, 0, 0],
      [0, 0, 2],
    ]);
    expect(await sn.indexPut(x, [null, i], sn.tensor([[1, 2, 3]])).array()).toEqual([
      [3, 0, 2],
      [3, 0, 2],
      [3, 0, 2],
    ]);
    const rows = sn.tensor([true, false, true]);
    expect(await read(sn.indexPut(x, [rows], sn.tensor([[1], [2]])).sum(1))).toEqual([3, 0, 6]);
  });

  test('isin agrees with a walk over the others, few or many', async () => {
    const others = Array.from({ length: 100 }, (_, i) => (i * 37) % 211);
    const asked = Array.from({ length: 50 }, (_, i) => i * 4);
    const expected = asked.map((at) => others.includes(at));
    expect(await sn.isin(vector(asked, 'i32'), vector(others, 'i32')).array()).toEqual(expected);
    expect(await sn.isin(vector(asked), vector(others.slice(0, 9)), { invert: true }).array()).toEqual(
      asked.map((at) => !others.slice(0, 9).includes(at)),
    );
    expect(await sn.isin(sn.tensor([NaN, 1]), sn.tensor([NaN, 1])).array()).toEqual([false, true]);
    const turned = (values: readonly number[]): sn.Tensor => sn.complex(vector(values), vector(values).neg());
    expect(await sn.isin(turned(asked), turned(others)).array()).toEqual(expected);
  });

  test('scatterReduce folds with and without what is there', async () => {
    const x = sn.tensor([10, 20, 30]);
    const index = sn.tensor([0, 0, 2], { dtype: 'i32' });
    const source = sn.tensor([1, 2, 3]);
    const fold = async (how: sn.ScatterReduce, includeSelf: boolean): Promise<number[]> =>
      await read(sn.scatterReduce(x, 0, index, source, how, { includeSelf }));
    expect(await fold('mean', true)).toEqual([13 / 3, 20, 16.5].map(Math.fround));
    expect(await fold('mean', false)).toEqual([1.5, 20, 3]);
    expect(await fold('amax', false)).toEqual([2, 20, 3]);
    expect(await fold('prod', false)).toEqual([2, 20, 3]);
  });

  test('repeats in a tensor are as listed ones', async () => {
    const x = sn.tensor([[1, 2, 3]]);
    const repeats = sn.tensor([2, 0, 1], { dtype: 'i32' });
    expect(await (await sn.repeatInterleave(x, repeats, 1)).array()).toEqual([[1, 1, 3]]);
    const sized = sn.repeatInterleave(x, repeats, 1, { outputSize: 3 });
    expect(await sized.array()).toEqual([[1, 1, 3]]);
  });
});

test('positions that no element has are errors where they are watched', async () => {
  sn.setDevice('interpreter');
  const x = sn.zeros([3]);
  const check = async (make: () => sn.Tensor): Promise<unknown> => make().data();
  await expect(check(() => sn.take(x, sn.tensor([3], { dtype: 'i32' })))).rejects.toThrow(/index 3/);
  await expect(
    check(() => sn.maskedScatter(x, sn.ones([3], { dtype: 'bool' }), sn.zeros([2]))),
  ).rejects.toThrow(/true 3 times/);
  expect(await read(sn.take(sn.tensor([1, 2, 3]), sn.tensor([-1], { dtype: 'i32' })))).toEqual([3]);
});
