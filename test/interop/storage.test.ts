// Storages: which side is newer, that each is brought up to date when it is asked for and once, and
// what is held weakly.
//
// Runs in a process of its own: it counts what the collector leaves in memory.

import * as fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { close, setDevice, stats, tensor } from '../../src/index.ts';
import {
  allocateBuffer,
  decodeQ8,
  deviceByteSize,
  elemSize,
  encodeQ8,
  Fence,
  fenceId,
  gradMeta,
  incomingGrads,
  Layout,
  describeFormat,
  noFence,
  q8,
  q8BlockStride,
  Storage,
  storageId,
} from '../../src/interop/index.ts';
import type { HostData } from '../../src/ir/value.ts';
import { everyDevice } from '../support/devices.ts';
import { checkLaw, checkLawAsync } from '../support/property.ts';
import { finalized } from '../support/collector.ts';

const numbers = (data: HostData): number[] => Array.from(data as Float32Array, Number);

describe.each(everyDevice)('a storage on %s', (name) => {
  beforeEach(() => setDevice(name));
  afterEach(async () => {
    await close();
    setDevice(undefined);
  });

  test('goes from side to side, and each side is copied when it is stale', async () => {
    const storage = Storage.ofHost([1, 2, 3]);
    expect([storage.residency, storage.dirty, storage.isOnDevice, storage.version]).toEqual([
      'host',
      'clean',
      false,
      0,
    ]);
    storage.markDeviceDirty();
    expect(storage.dirty).toBe('clean');
    await storage.ensureHost();
    await storage.ensureDevice();
    expect([storage.residency, storage.dirty]).toEqual(['both', 'clean']);
    const memory = await storage.buffer();
    const { version } = memory;
    await storage.ensureDevice();
    expect(memory.version).toBe(version);
    await storage.write((data) => void (data[0] = 10));
    expect([storage.dirty, storage.version]).toEqual(['host', 1]);
    expect(numbers(await storage.data())).toEqual([10, 2, 3]);
    // The same memory is written to again.
    expect(await (await storage.tensor()).array()).toEqual([10, 2, 3]);
    expect(storage.dirty).toBe('clean');
    expect(numbers(await memory.data())).toEqual([10, 2, 3]);
    // What came by the buffer is a write to the storage.
    memory.write([7], 2);
    expect([storage.dirty, storage.version]).toEqual(['device', 2]);
    expect(numbers(await storage.data())).toEqual([10, 2, 7]);
    expect(storage.dirty).toBe('clean');
    expect(storage.bumpVersion()).toBe(2);
    expect(String(storage)).toBe(`Storage ${storage.id} f32[3] (both, version 3)`);
    memory.release();
    storage.release();
    await expect(storage.data()).rejects.toMatchObject({ code: 'E_STATE' });
  });

  test('is read once by many at a time', async () => {
    const memory = await allocateBuffer(4);
    memory.write([1, 2, 3, 4]);
    const storage = Storage.ofDevice(memory);
    expect(storage.residency).toBe('device');
    const reads = [storage.data(), storage.data(), storage.ensureHost(), storage.data()];
    await Promise.resolve();
    await Promise.resolve();
    expect(['transferring', 'device']).toContain(storage.residency);
    const [one, , , last] = await Promise.all(reads);
    expect(numbers(one!)).toEqual([1, 2, 3, 4]);
    // Copies: what one does to its own is not the others'.
    one![0] = 9;
    expect(numbers(last!)).toEqual([1, 2, 3, 4]);
    expect(storage.residency).toBe('both');
    storage.release();
    expect(numbers(await memory.data())).toEqual([1, 2, 3, 4]);
    memory.release();
  });

  test('holds what its format holds: f16 rounds, blocks quantise, on both sides alike', async () => {
    for (const dtype of ['f16', 'bf16', q8(4)] as const) {
      const storage = Storage.ofHost([1.0001, -2.7, 0.3, 100.7, 5], { dtype });
      const before = numbers(await storage.data());
      await storage.ensureDevice();
      const memory = await storage.buffer();
      expect(numbers(await memory.data())).toEqual(before);
      await storage.write((data) => void (data[1] = 3.3333));
      expect(numbers(await (await storage.tensor()).cast('f32').data())).toEqual(
        numbers(await storage.data()),
      );
      expect((await storage.toHostRaw()).length).toBe(deviceByteSize(dtype, 5));
      memory.release();
      storage.release();
    }
  });

  test('is seen and written to through layouts', async () => {
    const storage = Storage.ofHost(Array.from({ length: 12 }, (_, i) => i));
    const turned = new Layout([3, 4]).transpose(0, 1);
    expect(await (await storage.tensor(turned)).array()).toEqual([
      [0, 4, 8],
      [1, 5, 9],
      [2, 6, 10],
      [3, 7, 11],
    ]);
    const row = new Layout([3, 4]).select(0, 1).flip(0);
    const old = await storage.tensor();
    await storage.stridedWrite(row, [40, 30, 20, 10]);
    expect(await (await storage.tensor(new Layout([3, 4]))).array()).toEqual([
      [0, 1, 2, 3],
      [10, 20, 30, 40],
      [8, 9, 10, 11],
    ]);
    expect((await old.array()) as number[]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    await expect(storage.tensor(new Layout([13]))).rejects.toThrow(/reaches place 12/);
    await expect(storage.stridedWrite(row, [1])).rejects.toThrow(/takes 4 real elements/);
    storage.release();
  });

  test('waits for work of others, and stays as it was where a transfer fails', async () => {
    const storage = Storage.ofHost([1, 2]);
    let done = (): void => undefined;
    const fence = new Fence(new Promise<void>((resolve) => (done = resolve)));
    storage.setFence(fence);
    expect(storage.fence).toBe(fence.id);
    let isRead = false;
    const read = storage.data().then((data) => ((isRead = true), data));
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(isRead).toBe(false);
    done();
    expect(numbers(await read)).toEqual([1, 2]);
    expect(storage.fence).toBeUndefined();
    await expect(storage.ensureDevice('abacus')).rejects.toMatchObject({ code: 'E_DEVICE' });
    expect([storage.residency, storage.dirty]).toEqual(['host', 'clean']);
    expect(numbers(await storage.data())).toEqual([1, 2]);
    storage.release();
  });
});

test('a value of a tensor is a storage that does not change', async () => {
  setDevice('wasm:1');
  const memory = await tensor([1, 2]).mul(2).buffer();
  const storage = Storage.ofDevice(memory);
  await expect(storage.write(() => undefined)).rejects.toMatchObject({ code: 'E_STATE' });
  expect(numbers(await storage.data())).toEqual([2, 4]);
  storage.release();
  memory.release();
  setDevice(undefined);
});

test('what is held weakly goes', async () => {
  const kept = Storage.ofHost([1]);
  const weak = kept.weak();
  expect(weak.upgrade()).toBe(kept);
  expect(String(weak)).toBe('WeakStorage f32 (alive, version 0)');
  await kept.write(() => undefined);
  expect(weak.version).toBe(1);
  kept.release();
  expect(weak.upgrade()).toBeUndefined();
  const lost = ((): ReturnType<Storage['weak']> => Storage.ofHost([1]).weak())();
  // What a WeakRef was made of stays for the turn.
  await new Promise((resolve) => setImmediate(resolve));
  await finalized();
  expect(lost.upgrade()).toBeUndefined();
  expect(String(lost)).toBe('WeakStorage f32 (gone, version 0)');
});

test('random uses of a storage keep its elements what they were last written as', async () => {
  setDevice('interpreter');
  const use = fc.oneof(
    fc.record({ kind: fc.constant('host' as const), at: fc.nat(5), value: fc.integer({ min: -9, max: 9 }) }),
    fc.record({
      kind: fc.constant('device' as const),
      at: fc.nat(5),
      value: fc.integer({ min: -9, max: 9 }),
    }),
    fc.record({ kind: fc.constantFrom('toHost' as const, 'toDevice' as const, 'read' as const) }),
  );
  await checkLawAsync(60, fc.array(use, { maxLength: 12 }), async (uses) => {
    const storage = Storage.ofHost([0, 0, 0, 0, 0, 0]);
    const expected = [0, 0, 0, 0, 0, 0];
    let writes = 0;
    for (const at of uses) {
      if (at.kind === 'host') await storage.write((data) => void (data[at.at] = at.value));
      if (at.kind === 'device') {
        const memory = await storage.buffer();
        memory.write([at.value], at.at);
        memory.release();
      }
      if (at.kind === 'host' || at.kind === 'device') [expected[at.at], writes] = [at.value, writes + 1];
      if (at.kind === 'toHost') await storage.ensureHost();
      if (at.kind === 'toDevice') await storage.ensureDevice();
      if (at.kind === 'read') expect(numbers(await storage.data())).toEqual(expected);
    }
    expect(numbers(await storage.data())).toEqual(expected);
    expect(storage.version).toBe(writes);
    storage.release();
  });
  setDevice(undefined);
});

test('a clean storage is not copied again', async () => {
  setDevice('interpreter');
  const storage = Storage.ofHost([1, 2, 3]);
  const x = await storage.tensor();
  await x.add(1).data();
  const before = stats().bytes.uploaded;
  await (await storage.tensor()).add(1).data();
  expect(stats().bytes.uploaded).toBe(before);
  storage.release();
  setDevice(undefined);
});

describe('formats', () => {
  test('have sizes by their words', () => {
    expect(['f32', 'f16', 'bool', 'i64'].map((dtype) => elemSize(dtype as 'f32'))).toEqual([4, 2, 1, 8]);
    expect(elemSize(q8())).toBe(0);
    expect([0, 1, 2, 3].map((n) => deviceByteSize('f16', n))).toEqual([0, 4, 4, 8]);
    expect([0, 1, 32, 33].map((n) => deviceByteSize(q8(32), n))).toEqual([0, 36, 36, 72]);
    expect(q8BlockStride(q8(64))).toBe(68);
    expect(() => q8BlockStride('f32')).toThrow(/has no blocks/);
    expect(() => q8(6)).toThrow(/multiple of 4/);
    expect(() => deviceByteSize('f64', 2 ** 52)).toThrow(/too many bytes/);
    expect(describeFormat(q8(8))).toEqual({
      name: 'q8(8)',
      kind: 'quantised',
      byteSize: 1,
      isQuantized: true,
    });
    expect(describeFormat('bf16')).toEqual({ name: 'bf16', kind: 'float', byteSize: 2, isQuantized: false });
  });

  test('q8 has its scale as f16 in the low half of a word, then its integers, then zeros', () => {
    const bytes = encodeQ8(Float32Array.of(127, -127, 1, 0, 254), 4);
    expect(Array.from(bytes)).toEqual([0, 0x3c, 0, 0, 127, 129, 1, 0, 0, 0x40, 0, 0, 127, 0, 0, 0]);
    expect(Array.from(decodeQ8(bytes, 5, 4))).toEqual([127, -127, 1, 0, 254]);
    for (const far of [Infinity, Number.NaN, 1e38]) {
      expect(() => encodeQ8(Float32Array.of(1, far), 4)).toThrow(/block 0 has a value/);
    }
    expect(() => decodeQ8(bytes, 9, 4)).toThrow(/take 24 bytes, got 16/);
  });

  test('no element of q8 is off by more than half a step of its block', () => {
    const values = fc.array(fc.float({ min: -8_000_000, max: 8_000_000, noNaN: true }), {
      minLength: 1,
      maxLength: 40,
    });
    const cases = fc.record({
      values,
      power: fc.integer({ min: -12, max: 0 }),
      blockSize: fc.constantFrom(4, 8, 32),
    });
    checkLaw(300, cases, ({ values, power, blockSize }) => {
      const floats = Float32Array.from(values, (value) => value * 10 ** power);
      const decoded = decodeQ8(encodeQ8(floats, blockSize), floats.length, blockSize);
      const view = new DataView(encodeQ8(floats, blockSize).buffer);
      floats.forEach((value, i) => {
        const block = Math.floor(i / blockSize);
        const far = Math.max(...floats.subarray(block * blockSize, (block + 1) * blockSize).map(Math.abs));
        const step = view.getUint16(block * (blockSize + 4), true) === 0 ? 0 : Math.max(far / 127, 2 ** -24);
        // The scale is at most one part in 1024, or one subnormal, above what it has to be.
        const most = (step * (1 + 2 ** -10) + 2 ** -24) / 2;
        expect(Math.abs(decoded[i]! - value)).toBeLessThanOrEqual(most * (1 + 1e-6));
      });
    });
  });
});

describe('numbers of things', () => {
  test('a fence has a number, and none is 0', () => {
    const [one, other] = [new Fence(Promise.resolve()), new Fence(Promise.resolve())];
    expect(other.id).toBeGreaterThan(one.id);
    expect(fenceId(one.id)).toBe(one.id);
    expect(() => fenceId(noFence)).toThrow(/from 1 on/);
    expect(() => new Fence(3 as never)).toThrow(/promise of work/);
  });

  test('tensors of one value have one number, before and after it is computed', async () => {
    setDevice('interpreter');
    const x = tensor([1, 2]);
    const y = x.add(1);
    const [before, of] = [storageId(y), storageId(x)];
    expect(before).not.toBe(of);
    expect(storageId(y.detach())).toBe(before);
    await y.data();
    expect(storageId(y)).toBe(before);
    expect(storageId(y.detach())).toBe(before);
    x.assign(tensor([3, 4]));
    expect(storageId(x)).not.toBe(of);
    setDevice(undefined);
  });

  test('a tensor tells what made it, and how many gradients come back to it', () => {
    setDevice('interpreter');
    const x = tensor([1, 2]).requiresGrad_();
    const plain = tensor([1, 2]);
    expect(gradMeta(plain)).toEqual({ requiresGrad: false, isLeaf: true, retainsGrad: false });
    const { paramId } = gradMeta(x);
    expect(gradMeta(x)).toMatchObject({ requiresGrad: true, isLeaf: true, retainsGrad: true, paramId });
    const y = x.mul(x);
    const z = y.add(x).sum();
    expect(gradMeta(y)).toMatchObject({ isLeaf: false, creator: 'mul', retainsGrad: false });
    expect(gradMeta(y).gradId).not.toBe(gradMeta(x).gradId);
    expect(gradMeta(y).opId).toBeLessThan(gradMeta(z).opId!);
    expect([incomingGrads(z, x), incomingGrads(z, y), incomingGrads(y, x), incomingGrads(x, z)]).toEqual([
      3, 1, 2, 0,
    ]);
    x.requiresGrad_(false);
    expect(gradMeta(x).requiresGrad).toBe(false);
    setDevice(undefined);
  });
});
