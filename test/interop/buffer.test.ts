// Memory that tensors share with other code, on every device: what is written is what tensors see,
// values that were seen stay, and who holds what is counted.

import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { close, compile, fromBuffer, setDevice, tensor, zeros, type Tensor } from '../../src/index.ts';
import {
  allocateBuffer,
  DeviceBuffer,
  Fence,
  openDevice,
  poolStats,
  q8,
  uploadBuffer,
} from '../../src/interop/index.ts';
import { dtypes, type DType } from '../../src/ir/dtype.ts';
import { everyDevice } from '../support/devices.ts';
import { checkLawAsync } from '../support/property.ts';

const code = async (work: () => unknown): Promise<unknown> => {
  try {
    await work();
    return 'nothing is thrown';
  } catch (error) {
    return (error as { code?: unknown }).code ?? error;
  }
};

const noWide: readonly DType[] = ['f64', 'i64', 'u64', 'c128'];

describe.each(everyDevice)('on %s', (name) => {
  beforeAll(() => setDevice(name));
  afterAll(async () => {
    await close();
    setDevice(undefined);
  });

  const has = (dtype: DType): boolean => !(name.startsWith('webgpu') && noWide.includes(dtype));

  test('a buffer knows its device, its elements and its size, and shows them', async () => {
    const buffer = await uploadBuffer([1, 2, 3], { dtype: 'f16' });
    expect([buffer.device, buffer.ordinal, buffer.length, buffer.isEmpty]).toEqual([name, 0, 3, false]);
    expect([buffer.dtype, buffer.elemSize, buffer.byteLength]).toEqual(['f16', 2, 6]);
    expect(String(buffer)).toBe(`DeviceBuffer f16[3] on ${name}`);
    expect((await buffer.readRaw()).length).toBe(8);
    const empty = await allocateBuffer(0, { dtype: 'f16' });
    expect([empty.isEmpty, empty.byteLength]).toEqual([true, 0]);
    expect(await empty.data()).toEqual(new Float32Array(0));
    expect(await fromBuffer(empty).array()).toEqual([]);
    buffer.release();
    empty.release();
  });

  test('what is uploaded comes back, in every dtype, and a tensor of it computes', async () => {
    const cases = fc.record({
      dtype: fc.constantFrom(...dtypes.filter(has)),
      values: fc.array(fc.integer({ min: 0, max: 1 }), { minLength: 2, maxLength: 70 }),
      pinned: fc.boolean(),
    });
    await checkLawAsync(40, cases, async ({ dtype, values, pinned }) => {
      const even = values.slice(0, 2 * Math.floor(values.length / 2));
      const buffer = await uploadBuffer(even, { dtype, pinned });
      const host = await buffer.data();
      expect(Array.from(host as Float32Array, Number)).toEqual(even);
      const made = fromBuffer(buffer, { copy: false });
      expect(made.dtype).toBe(dtype);
      expect(await made.data()).toEqual(host);
      const sum = await made.cast('f32').sum().item();
      const parts = dtype.startsWith('c') ? even.filter((_, i) => i % 2 === 0) : even;
      expect(sum).toBe(parts.reduce((a, b) => a + b, 0));
      buffer.release();
    });
  });

  test('a tensor keeps its value when the memory is written to', async () => {
    const buffer = await uploadBuffer([1, 2, 3, 4]);
    const before = fromBuffer(buffer, { copy: false, shape: [2, 2] });
    const pending = before.mul(10);
    expect(buffer.version).toBe(0);
    buffer.write([7], 1);
    expect(buffer.version).toBe(1);
    expect(await pending.array()).toEqual([
      [10, 20],
      [30, 40],
    ]);
    expect(await before.array()).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(await fromBuffer(buffer).array()).toEqual([1, 7, 3, 4]);
    buffer.release();
  });

  test('what a function passes through keeps its value as well', async () => {
    const passed = compile((x: Tensor) => [x.mul(1), x.reshape([4]), x.add(1)]);
    const buffer = await uploadBuffer([1, 2, 3, 4]);
    const results = passed(fromBuffer(buffer, { copy: false, shape: [2, 2] })) as Tensor[];
    await results[2]!.data();
    buffer.write([9, 9, 9, 9]);
    expect(await results[0]!.array()).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(await results[1]!.array()).toEqual([1, 2, 3, 4]);
    expect(await results[2]!.array()).toEqual([
      [2, 3],
      [4, 5],
    ]);
    const view = fromBuffer(buffer, { copy: false }).reshape([2, 2]);
    await view.data();
    buffer.write([0, 0, 0, 0]);
    expect(await view.sum().item()).toBe(36);
    buffer.release();
  });

  test('a write that the buffer is only told of takes the value away', async () => {
    const buffer = await uploadBuffer([1, 2, 3, 4]);
    const made = fromBuffer(buffer);
    expect(buffer.bumpVersion()).toBe(0);
    expect(buffer.version).toBe(1);
    await expect(made.data()).rejects.toThrow(/was overwritten/);
    buffer.release();
  });

  test('slices and other dtypes are the same memory', async () => {
    const buffer = await uploadBuffer([0, 1, 2, 3, 4, 5, 6, 7]);
    const slice = buffer.slice(2, 6);
    const bits = slice.retype('u32');
    bits.write([0x3f80_0000], 1);
    expect(Array.from((await buffer.data()) as Float32Array)).toEqual([0, 1, 2, 1, 4, 5, 6, 7]);
    slice.writeBytes(new Uint8Array(Float32Array.of(9, 9).buffer), 8);
    expect(await fromBuffer(buffer).array()).toEqual([0, 1, 2, 1, 9, 9, 6, 7]);
    expect(buffer.version).toBe(slice.version);
    buffer.release();
    // The memory is kept by whoever is left.
    expect(await slice.data()).toEqual(Float32Array.of(2, 1, 9, 9));
    slice.release();
    bits.release();
    const bytes = await uploadBuffer([1, 2, 3, 4, 5, 6], { dtype: 'u8' });
    expect(await code(() => bytes.slice(1, 5))).toBe('E_VALIDATION');
    expect(await code(() => bytes.retype('f32'))).toBe('E_VALIDATION');
    expect(await code(() => bytes.writeBytes(Uint8Array.of(1, 2, 3)))).toBe('E_VALIDATION');
    expect(await code(() => bytes.slice(4, 7))).toBe('E_INDEX');
    expect(await bytes.slice(4).data()).toEqual(Uint8Array.of(5, 6));
    bytes.release();
  });

  test('copies are of their own memory, whole or overlapping', async () => {
    const buffer = await uploadBuffer([1, 2, 3, 4, 5, 6, 7, 8]);
    const copy = buffer.clone();
    expect(copy.version).toBe(0);
    const [low, high] = [buffer.slice(0, 6), buffer.slice(2, 8)];
    await high.copyFrom(low);
    expect(Array.from((await buffer.data()) as Float32Array)).toEqual([1, 2, 1, 2, 3, 4, 5, 6]);
    expect(Array.from((await copy.data()) as Float32Array)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(await code(() => copy.copyFrom(low))).toBe('E_SHAPE');
    expect(await code(() => low.copyFrom(low.clone().retype('i32')))).toBe('E_DTYPE');
    for (const each of [low, high, copy, buffer]) each.release();
  });

  test('map lends the bytes, and takes back what was written to them', async () => {
    const buffer = await uploadBuffer([1, 2, 3]);
    await buffer.map('readWrite', (bytes) => {
      const floats = new Float32Array(bytes.buffer, bytes.byteOffset, 3);
      floats[1] = floats[0]! + 40;
    });
    expect(await buffer.data()).toEqual(Float32Array.of(1, 41, 3));
    let seen: number[] = [];
    await buffer.map('read', (bytes) => {
      seen = Array.from(new Float32Array(bytes.slice().buffer));
      bytes.fill(0);
    });
    expect(seen).toEqual([1, 41, 3]);
    expect(await buffer.data()).toEqual(Float32Array.of(1, 41, 3));
    buffer.release();
  });

  test('what nobody holds any more is refused, by name', async () => {
    const buffer = await uploadBuffer([1, 2]);
    expect(buffer.retain().references).toBe(2);
    buffer.release();
    const made = fromBuffer(buffer);
    buffer.release();
    expect(buffer.references).toBe(0);
    for (const use of [
      () => buffer.handle(),
      () => buffer.slice(0),
      () => buffer.release(),
      () => buffer.data(),
      () => buffer.write([1]),
      () => buffer.clone(),
      () => fromBuffer(buffer),
    ]) {
      expect(await code(use)).toBe('E_STATE');
    }
    expect(String(buffer)).toContain('released');
    expect(await made.array()).toEqual([1, 2]);
  });

  test('memory comes back when tensors and buffers are given up', async () => {
    const device = await openDevice();
    await device.finish();
    const before = poolStats(device).buffers;
    const buffer = await uploadBuffer([1, 2, 3, 4]);
    const made = fromBuffer(buffer, { copy: false });
    const slice = buffer.slice(1);
    expect(poolStats(device).buffers).toBeGreaterThan(before);
    made.dispose();
    buffer.release();
    slice.release();
    await device.finish();
    expect(poolStats(device).buffers).toBe(before);
  });

  test('the memory of a value is lent for reading, while it is held', async () => {
    const x = tensor([1, 2, 3, 4]);
    const y = x.mul(2);
    const lent = await y.buffer();
    expect([lent.isReadonly, lent.isWrapped, lent.dtype, lent.length]).toEqual([true, false, 'f32', 4]);
    for (const use of [
      () => lent.write([0]),
      () => lent.handleMut(),
      () => lent.map('write', () => undefined),
      () => lent.take('host'),
    ]) {
      expect(['E_STATE', 'E_VALIDATION']).toContain(await code(use));
    }
    y.dispose();
    expect(await lent.data()).toEqual(Float32Array.of(2, 4, 6, 8));
    expect(await fromBuffer(lent).add(1).array()).toEqual([3, 5, 7, 9]);
    lent.release();
    let traced: Promise<unknown> | undefined;
    compile((t: typeof x) => {
      traced = code(() => t.buffer());
      return t.add(1);
    })(x);
    expect(await traced).toBe('E_STATE');
  });

  test('a donated value that is lent stays what it is', async () => {
    const step = compile((state: ReturnType<typeof zeros>) => state.add(1), { donate: [0] });
    let state = step(tensor([1, 2, 3, 4]));
    const lent = await state.buffer();
    state = step(state);
    expect(await state.array()).toEqual([3, 4, 5, 6]);
    expect(await lent.data()).toEqual(Float32Array.of(2, 3, 4, 5));
    const own = await uploadBuffer([10, 20, 30, 40]);
    const over = step(fromBuffer(own, { copy: false }));
    expect(await over.array()).toEqual([11, 21, 31, 41]);
    expect(await own.data()).toEqual(Float32Array.of(10, 20, 30, 40));
    lent.release();
    own.release();
  });

  test('work of others is waited for', async () => {
    const buffer = await uploadBuffer([0, 0, 0, 0]);
    let done = (): void => undefined;
    const work = new Promise<void>((resolve) => (done = resolve));
    const fence = new Fence(work);
    buffer.setFence(fence);
    expect(buffer.fence).toBe(fence);
    expect([fence.signalled, fence.poll()]).toEqual([false, false]);
    expect(await fence.wait(1)).toBe(false);
    expect(await code(() => buffer.write([1]))).toBe('E_STATE');
    const sum = fromBuffer(buffer).sum().item();
    buffer.clearFence();
    buffer.slice(0, 1).write([5]);
    buffer.setFence(fence);
    setTimeout(done, 5);
    expect(await sum).toBeTypeOf('number');
    expect(await fence.wait()).toBe(true);
    expect(buffer.fence).toBeUndefined();
    // A copy that has to wait holds the memory until it is made.
    let late = (): void => undefined;
    const other = await uploadBuffer([3, 4]);
    other.setFence(new Fence(new Promise<void>((resolve) => (late = resolve))));
    const waiting = fromBuffer(other, { copy: true });
    other.release();
    late();
    expect(await waiting.array()).toEqual([3, 4]);
    buffer.setFence(new Fence(Promise.reject(new Error('their kernel failed'))));
    await expect(buffer.data()).rejects.toThrow('their kernel failed');
    expect(await buffer.settled().wait()).toBe(true);
    buffer.release();
  });

  test('strides and offsets are read as they say', async () => {
    const buffer = await uploadBuffer([0, 1, 2, 3, 4, 5, 6, 7]);
    const shape = [2, 3];
    expect(await fromBuffer(buffer, { shape, strides: [1, 2], offset: 1 }).array()).toEqual([
      [1, 3, 5],
      [2, 4, 6],
    ]);
    expect(await fromBuffer(buffer, { shape, strides: [-4, 0], offset: 7 }).array()).toEqual([
      [7, 7, 7],
      [3, 3, 3],
    ]);
    expect(await fromBuffer(buffer, { shape: [3], offset: 5 }).array()).toEqual([5, 6, 7]);
    expect(await code(() => fromBuffer(buffer, { shape: [3], offset: 6 }))).toBe('E_SHAPE');
    expect(await code(() => fromBuffer(buffer, { shape, strides: [4, 2] }))).toBe('E_INDEX');
    expect(await code(() => fromBuffer(buffer, { dtype: 'i32' }))).toBe('E_DTYPE');
    buffer.release();
  });

  test('blocks of q8 are read as what they stand for', async () => {
    const values = Float32Array.from({ length: 50 }, (_, i) => Math.sin(i) * 10 ** ((i % 7) - 3));
    const buffer = await uploadBuffer(values, { dtype: q8(16) });
    expect(buffer.byteLength).toBe(4 * 20);
    const host = await buffer.data();
    expect(await fromBuffer(buffer).data()).toEqual(host);
    expect(
      await fromBuffer(buffer, { shape: [5, 10] })
        .sum(1)
        .data(),
    ).toHaveLength(5);
    // Scales without an exponent of their own.
    const small = await uploadBuffer([1e-5, -2e-6, 0, 7e-6], { dtype: q8(4) });
    expect(await fromBuffer(small).data()).toEqual(await small.data());
    buffer.release();
    small.release();
  });

  test('buffers of another device are copied by way of the host', async () => {
    const other = name === 'interpreter' ? 'wasm' : 'interpreter';
    const there = await uploadBuffer([4, 5, 6], { device: other });
    const here = await allocateBuffer(3);
    await here.copyFrom(there);
    expect(await here.data()).toEqual(Float32Array.of(4, 5, 6));
    // A tensor goes where it is used.
    expect(await fromBuffer(there).add(fromBuffer(here)).array()).toEqual([8, 10, 12]);
    here.release();
    there.release();
  });

  test('makes buffers by its functions only', async () => {
    expect(await code(() => new DeviceBuffer({} as never))).toBe('E_VALUE');
    expect(await code(() => uploadBuffer([1], { device: 'abacus' }))).toBe('E_DEVICE');
  });
});
