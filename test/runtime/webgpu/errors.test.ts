// What fails, fails with a type and a name, is told to the reads that came after it, and leaves the device usable.

import { afterAll, beforeAll, expect, test } from 'vitest';
import { DeviceError } from '../../../src/errors.ts';
import type { Device, DeviceAllocation } from '../../../src/runtime/device.ts';
import { WebGpuDevice } from '../../../src/runtime/webgpu/device.ts';
import { openWebGpu } from '../../../src/runtime/webgpu/open.ts';
import { openWithGpu } from '../devices.ts';
import { failure } from '../failure.ts';
import { bytesOf, dispatch, f32, floatsOf, kernel, mapProgram, program, ramp } from '../programs.ts';

let device: Device;
let x: DeviceAllocation;
let y: DeviceAllocation;
const N = 64;
beforeAll(async () => {
  device = await openWebGpu('webgpu:software');
  x = device.allocate(4 * N);
  y = device.allocate(4 * N);
  device.write(x, bytesOf(ramp(N)));
});
afterAll(() => device.destroy());

const broken = mapProgram('broken', N, 'v + nonsense');
const sound = mapProgram('sound', N, 'v + 1.0');

async function expectUsable(): Promise<void> {
  device.load(sound).run([x], [y], []);
  expect(floatsOf(await device.read(y, 4 * N))).toEqual(ramp(N, 1));
}

test('WGSL that does not compile is reported with kernel, line and source', async () => {
  device.load(broken).run([x], [y], []);
  const error = await failure(() => device.read(y, 4));
  expect(error.code).toBe('E_VALIDATION');
  expect(error.kernel).toBe('broken');
  expect(error.message).toContain('webgpu:software in kernel broken: WGSL does not compile');
  expect(error.message).toMatch(/line 6, column \d+: unresolved value 'nonsense'/);
  expect(error.message).toContain('b1[i] = v + nonsense;');
  await expectUsable();
});

test('a broken program that is never run fails nothing', async () => {
  device.load(mapProgram('unused', N, 'v + more_nonsense'));
  await device.finish();
  await expectUsable();
});

test('a failure is told to every read that waited behind it, and to none before it', async () => {
  device.load(sound).run([x], [y], []);
  const before = device.read(y, 4);
  device.load(broken).run([x], [y], []);
  const behind = [device.read(y, 4), device.read(x, 4), device.finish()];
  expect(floatsOf(await before)).toEqual([1]);
  for (const result of await Promise.allSettled(behind)) {
    expect(result.status === 'rejected' && (result.reason as DeviceError).kernel).toBe('broken');
  }
  await expectUsable();
});

test('a failure between two waiting reads is not lost when the first read reports another', async () => {
  device.load(broken).run([x], [y], []);
  const first = device.read(y, 4);
  device.load(mapProgram('also_broken', N, 'v + absent')).run([x], [y], []);
  // Both programs have failed by the time the first read reports, and no second read was issued before that.
  expect((await failure(() => first)).kernel).toBe('broken');
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect((await failure(() => device.read(y, 4))).kernel).toBe('also_broken');
  await expectUsable();
});

test('many failing runs are one failure', async () => {
  const loaded = device.load(broken);
  for (let k = 0; k < 200; k++) loaded.run([x], [y], []);
  expect((await failure(() => device.finish())).kernel).toBe('broken');
  await expectUsable();
});

test('a failure after the first report is reported in its turn', async () => {
  device.load(broken).run([x], [y], []);
  expect((await failure(() => device.finish())).kernel).toBe('broken');
  device.load(mapProgram('broken_too', N, 'v + nothing')).run([x], [y], []);
  expect((await failure(() => device.finish())).kernel).toBe('broken_too');
  await expectUsable();
});

test('what Dawn refuses names its kernel: a binding smaller than the array', async () => {
  const wide = mapProgram('wide', 2 * N, 'v');
  const narrow = { ...wide, buffers: [f32('x', 'input', N), f32('y', 'output', N)] };
  device.load(narrow).run([x], [y], []);
  const error = await failure(() => device.read(y, 4));
  expect(error.code).toBe('E_VALIDATION');
  expect(error.kernel).toBe('wide');
  await expectUsable();
});

test('a pipeline refused without a compiler message still names its kernel', async () => {
  const base = mapProgram('misnamed', N, 'v');
  const source = base.kernels[0]!.source.replace('fn misnamed', 'fn other');
  device.load({ ...base, kernels: [{ ...base.kernels[0]!, source }] }).run([x], [y], []);
  const error = await failure(() => device.read(y, 4));
  expect(error.kernel).toBe('misnamed');
  expect(error.message).toMatch(/misnamed/);
  await expectUsable();
});

test('a buffer bound both read and read_write is refused by name', async () => {
  const both = program({
    kernels: [kernel('clash', N, ['read', 'read_write'], 'b1[i] = b0[i];')],
    buffers: [
      f32('a', 'scratch', N, { arena: 0, offset: 0 }),
      f32('b', 'scratch', N, { arena: 0, offset: 256 }),
    ],
    arenas: [512],
    steps: [dispatch(0, [0, 1], N)],
  });
  device.load(both).run([], [], []);
  const inArena = await failure(() => device.finish());
  expect([inArena.code, inArena.kernel]).toEqual(['E_VALIDATION', 'clash']);
  expect(inArena.message).toContain('a and b lie in one buffer, bound both read and read_write');

  device.load(sound).run([x], [x], []);
  const outside = await failure(() => device.finish());
  expect(outside.message).toContain('x and y lie in one buffer');
  await expectUsable();
});

