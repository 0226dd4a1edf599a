// Movements and joins against models that say where each element comes from.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/operations/index.ts';
import { setDevice } from '../../../src/tensor/device.ts';
import { build, element, holds, plain, ramp, read, toTensor } from './support.ts';

beforeAll(() => setDevice('interpreter'));

const shape = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 });
const mod = (n: number, size: number): number => ((n % size) + size) % size;

describe('padding', () => {
  const padded = fc
    .record({
      sizes: fc.array(fc.integer({ min: 2, max: 5 }), { minLength: 1, maxLength: 2 }),
      ends: fc.array(fc.tuple(fc.integer({ min: 0, max: 1 }), fc.integer({ min: 0, max: 1 })), {
        minLength: 1,
        maxLength: 2,
      }),
    })
    .map(({ sizes, ends }) => ({ sizes, ends: ends.slice(0, sizes.length) as [number, number][] }));
  const sources = {
    reflect: (i: number, n: number) => (i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i),
    replicate: (i: number, n: number) => Math.min(n - 1, Math.max(0, i)),
    circular: mod,
  };

  test.each(['reflect', 'replicate', 'circular'] as const)(
    '%s takes elements from where it says',
    async (mode) => {
      await holds(100, padded, async ({ sizes, ends }) => {
        const x = ramp(sizes);
        const lead = sizes.length - ends.length;
        const all = sizes.map((_, axis): readonly [number, number] => ends[axis - lead] ?? [0, 0]);
        const found = await plain(sn.pad(toTensor(x), ends, { mode }));
        const to = sizes.map((size, axis) => size + all[axis]![0] + all[axis]![1]);
        expect(found).toEqual(
          build(to, (position) =>
            element(
              x,
              position.map((i, axis) => sources[mode](i - all[axis]![0], sizes[axis]!)),
            ),
          ),
        );
      });
    },
  );

  test('wide mirrors and repeats, negative ends cut', async () => {
    const x = toTensor(ramp([4]));
    expect(await read(sn.pad(x, [[3, 3]], { mode: 'reflect' }))).toEqual([3, 2, 1, 0, 1, 2, 3, 2, 1, 0]);
    expect(await read(sn.pad(x, [[3, 1]], { mode: 'replicate' }))).toEqual([0, 0, 0, 0, 1, 2, 3, 3]);
    expect(await read(sn.pad(x, [[4, 2]], { mode: 'circular' }))).toEqual([0, 1, 2, 3, 0, 1, 2, 3, 0, 1]);
    expect(await read(sn.pad(x, [[-1, 2]], { value: 9 }))).toEqual([1, 2, 3, 9, 9]);
    expect(await read(sn.pad(x, [[-2, -2]]))).toEqual([]);
  });
});

describe('laws', () => {
  test('rolling forth and back, flipping twice, and moving axes twice change nothing', async () => {
    const cases = fc.record({
      sizes: shape,
      shift: fc.integer({ min: -9, max: 9 }),
      axis: fc.integer({ min: 0, max: 2 }),
    });
    await holds(60, cases, async ({ sizes, shift, axis }) => {
      const at = axis % sizes.length;
      const x = ramp(sizes);
      const t = toTensor(x);
      expect(await plain(sn.roll(sn.roll(t, shift, at), -shift, at))).toEqual(x);
      expect(await plain(sn.roll(sn.roll(t, shift), -shift))).toEqual(x);
      expect(await plain(sn.flip(sn.flip(t, at), at))).toEqual(x);
      expect(await plain(sn.moveaxis(sn.moveaxis(t, at, 0), 0, at))).toEqual(x);
      expect(await plain(sn.cat(sn.split(t, 2, at), at))).toEqual(x);
      expect(await plain(sn.stack(sn.unbind(t, at), at))).toEqual(x);
      expect(await plain(sn.unflatten(sn.flatten(t), 0, sizes))).toEqual(x);
    });
  });

  test('the triangles add up to the matrix, and reach across as far as asked', async () => {
    const x = ramp([2, 3, 4]);
    const t = toTensor(x);
    for (const k of [-9, -1, 0, 2, 9, 2 ** 40]) {
      expect(await plain(sn.add(sn.tril(t, k), sn.triu(t, k + 1)))).toEqual(x);
    }
  });

  test('diagEmbed undoes diagonal on diagonal matrices, in batches and off the main diagonal', async () => {
    for (const offset of [-2, 0, 1]) {
      const x = ramp([2, 3]);
      const embedded = sn.diagEmbed(toTensor(x), offset);
      expect(embedded.shape).toEqual([2, 3 + Math.abs(offset), 3 + Math.abs(offset)]);
      expect(await plain(sn.diagonal(embedded, { offset, axis1: 1, axis2: 2 }))).toEqual(x);
      expect(await read(sn.sum(embedded))).toEqual([15]);
    }
    expect(await plain(sn.diagEmbed(sn.zeros([0]), 1))).toEqual({ shape: [1, 1], data: [0] });
    expect(sn.diagonal(sn.ones([2, 3]), { offset: 7 }).shape).toEqual([0]);
  });
});

describe('joins and repeats', () => {
  test('cat promotes, and drops what is empty', async () => {
    const joined = sn.cat([sn.tensor([1n], { dtype: 'i32' }), sn.zeros([0]), sn.tensor([2.5])]);
    expect([joined.dtype, await read(joined)]).toEqual(['f32', [1, 2.5]]);
    expect(sn.cat([sn.zeros([0, 2]), sn.zeros([0, 2])], 1).shape).toEqual([0, 4]);
    expect(sn.stack([sn.ones([2]), sn.ones([2], { dtype: 'i32' })], -1).shape).toEqual([2, 2]);
  });

  test('split and chunk keep the remainder last', () => {
    const x = sn.ones([7, 2]);
    expect(sn.split(x, 3).map((part) => part.shape[0])).toEqual([3, 3, 1]);
    expect(sn.split(x, [2, 0, 5]).map((part) => part.shape[0])).toEqual([2, 0, 5]);
    expect(sn.chunk(x, 3).map((part) => part.shape[0])).toEqual([3, 3, 1]);
    expect(sn.chunk(x, 6).map((part) => part.shape[0])).toEqual([2, 2, 2, 1]);
  });

  test('repeat, tile and repeatInterleave copy in their own order', async () => {
    const x = toTensor(ramp([2, 2]));
    expect(await read(sn.repeat(x, [2, 1, 2]))).toEqual([0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3]);
    expect(await read(sn.tile(x, [2]))).toEqual([0, 1, 0, 1, 2, 3, 2, 3]);
    expect(await read(sn.repeatInterleave(x, 2))).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
    expect(await read(sn.repeatInterleave(x, [0, 3], 1))).toEqual([1, 1, 1, 3, 3, 3]);
  });

  test('meshgrid spreads each vector over the others', async () => {
    const [a, b] = [toTensor(ramp([2])), toTensor(ramp([3]))];
    const [rows, columns] = sn.meshgrid([a, b]);
    expect(await rows!.array()).toEqual([
      [0, 0, 0],
      [1, 1, 1],
    ]);
    expect(await columns!.array()).toEqual([
      [0, 1, 2],
      [0, 1, 2],
    ]);
    const [across, down] = sn.meshgrid([a, b], { indexing: 'xy' });
    expect(await across!.array()).toEqual([
      [0, 1],
      [0, 1],
      [0, 1],
    ]);
    expect(await down!.array()).toEqual([
      [0, 0],
      [1, 1],
      [2, 2],
    ]);
  });
});
