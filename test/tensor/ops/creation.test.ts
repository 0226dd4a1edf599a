// Tensors from host data and from nothing.

import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/operations/index.ts';
import { setDevice } from '../../../src/tensor/device.ts';
import { read } from './support.ts';

beforeAll(() => setDevice('interpreter'));

describe('tensor', () => {
  test('takes its shape from the nesting, and f32, bool or i64 from the kind of value', async () => {
    const numbers = sn.tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    expect([numbers.dtype, numbers.shape]).toEqual(['f32', [2, 3]]);
    expect(await numbers.array()).toEqual([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    expect(sn.tensor([true, false]).dtype).toBe('bool');
    expect(await sn.tensor([2n ** 40n, -1n]).array()).toEqual([2n ** 40n, -1n]);
    expect([sn.tensor(3.5).shape, await sn.tensor(3.5).item()]).toEqual([[], 3.5]);
    expect(sn.tensor([]).shape).toEqual([0]);
    expect(sn.tensor([[], []]).shape).toEqual([2, 0]);
  });

  test.each([
    [new Float32Array([1, 2]), 'f32'],
    [new Float64Array([1, 2]), 'f64'],
    [new Int32Array([1, 2]), 'i32'],
    [new Uint32Array([1, 2]), 'u32'],
    [new Int16Array([1, 2]), 'i16'],
    [new Uint16Array([1, 2]), 'u16'],
    [new Int8Array([1, 2]), 'i8'],
    [new Uint8Array([1, 2]), 'u8'],
    [new Uint8ClampedArray([1, 2]), 'u8'],
    [new BigInt64Array([1n, 2n]), 'i64'],
    [new BigUint64Array([1n, 2n]), 'u64'],
  ] as const)('keeps the dtype of %o', async (data, dtype) => {
    const x = sn.tensor(data);
    expect([x.dtype, x.shape, await read(x)]).toEqual([dtype, [2], [1, 2]]);
  });

  test('copies, reshapes and converts', async () => {
    const data = new Float32Array([1.5, -2.5, 300, NaN]);
    const x = sn.tensor(data, { shape: [2, 2], dtype: 'u8' });
    data.fill(0);
    expect(await x.array()).toEqual([
      [1, 0],
      [255, 0],
    ]);
    expect(await read(sn.tensor([0.1], { dtype: 'bf16' }))).toEqual([0.10009765625]);
  });

  test.each([
    [[[1, 2], [3]], /ragged array: expected an array of 2 at depth 1, got an array of 1/],
    [[[1, 2], 3], /ragged array: expected an array of 2 at depth 1, got 3/],
    [[1, [2]], /ragged array: expected a number at depth 1, got an array of 1/],
    [[1, true], /mixes number and boolean values/],
    [
      [1, undefined],
      /expects numbers, booleans, bigints or { re, im }, in arrays or a typed array, got undefined/,
    ],
  ])('refuses %j', (data, message) => {
    expect(() => sn.tensor(data as number[])).toThrow(message);
  });

  test('refuses a shape that the data does not fill', () => {
    expect(() => sn.tensor([1, 2, 3], { shape: [2, 2] })).toThrow(/shape \[2,2\] takes 4 elements, got 3/);
    expect(() => sn.tensor(new Int8Array(3), { shape: [4] })).toThrow(/takes 4 elements, got 3/);
  });
});

describe('constants and sequences', () => {
  test('zeros, ones, full and their likes', async () => {
    expect(await read(sn.zeros([2, 1]))).toEqual([0, 0]);
    expect(sn.ones([2], { dtype: 'i8' }).dtype).toBe('i8');
    expect([sn.full([1], true).dtype, sn.full([1], 2n).dtype, sn.full([1], 2).dtype]).toEqual([
      'bool',
      'i64',
      'f32',
    ]);
    expect(await read(sn.full([1], 300.7, { dtype: 'u8' }))).toEqual([255]);
    const like = sn.onesLike(sn.zeros([2, 3], { dtype: 'f16' }));
    expect([like.dtype, like.shape]).toEqual(['f16', [2, 3]]);
    expect(await read(sn.fullLike(sn.tensor([1n]), 7))).toEqual([7]);
    expect(await read(sn.zerosLike(sn.ones([2])))).toEqual([0, 0]);
  });

  test('arange counts like a loop', async () => {
    expect(await read(sn.arange(4))).toEqual([0, 1, 2, 3]);
    expect(await read(sn.arange(2, 9, 3))).toEqual([2, 5, 8]);
    expect(await read(sn.arange(3, -2, -2))).toEqual([3, 1, -1]);
    expect([sn.arange(3).dtype, sn.arange(0, 1, 0.25).dtype]).toEqual(['i32', 'f32']);
    expect(await read(sn.arange(0, 1, 0.25))).toEqual([0, 0.25, 0.5, 0.75]);
    expect(await read(sn.arange(0))).toEqual([]);
    expect(await read(sn.arange(3, undefined, 1, { dtype: 'i64' }))).toEqual([0, 1, 2]);
  });

  test('linspace is exact at both ends', async () => {
    expect(await read(sn.linspace(0, 1, 5))).toEqual([0, 0.25, 0.5, 0.75, 1]);
    const odd = await read(sn.linspace(-0.1, 0.3, 7));
    expect([odd[0], odd[6]]).toEqual([Math.fround(-0.1), Math.fround(0.3)]);
    expect(await read(sn.linspace(5, 9, 1))).toEqual([5]);
    expect(await read(sn.linspace(5, 9, 0))).toEqual([]);
  });

  test('eye has ones on the diagonal', async () => {
    expect(await sn.eye(2, 3).array()).toEqual([
      [1, 0, 0],
      [0, 1, 0],
    ]);
  });
});

test('vander of narrow integers counts in i32, as running products do', async () => {
  for (const dtype of ['i8', 'u8', 'i16', 'bool'] as const) {
    const powers = sn.vander(sn.tensor(dtype === 'bool' ? [true] : [7], { dtype }), { n: 5 });
    expect(powers.dtype).toBe('i32');
    expect(await powers.array()).toEqual([dtype === 'bool' ? [1, 1, 1, 1, 1] : [2401, 343, 49, 7, 1]]);
  }
  expect(sn.vander(sn.tensor([7n]), { n: 2 }).dtype).toBe('i64');
});