test('two writable bindings of one arena may not overlap', async () => {
  const two = (offset: number): ReturnType<typeof program> =>
    program({
      kernels: [kernel('pair', N, ['read_write', 'read_write'], 'b0[i] = 1.0; b1[i] = 2.0;')],
      buffers: [
        f32('a', 'scratch', N, { arena: 0, offset: 0 }),
        f32('b', 'scratch', N, { arena: 0, offset }),
      ],
      arenas: [512],
      steps: [dispatch(0, [0, 1], N)],
    });
  device.load(two(256)).run([], [], []);
  await device.finish();
  device.load(two(0)).run([], [], []);
  expect((await failure(() => device.finish())).message).toContain('a and b overlap and are both written');
});

test('limits are checked before anything is asked of the driver', async () => {
  const { limits } = device.facts;
  expect((await failure(() => device.allocate(limits.bufferBytes + 4))).code).toBe('E_LIMIT');
  expect((await failure(() => device.allocate(6))).code).toBe('E_VALIDATION');

  const many = limits.storageBuffers + 1;
  const crowded = program({
    kernels: [
      kernel(
        'crowded',
        1,
        Array.from({ length: many }, () => 'read' as const),
        '',
      ),
    ],
    buffers: ramp(many).map((i) => f32(`x${i}`, 'input', 1)),
    steps: [],
  });
  const binding = await failure(() => device.load(crowded));
  expect([binding.code, binding.kernel]).toEqual(['E_LIMIT', 'crowded']);

  const far = { ...sound, steps: [{ ...dispatch(0, [0, 1], N), grid: [65_536, 1, 1] as const }] };
  expect((await failure(() => device.load(far as typeof sound))).message).toContain(
    '65536 exceeds the limit 65535',
  );

  const hosted = program({ buffers: [], steps: [{ kind: 'host', run: 'f', reads: [], writes: [] }] });
  expect((await failure(() => device.load(hosted))).code).toBe('E_UNSUPPORTED');
  await expectUsable();
});

test('the budget is enforced, after free and dropped buffers were taken back', async () => {
  const MiB = 2 ** 20;
  const small = await openWebGpu('webgpu:software', { budget: 64 * MiB });
  const held = ramp(6).map(() => small.allocate(10 * MiB));
  const error = await failure(() => small.allocate(10 * MiB));
  expect(error.code).toBe('E_OOM');
  expect(error.message).toContain('in 6 live buffers: the budget is 67108864');
  for (const buffer of held) buffer.destroy();
  expect(small.memory()).toEqual({ live: 0, pooled: 60 * MiB, buffers: 0 });
  small.allocate(40 * MiB).destroy(); // Another class: the pool gives way.
  expect(small.memory().pooled).toBeLessThanOrEqual(64 * MiB);

  // Handles dropped without `destroy`: no finalizer runs inside this loop's turns unless memory asks for it.
  for (let k = 0; k < 40; k++) {
    small.allocate(10 * MiB);
    await Promise.resolve();
    if (k % 5 === 4) await new Promise((resolve) => setImmediate(resolve));
  }
  small.destroy();
});

test('memory that waiting work still needs is destroyed behind it', async () => {
  const MiB = 2 ** 20;
  const tight = await openWebGpu('webgpu:software', { budget: 24 * MiB });
  const count = (8 * MiB) / 4;
  const [a, b] = [tight.allocate(8 * MiB), tight.allocate(8 * MiB)];
  tight.write(a, bytesOf(ramp(count)));
  tight.load(mapProgram('waiting', count, 'v + 3.0')).run([a], [b], []); // Waits for its pipeline.
  a.destroy();
  tight.allocate(12 * MiB); // Fits only once the pool lets go of what `a` had.
  expect(tight.memory().pooled).toBe(0);
  expect(floatsOf(await tight.read(b, 8))).toEqual([3, 4]);
  tight.destroy();
});

test('memory that the driver refuses is reported as E_OOM by the next read', async () => {
  const { device: host, gpu } = await openWithGpu();
  const { limits } = host.facts;
  // 2^30 bytes are within what SwiftShader announces and more than it can give.
  const careless = new WebGpuDevice(
    gpu,
    { ...host.facts, limits: { ...limits, bufferBytes: 2 ** 30 } },
    Infinity,
  );
  const buffer = careless.allocate(2 ** 30);
  careless.write(buffer, new Uint8Array(4));
  const error = await failure(() => careless.read(buffer, 4));
  expect(error.code).toBe('E_OOM');
  expect(error.message).toContain('a buffer of 1073741824 bytes');
  buffer.destroy();
  const next = careless.allocate(4);
  careless.write(next, Uint8Array.of(1, 2, 3, 4));
  expect(await careless.read(next, 4)).toEqual(Uint8Array.of(1, 2, 3, 4));
  host.destroy();
});

test('a device lost from below is noticed', async () => {
  const { device: doomed, gpu } = await openWithGpu();
  const buffer = doomed.allocate(4);
  const waiting = failure(() => doomed.read(buffer, 4));
  gpu.destroy();
  expect((await waiting).code).toBe('E_DEVICE_LOST');
  expect(doomed.lost).toBe(true);
  expect((await failure(() => doomed.allocate(4))).code).toBe('E_DEVICE_LOST');
});
