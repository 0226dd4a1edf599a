// Devices that are not there, and values that a device does not have: found where data is read, told in full, and no harm to
// what comes after.

import { afterAll, describe, expect, test } from 'vitest';
import { DeviceError, SinterError } from '../../../src/errors.ts';
import { registerBackend } from '../../../src/runtime/registry.ts';
import { compile } from '../../../src/tensor/compile/compile.ts';
import { device, setDevice, synchronize } from '../../../src/tensor/device.ts';
import { fromHost } from '../../../src/tensor/record.ts';
import type { Tensor } from '../../../src/tensor/tensor.ts';
import { add, exp, mul, spyDevice, vec } from '../support.ts';

async function failure(reading: Promise<unknown>): Promise<SinterError> {
  const error = await reading.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(SinterError);
  return error as SinterError;
}

describe('a device that the machine lacks', () => {
  const reason = 'no Vulkan driver is installed';
  registerBackend({
    name: 'absent',
    open: () => Promise.reject(new DeviceError('E_DEVICE', 'absent', reason)),
  });

  test('shows when data is read, with what was tried and what helps', async () => {
    setDevice('absent');
    const error = await failure(add(vec(1), 1).data());
    expect(error).toBeInstanceOf(DeviceError);
    expect(error.code).toBe('E_DEVICE');
    expect(error.message).toBe(
      `absent: ${reason}\n  try: setDevice('wasm'), which needs no GPU, or setDevice('interpreter'), which runs anywhere`,
    );
  });

  test('is looked for again by every run, and leaves another device to the next', async () => {
    setDevice('absent');
    expect((await failure(add(vec(1), 1).data())).code).toBe('E_DEVICE');
    expect((await failure(add(vec(1), 1).item())).code).toBe('E_DEVICE');
    expect((await failure(compile((x: Tensor) => add(x, 1))(vec(1)).data())).code).toBe('E_DEVICE');
    spyDevice();
    expect(await add(vec(1), 1).array()).toEqual([2]);
  });

  test('keeps a hint of its own', async () => {
    const hint = 'npm install webgpu';
    registerBackend({
      name: 'hinting',
      open: () => Promise.reject(new DeviceError('E_DEVICE', 'hinting', reason, { hint })),
    });
    setDevice('hinting');
    expect((await failure(add(vec(1), 1).data())).message).toBe(`hinting: ${reason}\n  try: ${hint}`);
  });
});

test.each([['nonsense'], [''], [3], [null]])('there is no device %j, at once', (name) => {
  spyDevice();
  let error: unknown;
  try {
    setDevice(name as string);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(DeviceError);
  expect((error as DeviceError).code).toBe('E_DEVICE');
  expect((error as DeviceError).message).toMatch(
    /^setDevice: there is no device .+\n {2}try: 'cuda', 'webgpu', 'webgpu:software', 'wasm', 'native', 'interpreter'/,
  );
});

describe('a dtype that the device lacks', () => {
  afterAll(async () => {
    setDevice('webgpu:software');
    await synchronize();
    (await device()).destroy();
  });

  const wide = (...values: readonly number[]): Tensor =>
    fromHost(Float64Array.from(values), [values.length], 'f64');

  test('shows when data is read, naming operation, dtype and the device that has it', async () => {
    setDevice('webgpu:software');
    const error = await failure(exp(wide(1, 2)).data());
    expect(error.code).toBe('E_UNSUPPORTED');
    expect(error.message).toMatch(
      /^exp: f64\[2\] is not supported on wgsl:software, .+\n {2}try: setDevice\('wasm'\)/,
    );
  });

  test('fails what depends on it, every time, and nothing else', async () => {
    setDevice('webgpu:software');
    const bad = mul(wide(1, 2), 2);
    const good = mul(vec(1, 2), 2);
    const first = await failure(bad.data());
    expect(await failure(bad.data())).toBe(first);
    expect((await failure(add(bad, 1).data())).message).toBe(first.message);
    expect((await failure(compile((x: Tensor) => mul(x, 2))(wide(1)).data())).code).toBe('E_UNSUPPORTED');
    expect(await good.array()).toEqual([2, 4]);
    expect(await add(good, 1).array()).toEqual([3, 5]);
  });

  test('is no obstacle to holding values, nor to the interpreter', async () => {
    setDevice('webgpu:software');
    const x = wide(1, 2);
    expect(await x.array()).toEqual([1, 2]);
    setDevice('interpreter');
    expect(await mul(x, 0.1).array()).toEqual([0.1, 0.2]);
  });
});
