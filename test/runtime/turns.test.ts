// Devices that compute in the thread that asks let others have a turn: a loop that reads in every step does not stop timers.

import { expect, test } from 'vitest';
import { openDevice } from '../../src/runtime/registry.ts';

test.each(['wasm', 'interpreter'])('reading from %s again and again lets timers run', async (name) => {
  const device = await openDevice(name);
  const buffer = device.allocate(64);
  let rang = false;
  setTimeout(() => (rang = true), 1);
  const start = performance.now();
  // Far beyond the patience of the device, and bounded if it never lets the timer run.
  while (!rang && performance.now() - start < 2000) await device.read(buffer, 64);
  expect(rang).toBe(true);
  rang = false;
  setTimeout(() => (rang = true), 1);
  const next = performance.now();
  while (!rang && performance.now() - next < 2000) await device.finish();
  expect(rang).toBe(true);
  buffer.destroy();
});
