// What every device owes its callers, on WebAssembly with one thread and with two: bytes come back as they were written, runs see what was
// written before them, and what is wrong is refused by name and leaves the device usable.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DeviceError } from '../../src/errors.ts';
import type { Device, DeviceBuffer } from '../../src/runtime/device.ts';
import { WasmDevice } from '../../src/runtime/wasm/device.ts';
import { bytesOf, f32, floatsOf, mapProgram, program, ramp } from '../runtime/programs.ts';
import { programOf, twicePlusOne } from './modules.ts';

const N = 64;
const sound = programOf('sound', N, twicePlusOne);
const traps = programOf('traps', N, '(unreachable)');

/** What `work` throws or rejects with; fails when it does neither. */
async function failure(work: () => unknown): Promise<DeviceError> {
  try {
    await work();
  } catch (error) {
    expect(error).toBeInstanceOf(DeviceError);
    return error as DeviceError;
  }
  throw new Error('nothing failed');
}

describe.each([1, 2])('with %i threads', (threads) => {
  let device: Device;
  let x: DeviceBuffer;
  let y: DeviceBuffer;
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

  test('what is written is read back, at every length', async () => {
    for (const length of [0, 1, 2, 3, 4, 5, 255, 256]) {
      const bytes = Uint8Array.from({ length }, (_, i) => 7 * i + length);
      device.write(y, bytes);
      expect(await device.read(y, length)).toEqual(bytes);
    }
  });

  test('a view into a larger array, and one of shared memory, write their own bytes', async () => {
    const whole = Uint8Array.from({ length: 64 }, (_, i) => i);
    device.write(y, whole.subarray(10, 20));
    expect(await device.read(y, 10)).toEqual(whole.slice(10, 20));
    const shared = new Uint8Array(new SharedArrayBuffer(8)).fill(5);
    device.write(y, shared);
    expect([...(await device.read(y, 8))]).toEqual([...shared]);
  });

  test('runs see what was written before them, and outputs that repeat are filled', async () => {
    const loaded = device.load(sound);
    for (let i = 0; i < 3; i++) {
      device.write(x, bytesOf(ramp(N, i)));
      loaded.run([x], [y], []);
      expect(floatsOf(await device.read(y, 8))).toEqual([2 * i + 1, 2 * i + 3]);
    }
    device.write(x, bytesOf(ramp(N)));
    const twice = program({ ...sound, outputs: [1, 1, 0] });
    const more = [device.allocate(4 * N), device.allocate(4 * N)] as const;
    device.load(twice).run([x], [y, ...more], []);
    expect(await device.read(more[0], 4 * N)).toEqual(await device.read(y, 4 * N));
    expect(await device.read(more[1], 4 * N)).toEqual(await device.read(x, 4 * N));
  });

  test('steps see what earlier steps wrote, through arenas, copies and clears', async () => {
    const chained = program({
      ...sound,
      arenas: [1024],
      buffers: [
        f32('x', 'input', N),
        f32('y', 'output', N),
        f32('a', 'scratch', N, { arena: 0, offset: 0 }),
        f32('b', 'scratch', N, { arena: 0, offset: 512 }),
      ],
      steps: [
        { kind: 'dispatch', kernel: 0, buffers: [0, 2], grid: [N, 1, 1] },
        { kind: 'copy', from: 2, to: 3 },
        { kind: 'clear', buffer: 2 },
        { kind: 'dispatch', kernel: 0, buffers: [3, 1], grid: [N, 1, 1] },
      ],
    });
    device.load(chained).run([x], [y], []);
    expect(floatsOf(await device.read(y, 4 * N))).toEqual(ramp(N).map((value) => 4 * value + 3));
  });

  test('a donated input is overwritten in place', async () => {
    const inPlace = program({
      ...sound,
      kernels: [{ ...sound.kernels[0]!, bindings: ['read_write', 'read_write'] }],
      buffers: [f32('x', 'input', N)],
      steps: [{ kind: 'dispatch', kernel: 0, buffers: [0, 0], grid: [N, 1, 1] }],
      outputs: [0],
      donated: [{ output: 0, input: 0 }],
    });
    const own = device.allocate(4 * N);
    device.write(own, bytesOf(ramp(N)));
    device.load(inPlace).run([own], [own], []);
    expect(floatsOf(await device.read(own, 8))).toEqual([1, 3]);
  });

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

  test('a program for another target, or beyond the limits, is refused when it is loaded', async () => {
    expect((await failure(() => device.load(mapProgram('wgsl', N, 'v')))).message).toContain('wgsl');
    const { workgroupInvocations } = device.facts.limits;
    const kernels = [{ ...sound.kernels[0]!, workgroup: [workgroupInvocations + 1, 1, 1] as const }];
    expect((await failure(() => device.load({ ...sound, kernels }))).code).toBe('E_LIMIT');
    expect((await failure(() => device.allocate(device.facts.limits.bufferBytes + 4))).code).toBe('E_LIMIT');
  });

  test('a wrong call is refused where it is made', async () => {
    const loaded = device.load(sound);
    const foreign = await WasmDevice.open('wasm', { threads: 1 });
    const theirs = foreign.allocate(4 * N);
    const gone = device.allocate(4 * N);
    gone.destroy();
    gone.destroy(); // A second time is harmless.
    const cases: readonly (readonly [() => unknown, string, string])[] = [
      [() => loaded.run([], [y], []), 'E_VALIDATION', '0 input buffers given: expected 1'],
      [() => loaded.run([x], [y], [1]), 'E_VALIDATION', '1 scalars given: expected 0'],
      [() => loaded.run([device.allocate(4)], [y], []), 'E_VALIDATION', 'needs 256 bytes and was given 4'],
      [() => loaded.run([gone], [y], []), 'E_STATE', 'a destroyed buffer'],
      [() => loaded.run([theirs], [y], []), 'E_VALIDATION', 'another device'],
      [() => device.write(theirs, new Uint8Array(4)), 'E_VALIDATION', 'another device'],
      [
        () => device.write(y, new Uint8Array(4 * N + 1)),
        'E_VALIDATION',
        '257 bytes were written to a buffer of 256',
      ],
      [() => device.read(y, 4 * N + 1), 'E_VALIDATION', '257 bytes were read from a buffer of 256'],
      [() => device.read(gone, 4), 'E_STATE', 'a destroyed buffer'],
    ];
    for (const [call, code, words] of cases) {
      const error = await failure(call);
      expect([error.code, error.message]).toEqual([code, expect.stringContaining(words)]);
    }
    loaded.destroy();
    expect((await failure(() => loaded.run([x], [y], []))).code).toBe('E_STATE');
    foreign.destroy();
    await expectUsable();
  });

  test('5,000 runs over fresh buffers keep memory flat', async () => {
    const loaded = device.load(sound);
    let out = device.allocate(4 * N);
    for (let i = 0; i < 5000; i++) {
      const next = device.allocate(4 * N);
      loaded.run([x], [next], []);
      out.destroy();
      out = next;
    }
    await device.finish();
    expect(device.memory().buffers).toBeLessThan(20);
    expect(device.memory().live + device.memory().pooled).toBeLessThan(2 ** 20);
    out.destroy();
  });
});
