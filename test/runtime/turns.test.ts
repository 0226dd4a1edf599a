// Devices that compute in the thread that asks let others have a turn: a loop that reads in every step does not stop timers.

import { expect, test } from 'vitest';
import { openDevice } from '../../src/runtime/registry.ts';

/** Whether a timer rings while work is done again and again, for longer than any device is patient. */
async function ringsDuring(work: () => Promise<unknown>): Promise<boolean> {
  const clock = { rang: false };
  setTimeout(() => (clock.rang = true), 1);
  // By the time that this process gets, not by the clock on the wall.
  const start = process.cpuUsage();
  const spent = (): number => process.cpuUsage(start).user + process.cpuUsage(start).system;
  while (!clock.rang && spent() < 2e5) await work();
  return clock.rang;
}

test.each(['wasm', 'interpreter'])('reading from %s again and again lets timers run', async (name) => {
  const device = await openDevice(name);
  const buffer = device.allocate(64);
  expect(await ringsDuring(() => device.read(buffer, 64))).toBe(true);
  expect(await ringsDuring(() => device.finish())).toBe(true);
  expect(await ringsDuring(() => Promise.resolve())).toBe(false);
  buffer.destroy();
});
