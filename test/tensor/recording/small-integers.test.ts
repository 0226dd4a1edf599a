// Tensors of 8- and 16-bit integers are the same on every device, whether its kernels have such numbers or take them as words.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  add,
  bitcast,
  cast,
  close,
  compile,
  explain,
  lower,
  mul,
  setDevice,
  sum,
  tensor,
  type Tensor,
} from '../../../src/index.ts';
import { everyDevice } from '../../support/devices.ts';

const small = ['i8', 'u8', 'i16', 'u16'] as const;
const sizes = [0, 1, 2, 3, 4, 5, 17];

const counting = (count: number, dtype: (typeof small)[number]): Tensor =>
  tensor(
    Array.from({ length: count }, (_, i) => 7 * i),
    { dtype, shape: [count] },
  );

afterAll(async () => {
  await close();
  setDevice(undefined);
});

describe.each(everyDevice)('on %s', (device) => {
  beforeAll(() => setDevice(device));

  describe.each(small)('%s', (dtype) => {
    const limit = 2 ** Number(dtype.slice(1));
    const wrapped = (value: number): number => {
      const low = ((value % limit) + limit) % limit;
      return dtype.startsWith('i') && low >= limit / 2 ? low - limit : low;
    };

    test.each(sizes)('%i elements, by operations and compiled', async (count) => {
      const x = counting(count, dtype);
      const f = (t: Tensor): Tensor => t.mul(t).sub(3);
      const expected = Array.from({ length: count }, (_, i) => wrapped(49 * i * i - 3));
      expect(await f(x).array()).toEqual(expected);
      expect(await compile(f)(x).array()).toEqual(expected);
      // Computed in between, so that the second program begins where the first one ended.
      const between = mul(x, x);
      await between.data();
      expect(await between.sub(3).array()).toEqual(expected);
    });

    test('a state that is donated and one that is assigned', async () => {
      const step = compile((state: Tensor, by: Tensor) => add(state, by), { donate: [0] });
      let state = counting(5, dtype);
      const kept = tensor([1, 2, 3], { dtype });
      for (let i = 0; i < 4; i++) {
        state = step(state, tensor(100, { dtype }));
        kept.assign(kept.mul(i + 2));
      }
      expect(await state.array()).toEqual([0, 7, 14, 21, 28].map((value) => wrapped(value + 400)));
      expect(await kept.array()).toEqual([120, 240, 360].map(wrapped));
    });

    test('views, what is handed through, rank 0, and a scalar that varies', async () => {
      const x = counting(6, dtype);
      const [same, turned] = compile((t: Tensor) => [t, t.reshape([2, 3]).permute([1, 0])] as const)(x);
      expect(await same.array()).toEqual([0, 7, 14, 21, 28, 35]);
      expect(await turned.array()).toEqual([
        [0, 21],
        [7, 28],
        [14, 35],
      ]);
      expect(await turned.reshape([6]).slice(0, 1, 5).array()).toEqual([21, 7, 28, 14]);
      for (const by of [1, 2, 3]) expect(await sum(x.slice(0, 0, 2).mul(by)).item()).toBe(7 * by);
    });
  });

  test('bits read as another dtype', async () => {
    const bytes = tensor([-1, -128, 5], { dtype: 'i8' });
    expect(await bitcast(bytes, 'u8').array()).toEqual([255, 128, 5]);
    const halves = tensor([1, -2.5, 65504], { dtype: 'f16' });
    expect(await bitcast(halves, 'u16').array()).toEqual([0x3c00, 0xc100, 0x7bff]);
    expect(await bitcast(bitcast(halves, 'i16'), 'f16').array()).toEqual([1, -2.5, 65504]);
  });

  test('go on to another device', async () => {
    const x = counting(5, 'i8').add(1);
    await x.data();
    setDevice(device === 'wasm' ? 'webgpu:software' : 'wasm');
    const y = x.mul(2);
    await y.data();
    setDevice(device);
    expect(await y.add(1).array()).toEqual([3, 17, 31, 45, 59]);
  });
});

test('kernels for WebGPU are explained and lowered without a device', () => {
  const bytes = counting(8, 'u8');
  const f = (x: Tensor): Tensor => cast(x, 'f32').mul(0.5);
  expect(explain(f, bytes).kernels.length).toBe(1);
  expect(lower(f, [bytes])[0]!.source).toContain('u32');
});
