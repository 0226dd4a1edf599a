import { expect, test } from 'vitest';
import { patiently } from '../../src/runtime/webgpu/patience.ts';

/** A promise pending for so long while something turns the event loop at once, as Dawn does. */
async function busy<T>(
  ms: number,
  wait: (promise: Promise<void>) => Promise<T>,
): Promise<{ cpu: number; turns: number }> {
  let [isOver, turns] = [false, 0];
  const turn = (): void => {
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  turn();
  const before = process.cpuUsage();
  await wait(new Promise((resolve) => setTimeout(resolve, ms)));
  isOver = true;
  const { user, system } = process.cpuUsage(before);
  return { cpu: (user + system) / 1000, turns };
}

test('gives what the promise gives', async () => {
  expect(await patiently(Promise.resolve(7))).toBe(7);
  await expect(patiently(Promise.reject(new Error('no')))).rejects.toThrow('no');
  const many = Array.from({ length: 20 }, (_, i) => patiently(Promise.resolve(i)));
  expect(await Promise.all(many)).toEqual(Array.from({ length: 20 }, (_, i) => i));
});

test('sleeps where the event loop would spin', async () => {
  const spinning = await busy(200, (promise) => promise);
  const asleep = await busy(200, patiently);
  expect(asleep.turns).toBeLessThan(spinning.turns / 4);
  expect(asleep.cpu).toBeLessThan(spinning.cpu / 2);
});

test('timers of the process go on', async () => {
  let ticks = 0;
  const timer = setInterval(() => (ticks += 1), 5);
  await busy(200, patiently);
  clearInterval(timer);
  expect(ticks).toBeGreaterThan(10);
});

test('a wait that has no end does not keep the process alive', async () => {
  const { spawnSync } = await import('node:child_process');
  const module = new URL('../../src/runtime/webgpu/patience.ts', import.meta.url).href;
  const code = `import { patiently } from ${JSON.stringify(module)}; void patiently(new Promise(() => {}));`;
  const args = ['--import', 'tsx', '--input-type=module', '--eval', code];
  const { status, signal, stderr } = spawnSync(process.execPath, args, { timeout: 30_000, encoding: 'utf8' });
  expect({ status, signal, stderr }).toMatchObject({ status: 0, signal: null });
});
