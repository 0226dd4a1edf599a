// A thread that dies, or a kernel that traps in one, gives an error that says so, soon, and never a hang.
//
// Runs alone: its devices wait for threads that died no longer than they are told.

import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import type { Device } from '../../src/runtime/device.ts';
import { openDevice, registerBackend } from '../../src/runtime/registry.ts';
import { WasmDevice, type WasmOptions } from '../../src/runtime/wasm/device.ts';
import { spawn, type Spawn, type PoolThread } from '../../src/runtime/wasm/threads.ts';
import { waitLimit } from '../support/limits.ts';
import { threadIds } from '../support/threads.ts';
import { bytesOf, floatsOf, ramp } from '../runtime/programs.ts';
import { programOf, twicePlusOne, twicePlusOneSlowly } from './modules.ts';

const groups = 1000;
const usual = spawn;

/** `y = 2·x + 1` on the device. */
async function doubled(device: Device, body: string = twicePlusOne): Promise<readonly number[]> {
  const loaded = device.load(programOf('twicePlusOne', groups, body));
  const [x, y] = [device.allocate(4 * groups), device.allocate(4 * groups)];
  device.write(x, bytesOf(ramp(groups)));
  loaded.run([x], [y], []);
  return floatsOf(await device.read(y, 4 * groups));
}
const expected = ramp(groups).map((value) => 2 * value + 1);

/** Workers as usual, hold of them, and what the system calls the threads that came with them. */
function held(): { readonly spawn: Spawn; readonly threads: PoolThread[]; readonly ids: string[] } {
  const threads: PoolThread[] = [];
  const ids: string[] = [];
  const spawn: Spawn = async (layout, seat) => {
    const before = threadIds() ?? [];
    const thread = await usual(layout, seat);
    ids.push(...(threadIds() ?? []).filter((id) => !before.includes(id)));
    threads[seat.me - 1] = thread;
    return thread;
  };
  return { spawn, threads, ids };
}

/** A worker that takes a piece of the first job and is gone. */
const spawnMortal: Spawn = async (at, seat) => {
  const source = `const { parentPort, workerData: { at, words } } = require('node:worker_threads');
    parentPort.postMessage('here');
    for (let i = 0; ; i++) {
      const left = at.left + 16 * (i % at.threads);
      const count = Atomics.load(words, left);
      if (count > 0 && Atomics.compareExchange(words, left, count, count - 1) === count) process.exit(3);
    }`;
  const worker = new Worker(source, { eval: true, workerData: { at, words: seat.words } });
  await new Promise((resolve) => worker.once('message', resolve));
  worker.unref();
  return {
    onEnd: (listener) => void worker.once('exit', (code) => listener(`it exited with ${code}`)),
    end: async () => void (await worker.terminate()),
  };
};

test('a worker killed while it sleeps loses the device', async () => {
  const { spawn, threads } = held();
  const device = await WasmDevice.open('wasm:3', { threads: 3, spawn });
  expect(await doubled(device)).toEqual(expected);
  await threads[1]!.end();
  await expect.poll(() => device.lost).toBe(true);
  const error = {
    code: 'E_DEVICE_LOST',
    message: expect.stringContaining('worker 2 of 2 has ended: it exited with 1') as string,
  };
  await expect(device.finish()).rejects.toMatchObject(error);
  expect(() => device.allocate(4)).toThrow(expect.objectContaining(error) as Error);
  await expect(doubled(device)).rejects.toMatchObject(error);
});

test('what a worker left when it died, others do; the news comes with the next turn of the event loop', async () => {
  const { spawn, threads, ids } = held();
  const device = await WasmDevice.open('wasm:2', { threads: 2, spawn });
  const loaded = device.load(programOf('twicePlusOne', groups, twicePlusOne));
  const [x, y] = [device.allocate(4 * groups), device.allocate(4 * groups)];
  device.write(x, bytesOf(ramp(groups)));
  const gone = threads[0]!.end();
  // The thread ends, and the news waits for a turn of the event loop.
  const end = performance.now() + (ids.length > 0 ? waitLimit : 100);
  while (performance.now() < end && ids.every((id) => threadIds()?.includes(id)));
  loaded.run([x], [y], []);
  expect(device.lost).toBe(false);
  await gone;
  await expect.poll(() => device.lost).toBe(true);
});

test('a worker that dies with a piece in hand loses the device in the time it is given', async () => {
  const device = await WasmDevice.open('wasm:2', { threads: 2, spawn: spawnMortal, patience: 300 });
  await expect(doubled(device, twicePlusOneSlowly)).rejects.toMatchObject({
    code: 'E_DEVICE_LOST',
    kernel: 'twicePlusOne',
    message: expect.stringMatching(
      /^wasm:2 in kernel twicePlusOne: a worker took workgroups and did nothing for \d+\.\d s/,
    ) as string,
  });
  expect(device.lost).toBe(true);
});

test('a lost device is opened anew', async () => {
  const { spawn, threads } = held();
  const ways: WasmOptions[] = [
    { threads: 2, spawn: spawnMortal, patience: 300 },
    { threads: 2, spawn },
  ];
  registerBackend({ name: 'wasm', open: () => WasmDevice.open('wasm', ways.shift()) });
  const first = await openDevice('wasm');
  await expect(doubled(first, twicePlusOneSlowly)).rejects.toMatchObject({ code: 'E_DEVICE_LOST' });
  const second = await openDevice('wasm');
  expect(second).not.toBe(first);
  expect(await doubled(second)).toEqual(expected);
  await threads[0]!.end();
  await expect.poll(() => second.lost).toBe(true);
  expect(await doubled(await openDevice('wasm'))).toEqual(expected);
});

test.each([
  ['the first workgroup', '(i32.eqz (local.get $group))'],
  ['the last workgroup', `(i32.eq (local.get $group) (i32.const ${groups - 1}))`],
  ['every workgroup', '(i32.const 1)'],
])('a trap in %s names the kernel, and is over with the next read', async (_, when) => {
  const device = await WasmDevice.open('wasm:2', { threads: 2 });
  const loaded = device.load(programOf('trapping', groups, `(if ${when} (then unreachable))`));
  const [x, y] = [device.allocate(4 * groups), device.allocate(4 * groups)];
  loaded.run([x], [y], []);
  await expect(device.finish()).rejects.toMatchObject({
    code: 'E_VALIDATION',
    kernel: 'trapping',
    message: expect.stringMatching(/^wasm:2 in kernel trapping: unreachable/) as string,
  });
  await device.finish();
  expect(await doubled(device)).toEqual(expected);
  device.destroy();
});

test('where no worker starts there is one thread, and the device says why', async () => {
  const spawn: Spawn = () => Promise.reject(new Error('not today'));
  const device = await WasmDevice.open('wasm:4', { threads: 4, spawn });
  expect(device.facts).toMatchObject({
    threads: 1,
    description: 'WebAssembly SIMD, one thread: no worker starts here (not today)',
  });
  expect(await doubled(device)).toEqual(expected);
  device.destroy();
});
