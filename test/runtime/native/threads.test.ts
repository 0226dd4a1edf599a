// Native code on one thread, two and three: every workgroup runs once, scratch memory is each thread's
// own, loops end where they should, and threads end with their device.

import * as fs from 'node:fs';
import { afterAll, beforeAll, expect, vi } from 'vitest';
import type { Program, ProgramKernel } from '../../../src/runtime/program.ts';
import { openDevice, closeDevice, isDeviceName } from '../../../src/runtime/registry.ts';
import { openNativeDevice } from '../../../src/runtime/native/node.ts';
import type { CDevice } from '../../../src/runtime/native/device.ts';
import { threadName } from '../../../src/runtime/native/pool.ts';
import type { Grain } from '../../../src/runtime/wasm/cut.ts';
import { failure } from '../failure.ts';
import { c, cKernel } from '../languages.ts';
import { lawsUnless } from '../law.ts';
import { bytesOf, f32, floatsOf, program, ramp } from '../programs.ts';
import { compilerEnv, compilerName, withoutCompiler } from './machine.ts';

const law = lawsUnless(withoutCompiler);
/** Every workgroup may go to another thread, however small it is. */
const grain: Grain = { program: 0, dispatch: 0, share: 0, piece: 0 };
const devices: CDevice[] = [];

beforeAll(async () => {
  if (withoutCompiler !== undefined) return;
  for (const threads of [1, 2, 3])
    devices.push(await openNativeDevice(`native:${threads}`, { threads, grain, env: compilerEnv }));
});
afterAll(() => Promise.all(devices.map((device) => device.destroy())));

/** `y` of one kernel over `x`, on a device. */
async function run(
  device: CDevice,
  given: Program,
  x: readonly number[],
  size = x.length,
  runs = 1,
): Promise<number[]> {
  const loaded = device.load(given);
  const [from, to] = [device.allocate(4 * x.length), device.allocate(4 * size)];
  device.write(from, bytesOf(x));
  for (let k = 0; k < runs; k++) loaded.run([from], [to], []);
  const result = floatsOf(await device.read(to, 4 * size));
  loaded.destroy();
  from.destroy();
  to.destroy();
  return result;
}

function programOf(kernel: ProgramKernel, groups: number): Program {
  return program({
    target: 'c',
    kernels: [kernel],
    buffers: [f32('x', 'input', groups), f32('y', 'output', groups)],
    steps: [c.dispatch(0, [0, 1], groups)],
  });
}

law('devices say by which compiler, for what and on how many threads they run', async () => {
  expect(devices.map(({ facts }) => [facts.name, facts.target, facts.threads])).toEqual([
    ['native:1', 'c', 1],
    ['native:2', 'c', 2],
    ['native:3', 'c', 3],
  ]);
  for (const [i, count] of ['one thread', '2 threads', '3 threads'].entries())
    expect(devices[i]!.facts.description).toMatch(
      new RegExp(`^C by \\S.*\\d, \\S+.*, ${count}; programs begin on WebAssembly$`),
    );
  expect(['native', 'native:2', 'native:0', 'native:65', 'native:2:2', 'natives'].map(isDeviceName)).toEqual([
    true,
    true,
    false,
    false,
    false,
    false,
  ]);
  vi.stubEnv('SINTER_CC', compilerName);
  const named = await openDevice('native:2');
  expect(named.facts).toMatchObject({ name: 'native:2', threads: 2 });
  await closeDevice('native:2');
  vi.unstubAllEnvs();
});

const largePages = '/sys/kernel/mm/transparent_hugepage/enabled';
lawsUnless(withoutCompiler ?? (fs.existsSync(largePages) ? undefined : 'no large pages here'))(
  'memory asks for large pages, also where it has not grown to',
  async () => {
    const asked = (): number =>
      fs
        .readFileSync('/proc/self/smaps', 'utf8')
        .split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/)
        .filter((mapping) => /^VmFlags:.* hg\b/m.test(mapping))
        .reduce((sum, mapping) => sum + Number(/^Size: +(\d+) kB/m.exec(mapping)![1]), 0);
    const before = asked();
    const device = await openNativeDevice('native:1', { threads: 1, env: compilerEnv });
    expect(asked() - before).toBeGreaterThanOrEqual(2 ** 16);
    await device.destroy();
  },
);

law('every workgroup runs once, whatever their number', async () => {
  // A kernel that adds to what is there: one that ran twice would be seen.
  for (const groups of [1, 2, 3, 5, 7, 64, 97, 1000, 12_345]) {
    const kernel = cKernel('once', 1, ['read', 'read_write'], 'b1[i] = b1[i] + b0[i] + 1.0f;');
    const cleared = programOf(kernel, groups);
    const steps = [{ kind: 'clear', buffer: 1 } as const, ...cleared.steps];
    for (const device of devices)
      expect(await run(device, { ...cleared, steps }, ramp(groups))).toEqual(ramp(groups, 1));
  }
});

law('every thread has scratch memory of its own, at a multiple of 64', async () => {
  const groups = 1000;
  const kernel = {
    ...cKernel(
      'scratch',
      groups,
      ['read', 'read_write'],
      `int32_t *w = own;
    for (int k = 0; k < 4096; k++) w[k] = i;
    __asm__ volatile("" ::: "memory");
    int32_t sum = (uintptr_t)own % 64 == 0 ? 0 : -1;
    for (int k = 0; k < 4096; k++) sum += w[k];
    (void)b0;
    b1[i] = (float)sum;`,
    ),
    sharedBytes: 4 * 4096,
  };
  for (const device of devices)
    expect(await run(device, programOf(kernel, groups), ramp(groups), groups, 20)).toEqual(
      ramp(groups).map((value) => 4096 * value),
    );
});

