// The interpreter backend: host steps and copies over plain memory, with the same contract as a GPU's.

import { beforeEach, expect, test } from 'vitest';
import { DeviceError, TensorError } from '../../src/errors.ts';
import type { Device, DeviceAllocation, HostFunctions } from '../../src/runtime/device.ts';
import { interpreterBackend } from '../../src/runtime/interpreter/device.ts';
import { bytesOf, dispatch, f32, floatsOf, kernel, program, ramp } from './programs.ts';

const N = 8;
let device: Device;
beforeEach(async () => {
  device = await interpreterBackend.open();
});

const host: HostFunctions = {
  add: ([a, b]) => [bytesOf(floatsOf(a!).map((v, i) => v + floatsOf(b!)[i]!))],
  scale: ([a], [factor]) => [bytesOf(floatsOf(a!).map((v) => v * factor!))],
  split: ([a]) => [
    bytesOf(floatsOf(a!).map(Math.floor)),
    bytesOf(floatsOf(a!).map((v) => v - Math.floor(v))),
  ],
  long: () => [new Uint8Array(4 * N + 4)],
  fewer: () => [],
  picky: () => {
    throw new TensorError('E_VALUE', 'picky', 'not this one');
  },
  crash: () => {
    throw new RangeError('oh');
  },
};

function upload(values: ArrayLike<number>): DeviceAllocation {
  const buffer = device.allocate(4 * values.length);
  device.write(buffer, bytesOf(values));
  return buffer;
}

async function values(buffer: DeviceAllocation): Promise<number[]> {
  return floatsOf(await device.read(buffer, buffer.bytes));
}

function single(run: string, writes: readonly number[] = [1]): ReturnType<typeof program> {
  return program({
    target: 'interpreter',
    buffers: [f32('x', 'input', N), f32('y', 'output', N)],
    steps: [{ kind: 'host', run, reads: [0], writes }],
  });
}

test('host steps, copies and clears run in order, through scratch', async () => {
  const loaded = device.load(
    program({
      target: 'interpreter',
      buffers: [
        f32('x', 'input', N),
        f32('t', 'scratch', N, { arena: 0, offset: 0 }),
        f32('u', 'scratch', N, { arena: 0, offset: 256 }),
        f32('y', 'output', N),
        f32('z', 'output', N),
      ],
      arenas: [512],
      scalars: [{ name: 'factor', dtype: 'f32' }],
      steps: [
        { kind: 'host', run: 'scale', reads: [0], writes: [1] },
        { kind: 'copy', from: 1, to: 2 },
        { kind: 'host', run: 'add', reads: [1, 2], writes: [1] },
        { kind: 'clear', buffer: 2 },
        { kind: 'host', run: 'add', reads: [1, 2], writes: [1] },
        { kind: 'host', run: 'split', reads: [1], writes: [3, 4] },
      ],
    }),
    host,
  );
  const [y, z] = [device.allocate(4 * N), device.allocate(4 * N)];
  loaded.run([upload(ramp(N))], [y, z], [0.25]);
  expect(await values(y)).toEqual(ramp(N).map((v) => Math.floor(v / 2)));
  expect(await values(z)).toEqual(ramp(N).map((v) => (v % 2) / 2));
});

test('donated inputs, passed-through inputs and repeated outputs hold what they should', async () => {
  const donating = { ...single('scale', [1]), donated: [{ output: 0, input: 0 }] };
  const scalars = [{ name: 'factor', dtype: 'f32' as const }];
  const x = upload(ramp(N));
  device.load({ ...donating, scalars }, host).run([x], [x], [3]);
  expect(await values(x)).toEqual(ramp(N).map((v) => 3 * v));
  const outs = [0, 1, 2].map(() => device.allocate(4 * N));
  device.load({ ...single('scale'), scalars, outputs: [1, 0, 1] }, host).run([x], outs, [2]);
  const six = ramp(N).map((v) => 6 * v);
  expect(await Promise.all(outs.map((out) => values(out)))).toEqual([six, ramp(N).map((v) => 3 * v), six]);
});

test('reading what was never written shows', async () => {
  expect((await values(device.allocate(8))).every(Number.isNaN)).toBe(true);
});

test.each([
  ['long', 'E_VALIDATION', 'host function long, result 0: 36 bytes for a buffer of 32'],
  ['fewer', 'E_VALIDATION', 'host function fewer gave 0 results: expected 1'],
  ['picky', 'E_VALUE', 'picky: not this one'],
  ['crash', 'E_VALIDATION', 'a host function threw: RangeError: oh'],
])('a failing host function (%s) surfaces from the next read, once', async (run, code, words) => {
  const [x, y] = [upload(ramp(N)), upload(ramp(N))];
  device.load(single(run), host).run([x], [y], []);
  const error = await device.finish().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code });
  expect((error as Error).message).toContain(words);
  expect(await values(x)).toEqual(ramp(N));
});

test('what cannot run is refused when loaded', () => {
  expect(() => device.load(single('unknown'), host)).toThrow('the host function unknown was not given');
  expect(() => device.load({ ...single('add'), target: 'wgsl' }, host)).toThrow(
    'a program for wgsl cannot run here',
  );
  const dispatching = program({
    target: 'interpreter',
    kernels: [kernel('k', N, ['read_write'], '')],
    buffers: [f32('y', 'output', N)],
    steps: [dispatch(0, [0], N)],
  });
  expect(() => device.load(dispatching)).toThrow(/interpreter in kernel k: the interpreter runs host steps/);
});

test('memory is counted, and a destroyed device or buffer refuses work', async () => {
  expect(device.memory()).toEqual({ live: 0, pooled: 0, buffers: 0 });
  const [a, b] = [device.allocate(32), device.allocate(16)];
  expect(device.memory()).toEqual({ live: 48, pooled: 0, buffers: 2 });
  a.destroy();
  a.destroy();
  expect(device.memory()).toEqual({ live: 16, pooled: 0, buffers: 1 });
  expect(() => device.write(a, new Uint8Array(4))).toThrow(DeviceError);
  expect(() => device.write(b, new Uint8Array(17))).toThrow('17 bytes were written to a buffer of 16');
  await expect(device.read(b, 17)).rejects.toThrow('17 bytes were read from a buffer of 16');
  expect(() => device.allocate(5)).toThrow('not a multiple of 4');
  device.destroy();
  expect(device.lost).toBe(true);
  expect(() => device.allocate(4)).toThrow(expect.objectContaining({ code: 'E_DEVICE_LOST' }) as Error);
  await expect(device.finish()).rejects.toThrow('destroyed');
});
