import { expect, test, vi } from 'vitest';
import { patiently } from '../../src/runtime/webgpu/patience.ts';
import { waitLimit } from '../support/limits.ts';

/** Pending for so many turns of the event loop, each of which comes at once, as Dawn has it. */
function turns(count: number): Promise<void> {
  return new Promise((resolve) => {
    const turn = (): void => void (count-- > 0 ? setImmediate(turn) : resolve());
    turn();
  });
}

test('gives what the promise gives', async () => {
  expect(await patiently(Promise.resolve(7))).toBe(7);
  await expect(patiently(Promise.reject(new Error('no')))).rejects.toThrow('no');
  const many = Array.from({ length: 20 }, (_, i) => patiently(Promise.resolve(i)));
  expect(await Promise.all(many)).toEqual(Array.from({ length: 20 }, (_, i) => i));
});

test('sleeps where the event loop would spin', async () => {
  let now = 0;
  // A clock that goes on by a tenth of a millisecond whenever it is asked, however busy the machine is.
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += 0.1));
  const nap = vi.spyOn(Atomics, 'wait');
  await patiently(turns(100));
  const naps = nap.mock.calls.map(([, , , ms]) => ms!);
  nap.mockRestore();
  clock.mockRestore();
  // Every turn but the first few has a nap, and none is longer than timers may wait.
  expect(naps.length).toBeGreaterThan(90);
  expect(Math.max(...naps)).toBeLessThanOrEqual(1);
});

test('timers of the process go on', async () => {
  // What is waited for is a timer's.
  let ticks = 0;
  const tenth = new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      if (++ticks < 10) return;
      clearInterval(timer);
      resolve();
    }, 5);
  });
  await patiently(tenth);
  expect(ticks).toBe(10);
});

test('a wait that has no end does not keep the process alive', async () => {
  const { spawnSync } = await import('node:child_process');
  const module = new URL('../../src/runtime/webgpu/patience.ts', import.meta.url).href;
  const code = `import { patiently } from ${JSON.stringify(module)}; void patiently(new Promise(() => {}));`;
  const args = ['--import', 'tsx', '--input-type=module', '--eval', code];
  const { status, signal, stderr } = spawnSync(process.execPath, args, {
    timeout: waitLimit,
    encoding: 'utf8',
  });
  expect({ status, signal, stderr }).toMatchObject({ status: 0, signal: null });
});
