// Operations on unsigned integers and complex numbers where PyTorch computes in the operands' own dtype: figures are PyTorch 1.13's.

import { expect, test } from 'vitest';
import {
  batchNorm,
  cosineEmbeddingLoss,
  cumulativeTrapezoid,
  linspace,
  logspace,
  pad,
  softmin,
  tensor,
  trapezoid,
  zeros,
} from '../../src/index.ts';

const bytes = (data: number[] | number[][]): ReturnType<typeof tensor> => tensor(data, { dtype: 'u8' });

test('areas of unsigned integers are of differences that wrap', async () => {
  const [y, x] = [bytes([[3, 3, 6], [2, 7, 2]]), bytes([[6, 6, 4], [0, 5, 8]])]; // prettier-ignore
  expect(await trapezoid(y, -1, { x }).array()).toEqual([119, 36]);
  const [v, u] = [bytes([[3, 9, 0], [3, 2, 4]]), bytes([[7, 1, 7], [0, 1, 0]])]; // prettier-ignore
  expect(await cumulativeTrapezoid(v, -1, { x: u }).array()).toEqual([[92, 119], [2.5, 127.5]]); // prettier-ignore
});

test('areas of integers that are equally far apart do not wrap', async () => {
  expect(await trapezoid(bytes([255, 200])).item()).toBe(227.5);
  expect(await cumulativeTrapezoid(bytes([255, 200, 1]), 0, { dx: 2 }).array()).toEqual([455, 656]);
  const largest = tensor([2 ** 31 - 1, 2 ** 31 - 1], { dtype: 'i32' });
  expect(await trapezoid(largest).item()).toBe(2 ** 31);
});

test('softmin negates unsigned integers as such', async () => {
  const found = (await softmin(bytes([8, 5, 0, 6, 2]), 0, { dtype: 'f32' }).array()) as number[];
  [0.0023153326, 0.0465046988, 0, 0.0171081226, 0.9340718459].forEach((want, i) =>
    expect(found[i]).toBeCloseTo(want, 6),
  );
});

test('the greatest unsigned target is −1 to cosineEmbeddingLoss', async () => {
  const [x, y] = [bytes([[4, 8, 8, 7, 3]]), bytes([[5, 6, 0, 3, 4]])]; // prettier-ignore
  const found = await cosineEmbeddingLoss(x, y, bytes([255]), { margin: -0.7312715117751976 }).item();
  expect(found).toBeCloseTo(1.4975672960281372, 5);
});

test('pad takes a complex value where elements are complex', async () => {
  const z = tensor([{ re: 1, im: 2 }]);
  const value = { re: 3, im: -4 };
  expect(await pad(z, [[1, 0]], { value }).array()).toEqual([value, { re: 1, im: 2 }]);
  expect(() => pad(tensor([1]), [[1, 0]], { value })).toThrow(/complex value does not fit/);
});

test('batchNorm gives nothing of nothing', async () => {
  const [output] = batchNorm(zeros([0]), undefined, undefined, undefined, undefined, { training: true });
  expect(await output.array()).toEqual([]);
});

test('ends of integer ranges are integers first', async () => {
  const dtype = 'i32';
  expect(await linspace(4.9, 9.9, 4, { dtype }).array()).toEqual([4, 5, 7, 9]);
  expect(await linspace(-4.9, 9.9, 6, { dtype }).array()).toEqual([-4, -1, 1, 3, 6, 9]);
  expect(await logspace(1.9, 3.9, 5, 2, { dtype }).array()).toEqual([2, 2, 4, 5, 8]);
  expect(await logspace(-1.5, 3.2, 4, 2.5, { dtype }).array()).toEqual([0, 1, 4, 15]);
});
