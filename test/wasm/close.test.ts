// Training on threads needs no more memory as it goes on, and `close` leaves neither threads nor memory behind.
//
// Runs alone: it measures the memory of the process.

import { afterEach, describe, expect, test } from 'vitest';
import { measureTraining } from '../../bench/memory-flat.ts';
import { close, devices, ones, setDevice, tensor } from '../../src/index.ts';
import { registerBackend } from '../../src/runtime/registry.ts';
import { WasmDevice } from '../../src/runtime/wasm/device.ts';
import { device } from '../../src/tensor/device.ts';
import { collect, nativeBytes } from '../support/collector.ts';
import { threadIds } from '../support/threads.ts';

const threadCount = (): number | undefined => threadIds()?.length;
/** What the process holds besides the engine's heap, which grows as the collector likes. */
const nativeMiB = (): number => nativeBytes() / 2 ** 20;

afterEach(async () => {
  await close();
  setDevice(undefined);
});

test('10,000 steps of training on two threads', async () => {
  const before = threadCount();
  const grain = { program: 0, dispatch: 0, share: 0, piece: 0 };
  registerBackend({ name: 'shared', open: () => WasmDevice.open('wasm:2', { threads: 2, grain }) });
  setDevice('shared');
  const [early, late] = await measureTraining('compiled Adam', [2500, 10_000], collect);
  const during = threadCount();
  expect(late!.loss).toBeLessThan(0.5);
  expect(late!.programs).toBe(early!.programs);
  expect(late!.deviceMiB).toBeLessThan(8);
  expect(late!.heapMiB - early!.heapMiB).toBeLessThan(16);
  expect(late!.nativeMiB - early!.nativeMiB).toBeLessThan(64);
  await (await device()).destroy();
  if (before !== undefined && during !== undefined) {
    expect(during).toBeGreaterThan(before);
    await expect.poll(threadCount).toBeLessThan(during);
  }
});

describe('close', () => {
  test('ends the threads', async () => {
    await ones([2]).data();
    const before = threadCount();
    setDevice('wasm:4');
    expect(await ones([3]).add(1).array()).toEqual([2, 2, 2]);
    const during = threadCount();
    await close();
    if (before === undefined || during === undefined) return;
    expect(during - before).toBeGreaterThanOrEqual(3);
    await expect.poll(threadCount).toBeLessThanOrEqual(during - 3);
  });

  test('frees the memory, whatever still refers to the device', async () => {
    setDevice('wasm:2');
    const count = 2 ** 25;
    const held = ones([count]).add(1);
    const before = nativeMiB();
    expect((await held.sum().data())[0]).toBe(2 * count);
    const x = held.mul(3);
    await x.sum().data();
    const opened = await device();
    expect(nativeMiB() - before).toBeGreaterThan(100);
    await close();
    await expect
      .poll(() => {
        collect();
        return nativeMiB() - before;
      })
      .toBeLessThan(50);
    expect(opened.lost).toBe(true);
    await expect(x.data()).rejects.toMatchObject({ code: 'E_DEVICE_LOST' });
  });

  test('leaves what the host has, and opens the device again for the next', async () => {
    setDevice('wasm:2');
    const x = tensor([1, 2, 3]);
    const y = x.mul(2);
    expect(await y.array()).toEqual([2, 4, 6]);
    const first = await device();
    await close();
    expect(await x.add(1).array()).toEqual([2, 3, 4]);
    expect(await device()).not.toBe(first);
  });

  test('waits for what is queued', async () => {
    setDevice('wasm:2');
    const sum = ones([1000]).mul(2).sum();
    const reading = sum.data();
    await close();
    expect((await reading)[0]).toBe(2000);
  });

  test('of a device by its name leaves the current one', async () => {
    setDevice('wasm:3');
    await ones([2]).add(1).data();
    const other = await device();
    setDevice('wasm:2');
    const kept = ones([2]).add(2);
    await kept.data();
    await close('wasm:3');
    expect(other.lost).toBe(true);
    expect(await kept.add(1).array()).toEqual([4, 4]);
  });

  test('of what is not open does nothing; of what there is not throws', async () => {
    await close('wasm:7');
    await expect(close('abacus')).rejects.toMatchObject({ code: 'E_DEVICE' });
  });

  test('devices() tells how many threads there are', async () => {
    const reports = await devices();
    const wasm = reports.find(({ name }) => name === 'wasm');
    expect(JSON.stringify(wasm)).toMatch(/WebAssembly SIMD, (?:one thread|\d+ threads)/);
  });
});
