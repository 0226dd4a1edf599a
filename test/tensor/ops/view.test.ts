// Views and casts where PyTorch's figures do not reach: other names of the same, rank 0, conversions.

import { beforeAll, describe, expect, test } from 'vitest';
import { topological } from '../../../src/ir/graph.ts';
import { nodeOf } from '../../../src/tensor/record.ts';
import * as sn from '../../../src/operations/index.ts';
import { setDevice } from '../../../src/tensor/device.ts';
import { clone } from '../../../src/tensor/ops/shape/view.ts';
import { plain, ramp, read, toTensor } from './support.ts';

beforeAll(() => setDevice('interpreter'));

describe('views', () => {
  const x = toTensor(ramp([2, 3]));

  test('under other names are the same views', () => {
    const node = nodeOf(sn.reshape(x, [3, 2]));
    expect(nodeOf(sn.view(x, [-1, 2]))).toBe(node);
    expect(nodeOf(sn.viewAs(x, sn.ones([3, 2])))).toBe(node);
    const wide = nodeOf(sn.expand(x, [4, 2, 3]));
    expect(nodeOf(sn.broadcastTo(x, [4, -1, 3]))).toBe(wide);
    expect(nodeOf(sn.expandAs(x, sn.ones([4, 2, 3])))).toBe(wide);
    expect(nodeOf(sn.t(x))).toBe(nodeOf(sn.transpose(x)));
    expect(nodeOf(sn.moveaxis(x, 0, -1))).toBe(nodeOf(sn.permute(x, [1, 0])));
  });

  test('that change nothing record nothing', () => {
    const before = nodeOf(x);
    for (const same of [
      sn.reshape(x, [2, 3]),
      sn.permute(x, [0, 1]),
      sn.expand(x, [2, 3]),
      sn.slice(x, 0),
      sn.pad(x, [[0, 0]]),
    ]) {
      expect(nodeOf(same)).toBe(before);
    }
  });

  test('work on rank 0', async () => {
    const one = sn.tensor(3);
    expect(sn.flatten(one).shape).toEqual([1]);
    expect(sn.t(one).shape).toEqual([]);
    expect(sn.unsqueeze(one, -1).shape).toEqual([1]);
    expect(sn.squeeze(one).shape).toEqual([]);
    expect(await read(sn.at(one, null, '...'))).toEqual([3]);
    expect(await read(sn.flip(one))).toEqual([3]);
  });

  test('a clone keeps its value when the original is assigned', async () => {
    const original = sn.tensor([1, 2]);
    const copy = clone(original);
    original.assign(sn.tensor([5, 6]));
    expect([await read(copy), await read(original)]).toEqual([
      [1, 2],
      [5, 6],
    ]);
  });

  test('are index maps: no arithmetic is recorded', () => {
    const moved = sn.unfold(sn.flip(sn.roll(sn.repeatInterleave(sn.transpose(x), 2, 0), 1, 0), 0), 0, 2);
    const ops = new Set(topological([nodeOf(moved)]).map((node) => node.op));
    expect([...ops].toSorted()).toEqual([
      'broadcast',
      'concat',
      'parameter',
      'permute',
      'reshape',
      'slice',
      'window',
    ]);
  });
});

describe('casts', () => {
  test('saturate, truncate and test', async () => {
    const x = sn.tensor([1.9, -1.9, NaN, 1e20]);
    expect(await plain(sn.toInt(x))).toEqual({ shape: [4], data: [1, -1, 0, 2 ** 31 - 1] });
    expect(await read(sn.toBool(x))).toEqual([1, 1, 1, 1]);
    expect(await read(sn.toHalf(sn.tensor([1e20, 0.1])))).toEqual([Infinity, 0.0999755859375]);
    expect(sn.toFloat(sn.arange(2)).dtype).toBe('f32');
    expect(sn.to(x, 'bf16').dtype).toBe('bf16');
  });
});

test('maskedMax and maskedMin see only what the mask shows', async () => {
  const x = sn.tensor([
    [1, NaN, 3],
    [4, 5, 6],
  ]);
  const mask = sn.tensor([
    [true, false, true],
    [false, false, false],
  ]);
  expect(await read(sn.maskedMax(x, mask, 1))).toEqual([3, -Infinity]);
  expect(await read(sn.maskedMin(x, mask))).toEqual([1]);
  const whole = sn.tensor([3, 1], { dtype: 'i32' });
  expect(await read(sn.maskedMin(whole, sn.tensor([false])))).toEqual([2 ** 31 - 1]);
  expect(() => sn.maskedMax(whole, sn.ones([1]))).toThrow(/maskedMax: the mask must be bool: f32\[1\]/);
});

test('tanhshrink and randLike', async () => {
  const x = sn.tensor([0.5], { dtype: 'f16' });
  expect((await read(sn.tanhshrink(x)))[0]).toBeCloseTo(0.5 - Math.tanh(0.5), 3);
  expect([sn.randLike(x).dtype, sn.randLike(x).shape]).toEqual(['f16', [1]]);
});
