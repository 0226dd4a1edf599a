// The device's clock: it sees the passes of the work it is asked to measure, and only those.
//
// Runs alone: it measures time.

import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Device, DeviceAllocation } from '../../src/runtime/device.ts';
import { openWebGpu } from '../../src/runtime/webgpu/open.ts';
import { dispatch, f32, kernel, program } from './programs.ts';

let device: Device;
beforeAll(async () => {
  device = await openWebGpu('webgpu:software');
});
afterAll(() => device.destroy());

const SIZE = 1 << 16;

/** Work for the device: `rounds` steps at every element. */
function toil(rounds: number): { run: () => void; destroy: () => void } {
  const loop = `for (var j = 0; j < ${rounds}; j++) { v = v * 0.5 + 1.0; }`;
  const loaded = device.load(
    program({
      kernels: [kernel('toil', SIZE, ['read_write'], `var v = f32(i); ${loop} b0[i] = v;`)],
      buffers: [f32('out', 'output', SIZE)],
      steps: [dispatch(0, [0], SIZE)],
    }),
  );
  const buffer: DeviceAllocation = device.allocate(4 * SIZE);
  return {
    run: () => loaded.run([], [buffer], []),
    destroy: () => {
      loaded.destroy();
      buffer.destroy();
    },
  };
}

test('longer work takes longer, and no longer than the wall clock says', async () => {
  const [short, long] = [toil(10), toil(2000)];
  for (const { run } of [short, long]) run();
  await device.finish();
  const best = async (run: () => void, times: number): Promise<number> => {
    let least = Infinity;
    for (let i = 0; i < times; i++) {
      const start = performance.now();
      const nanoseconds = await device.measure!(run);
      expect(nanoseconds! / 1e6).toBeLessThan(performance.now() - start + 1);
      least = Math.min(least, nanoseconds!);
    }
    return least;
  };
  // Whatever else the machine does may come in between, and then short work takes long.
  const [quick, slow] = [await best(short.run, 20), await best(long.run, 3)];
  expect(quick).toBeGreaterThan(0);
  expect(slow).toBeGreaterThan(3 * quick);
  short.destroy();
  long.destroy();
});

test('what is measured beside other work is that work alone', async () => {
  const [short, long] = [toil(10), toil(2000)];
  long.run();
  const alone = [device.measure!(short.run)];
  for (let i = 0; i < 4; i++) {
    long.run();
    alone.push(device.measure!(short.run));
  }
  const whole = device.measure!(() => {
    for (let i = 0; i < 3; i++) long.run();
  });
  await device.finish();
  const least = Math.min(...(await Promise.all(alone)).map((nanoseconds) => nanoseconds!));
  expect(least).toBeLessThan((await whole)!);
  short.destroy();
  long.destroy();
});

test('work without a pass has no duration', async () => {
  expect(await device.measure!(() => {})).toBeUndefined();
});
