// A loop of training on a device that disposes of nothing: bench/memory-flat.ts, shorter.
//
// Runs in a process of its own: it counts what the collector leaves in memory.
// Runs alone: it measures the memory of the process.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { measureTraining } from '../../../bench/memory-flat.ts';
import { device, setDevice, synchronize } from '../../../src/tensor/device.ts';
import { collect } from '../../support/collector.ts';

describe.each(['webgpu:software', 'wasm'])('training on %s stays flat without dispose', (name) => {
  beforeAll(() => setDevice(name));

  afterAll(async () => {
    await synchronize();
    (await device()).destroy();
  });

  test.each([
    ['Adam', 2000],
    ['compiled Adam', 1000],
  ] as const)('%s, %i steps', async (face, steps) => {
    const [early, late] = await measureTraining(face, [steps / 4, steps], collect);
    expect(late!.loss).toBeLessThan(0.5);
    // One of them makes the first weights, in the test of a worker that runs first.
    expect(late!.programs).toBeLessThanOrEqual(5);
    expect(late!.programs).toBe(early!.programs);
    // The collector is called when there are 4,096.
    expect(late!.buffers).toBeLessThan(4096 + 256);
    expect(late!.deviceMiB).toBeLessThan(8);
    expect(late!.heapMiB - early!.heapMiB).toBeLessThan(16);
    expect(late!.nativeMiB - early!.nativeMiB).toBeLessThan(64);
  });
});
