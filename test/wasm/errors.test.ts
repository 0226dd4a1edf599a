// What is wrong with a module is told by the kernel's name, with one thread and with two, and leaves the device usable.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Device, DeviceAllocation } from '../../src/runtime/device.ts';
import { WasmDevice } from '../../src/runtime/wasm/device.ts';
import { failure } from '../runtime/failure.ts';
import { bytesOf, floatsOf, ramp } from '../runtime/programs.ts';
import { programOf, twicePlusOne } from './modules.ts';

const N = 64;
const sound = programOf('sound', N, twicePlusOne);
const traps = programOf('traps', N, '(unreachable)');

describe.each([1, 2])('with %i threads', (threads) => {
  let device: Device;
  let x: DeviceAllocation;
  let y: DeviceAllocation;
  beforeAll(async () => {
    device = await WasmDevice.open('wasm', { threads });
    [x, y] = [device.allocate(4 * N), device.allocate(4 * N)];
    device.write(x, bytesOf(ramp(N)));
  });
  afterAll(() => device.destroy());

  async function expectUsable(): Promise<void> {
    device.load(sound).run([x], [y], []);
    expect(floatsOf(await device.read(y, 4 * N))).toEqual(ramp(N).map((value) => 2 * value + 1));
  }

  test('a kernel that traps is named, once, and leaves the device usable', async () => {
    const before = device.read(x, 4);
    device.load(traps).run([x], [y], []);
    expect(await before).toEqual(bytesOf([0]));
    const error = await failure(() => device.read(y, 4));
    expect([error.code, error.kernel]).toEqual(['E_VALIDATION', 'traps']);
    expect(error.message).toMatch(/unreachable/);
    await device.finish();
    await expectUsable();
  });

  test('a module that is none is refused when it is loaded', async () => {
    const kernels = [{ ...sound.kernels[0]!, source: btoa('no module') }];
    const error = await failure(() => device.load({ ...sound, kernels }));
    expect([error.code, error.kernel]).toEqual(['E_VALIDATION', 'sound']);
    await expectUsable();
  });
});