law('a serial kernel runs its workgroups in order', async () => {
  const groups = 5000;
  const kernel = {
    ...cKernel('chain', groups, ['read', 'read_write'], 'b1[i] = (i > 0 ? b1[i - 1] : 0.0f) + b0[i];'),
    serial: true,
  };
  const ones = ramp(groups).map(() => 1);
  for (const device of devices)
    expect(await run(device, programOf(kernel, groups), ones)).toEqual(ramp(groups, 1));
});

law('loops run as often as they say, inside one another, and end by their guard', async () => {
  const add = cKernel('add', 4, ['read_write'], 'b0[i] = b0[i] + 1.0f;');
  const count = cKernel('count', 1, ['read_write'], '((int32_t *)(void *)b0)[i] -= 1;');
  const start = cKernel('start', 1, ['read', 'read_write'], '((int32_t *)(void *)b1)[i] = (int32_t)b0[i];');
  const turns = program({
    target: 'c',
    kernels: [add, count, start],
    buffers: [
      f32('x', 'input', 4),
      f32('y', 'output', 4),
      { name: 'left', role: 'scratch', bytes: 4, dtype: 'i32', shape: [1], arena: 0, offset: 0 },
    ],
    arenas: [256],
    steps: [
      { kind: 'clear', buffer: 1 },
      c.dispatch(2, [0, 2], 1),
      { kind: 'repeat', times: 0, steps: [c.dispatch(0, [1], 4)] },
      {
        kind: 'while',
        guard: 2,
        times: 5,
        steps: [
          {
            kind: 'repeat',
            times: 3,
            steps: [c.dispatch(0, [1], 4), { kind: 'repeat', times: 2, steps: [c.dispatch(0, [1], 4)] }],
          },
          c.dispatch(1, [2], 1),
        ],
      },
    ],
  });
  for (const device of devices) {
    for (const [left, times] of [
      [0, 0],
      [2, 2],
      [9, 5],
    ] as const)
      expect(await run(device, turns, [left, 0, 0, 0])).toEqual([1, 1, 1, 1].map((one) => 9 * times * one));
  }
});

law('ten thousand jobs in a row, and pauses between them, lose no work', async () => {
  const groups = 16;
  const kernel = cKernel('grow', groups, ['read_write'], 'b0[i] = b0[i] + 1.0f;');
  const many = program({
    target: 'c',
    kernels: [kernel],
    buffers: [f32('x', 'input', groups), f32('y', 'output', groups)],
    steps: [
      { kind: 'clear', buffer: 1 },
      { kind: 'repeat', times: 2000, steps: [c.dispatch(0, [1], groups)] },
    ],
  });
  for (const device of devices) {
    for (let k = 0; k < 5; k++) {
      expect(await run(device, many, ramp(groups))).toEqual(ramp(groups).map(() => 2000));
      // Long enough for threads to fall asleep.
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }
});

law('memory may grow between two runs', async () => {
  for (const device of devices) {
    const given = programOf(cKernel('shift', 8, ['read', 'read_write'], 'b1[i] = b0[i] + 1.0f;'), 8);
    const loaded = device.load(given);
    const [x, y] = [device.allocate(32), device.allocate(32)];
    device.write(x, bytesOf(ramp(8)));
    loaded.run([x], [y], []);
    const large = device.allocate(2 ** 27);
    loaded.run([y], [x], []);
    expect(floatsOf(await device.read(x, 32))).toEqual(ramp(8, 2));
    large.destroy();
  }
});

law('threads end with their device', async () => {
  const before = poolThreads();
  const device = await openNativeDevice('native', { threads: 5, env: compilerEnv });
  if (process.platform === 'linux') expect(poolThreads()).toBe(before + 4);
  await device.destroy();
  await device.destroy();
  expect(poolThreads()).toBe(before);
});

/** Threads of this process that belong to pools, where threads have names. */
function poolThreads(): number {
  if (process.platform !== 'linux') return 0;
  return fs.readdirSync('/proc/self/task').filter((task) => {
    try {
      return fs.readFileSync(`/proc/self/task/${task}/comm`, 'utf8').trim() === threadName;
    } catch {
      return false;
    }
  }).length;
}

law('without a compiler, or without koffi, the reason and what to do are told', async () => {
  const none = await failure(() => openNativeDevice('native', { env: { SINTER_CC: '/nowhere/cc -O9' } }));
  expect([none.code, none.message]).toEqual([
    'E_DEVICE',
    expect.stringContaining('/nowhere/cc -O9: not found'),
  ]);
  const path = await failure(() => openNativeDevice('native', { env: { PATH: '/nowhere' } }));
  expect(path.message).toContain(
    'there is no C compiler: cc: not found; gcc: not found; clang: not found; zig cc',
  );
  const resolve = (): never => {
    throw new Error('not installed');
  };
  const koffi = await failure(() => openNativeDevice('native', { resolve, env: compilerEnv }));
  expect(koffi.message).toMatch(/the package koffi, which opens .*, is missing[^]*npm install koffi/);
});
