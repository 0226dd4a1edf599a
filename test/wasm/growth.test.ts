// Memory grows up to what 32 bits reach, shared or not, and kernels compute there as they do at its start.

import * as fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { interpret } from '../../src/ir/interpret/interpret.ts';
import type { DeviceAllocation } from '../../src/runtime/device.ts';
import { WasmDevice } from '../../src/runtime/wasm/device.ts';
import { targetOf } from '../../src/schedule/target.ts';
import { expectEqual } from '../codegen/random/models-compare.ts';
import { randomModel } from '../codegen/random/models.ts';
import { runOnDevice } from '../support/execute.ts';
import { seed } from '../support/property.ts';
import { bytesOf, floatsOf, ramp } from '../runtime/programs.ts';

const MiB = 2 ** 20;

describe.each([1, 2])('on %i threads', async (threads) => {
  const grain = { program: 0, dispatch: 0, share: 0, piece: 0 };
  const device = await WasmDevice.open(`wasm:${threads}`, { threads, grain });
  const held: DeviceAllocation[] = [];
  afterAll(() => device.destroy());

  test('what was written before memory grew is there afterwards', async () => {
    const first = device.allocate(4000);
    device.write(first, bytesOf(ramp(1000)));
    // Nothing is touched, so that it takes addresses, and no memory.
    while (device.memory().live < 2300 * MiB) held.push(device.allocate(128 * MiB));
    expect(floatsOf(await device.read(first, 4000))).toEqual(ramp(1000));
    const last = device.allocate(4000);
    device.write(last, bytesOf(ramp(1000)));
    expect(floatsOf(await device.read(last, 4000))).toEqual(ramp(1000));
  });

  test('models compute beyond 2 GiB', async () => {
    expect(device.memory().live).toBeGreaterThan(2 ** 31);
    await fc.assert(
      fc.asyncProperty(randomModel(7), async (model) => {
        const actual = await runOnDevice(device, targetOf(device.facts), model.graph, model.inputs);
        expectEqual(model, actual, interpret(model.graph, model.inputs));
      }),
      { numRuns: 25, seed },
    );
  });

  test('what does not fit is refused, and does no harm', async () => {
    const more = (): void => {
      for (;;) held.push(device.allocate(256 * MiB));
    };
    expect(more).toThrow(
      expect.objectContaining({
        code: 'E_OOM',
        message: expect.stringMatching(
          /268435456 bytes were asked for .*4294836224[^]*try: dispose/,
        ) as string,
      }) as Error,
    );
    expect(device.memory().live).toBeGreaterThan(3.5 * 2 ** 30);
    const small = device.allocate(4000);
    device.write(small, bytesOf(ramp(1000)));
    expect(floatsOf(await device.read(small, 4000))).toEqual(ramp(1000));
    for (const buffer of held) buffer.destroy();
    expect(() => device.allocate(1024 * MiB).destroy()).not.toThrow();
  });
});
