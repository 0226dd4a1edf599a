// Programs on a real WebGPU device (SwiftShader): results, order, scalars, scratch, donation, memory over many runs.

import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Device, DeviceBuffer } from '../../src/runtime/device.ts';
import { openWebGpu } from '../../src/runtime/webgpu/open.ts';
import { openWithGpu } from './devices.ts';
import { bytesOf, dispatch, f32, floatsOf, kernel, mapProgram, program, ramp } from './programs.ts';

let device: Device;
beforeAll(async () => {
  device = await openWebGpu('webgpu:software');
});
afterAll(() => device.destroy());

const N = 300;

function upload(values: ArrayLike<number>, to: Device = device): DeviceBuffer {
  const buffer = to.allocate(4 * values.length);
  to.write(buffer, bytesOf(values));
  return buffer;
}

async function values(buffer: DeviceBuffer, from: Device = device): Promise<number[]> {
  return floatsOf(await from.read(buffer, buffer.bytes));
}

test('the device is SwiftShader, and says so', () => {
  expect(device.facts.name).toBe('webgpu:software');
  expect(device.facts.software).toBe(true);
  expect(device.facts.description).toMatch(/swiftshader/i);
  expect(device.facts.limits.storageBuffers).toBeGreaterThanOrEqual(8);
  expect(device.facts.limits.bufferBytes).toBe(2 ** 30 - 256);
});

test('what is written is read back, at every length', async () => {
  for (const bytes of [1, 3, 4, 5, 1023, 65_537]) {
    const data = Uint8Array.from(ramp(bytes), (i) => i % 251);
    const buffer = device.allocate(Math.ceil(bytes / 4) * 4);
    device.write(buffer, data);
    const back = device.read(buffer, bytes);
    data.fill(0); // The bytes were taken before `write` returned.
    expect(await back).toEqual(Uint8Array.from(ramp(bytes), (i) => i % 251));
    buffer.destroy();
  }
  const buffer = device.allocate(4);
  expect(await device.read(buffer, 0)).toEqual(new Uint8Array(0));
});

test('a view into a larger array writes its own bytes', async () => {
  const view = bytesOf(ramp(20)).subarray(16, 48);
  const buffer = device.allocate(32);
  device.write(buffer, view);
  expect(await values(buffer)).toEqual(ramp(8, 4));
});

test('a view of shared memory can be written', async () => {
  const shared = new Uint8Array(new SharedArrayBuffer(64), 16, 16);
  shared.set(bytesOf([1, 2, 3, 4]));
  const buffer = device.allocate(16);
  device.write(buffer, shared);
  expect(await values(buffer)).toEqual([1, 2, 3, 4]);
});

test('a kernel maps its input to its output', async () => {
  const double = device.load(mapProgram('double', N, 'v * 2.0'));
  const y = device.allocate(4 * N);
  double.run([upload(ramp(N))], [y], []);
  expect(await values(y)).toEqual(ramp(N).map((v) => 2 * v));
});

test('scalars belong to their run, however many runs are queued', async () => {
  const loaded = device.load(
    program({
      kernels: [
        kernel(
          'affine',
          N,
          ['read', 'read_write'],
          'b1[i] = b0[i] * s.f + f32(s.n) + f32(s.u) + select(0.0, 0.5, s.on != 0u);',
          'f: f32, n: i32, u: u32, on: u32',
        ),
      ],
      buffers: [f32('x', 'input', N), f32('y', 'output', N)],
      steps: [dispatch(0, [0, 1], N)],
      scalars: [
        { name: 'f', dtype: 'f32' },
        { name: 'n', dtype: 'i32' },
        { name: 'u', dtype: 'u32' },
        { name: 'on', dtype: 'bool' },
      ],
    }),
  );
  const x = upload(ramp(N));
  const given = ramp(20).map((k) => [k / 2, -k, 3_000_000 + k, k % 2] as const);
  const outs = given.map((scalars) => {
    const y = device.allocate(4 * N);
    loaded.run([x], [y], scalars);
    return y;
  });
  for (const [k, y] of outs.entries()) {
    const [f, n, u, on] = given[k]!;
    expect(await values(y)).toEqual(ramp(N).map((v) => v * f + n + u + on / 2));
  }
});

test('more scalars than one 256-byte slot reach the kernel', async () => {
  const count = 100;
  const loaded = device.load(
    program({
      kernels: [
        kernel('spread', count, ['read_write'], 'b0[i] = s.v[i / 4u][i % 4u];', 'v: array<vec4f, 25>'),
      ],
      buffers: [f32('y', 'output', count)],
      steps: [dispatch(0, [0], count)],
      scalars: ramp(count).map((i) => ({ name: `s${i}`, dtype: 'f32' as const })),
    }),
  );
  const y = device.allocate(4 * count);
  loaded.run([], [y], ramp(count, 7));
  expect(await values(y)).toEqual(ramp(count, 7));
});

test('steps see what earlier steps wrote, through arenas, copies and clears', async () => {
  const add = kernel('add_one', N, ['read', 'read_write'], 'b1[i] = b0[i] + 1.0;');
  const sum = kernel('sum_of', N, ['read', 'read', 'read_write'], 'b2[i] = b0[i] + b1[i];');
  const loaded = device.load(
    program({
      kernels: [add, sum],
      buffers: [
        f32('x', 'input', N),
        f32('t0', 'scratch', N, { arena: 0, offset: 0 }),
        f32('t1', 'scratch', N, { arena: 1, offset: 512 }),
        f32('t2', 'scratch', N, { arena: 0, offset: 2048 }),
        f32('y', 'output', N),
        f32('z', 'output', N),
      ],
      arenas: [2048 + 4 * N, 512 + 4 * N],
      steps: [
        dispatch(0, [0, 1], N), // t0 = x + 1
        dispatch(0, [1, 2], N), // t1 = x + 2
        { kind: 'copy', from: 1, to: 3 }, // t2 = t0, within one arena
        { kind: 'dispatch', kernel: 0, buffers: [2, 1], grid: [0, 1, 1] }, // nothing
        dispatch(0, [2, 1], N), // t0 = x + 3
        dispatch(1, [1, 3, 4], N), // y = t0 + t2 = 2x + 4
        { kind: 'clear', buffer: 3 },
        dispatch(1, [4, 3, 5], N), // z = y + 0
      ],
    }),
  );
  const [y, z] = [device.allocate(4 * N), device.allocate(4 * N)];
  loaded.run([upload(ramp(N))], [y, z], []);
  const expected = ramp(N).map((v) => 2 * v + 4);
  expect(await values(y)).toEqual(expected);
  expect(await values(z)).toEqual(expected);
});

test('runs, writes and reads keep program order while pipelines still compile', async () => {
  const x = upload([1]);
  const y = device.allocate(4);
  const seen: Promise<number[]>[] = [];
  let expected = 1;
  const all: number[] = [];
  for (let k = 0; k < 12; k++) {
    // A new source each time, so every run waits for a compiler while later writes and reads arrive.
    const step = device.load(mapProgram(`step_${k}`, 1, `v * 2.0 + ${k}.0`));
    step.run([x], [y], []);
    seen.push(values(y));
    expected = expected * 2 + k;
    all.push(expected);
    if (k % 3 === 0) {
      device.write(x, bytesOf([k]));
      expected = k;
    } else {
      step.run([y], [x], []);
      expected = expected * 2 + k;
    }
    seen.push(values(x));
    all.push(expected);
  }
  expect((await Promise.all(seen)).flat()).toEqual(all);
});

test('memory freed while work waits is not overwritten early', async () => {
  const slow = device.load(mapProgram('slow_to_compile', N, 'tanh(exp(v * 0.0)) * 0.0 + v + 4.0'));
  const x = upload(ramp(N));
  const y = device.allocate(4 * N);
  slow.run([x], [y], []);
  x.destroy();
  const z = upload(ramp(N, 1000)); // Takes the freed memory while the run still waits to read it.
  expect(await values(y)).toEqual(ramp(N, 4));
  expect(await values(z)).toEqual(ramp(N, 1000));
});

test('a donated input is overwritten in place', async () => {
  const loaded = device.load(
    program({
      kernels: [kernel('decay', N, ['read_write'], 'b0[i] = b0[i] * 0.5;')],
      buffers: [f32('p', 'input', N), f32('p_next', 'output', N)],
      steps: [dispatch(0, [1], N)],
      donated: [{ input: 0, output: 0 }],
    }),
  );
  const p = upload(ramp(N));
  for (let k = 0; k < 3; k++) loaded.run([p], [p], []);
  expect(await values(p)).toEqual(ramp(N).map((v) => v / 8));
});

test('an output that repeats an input or another output is filled', async () => {
  const base = mapProgram('triple', N, 'v * 3.0');
  const loaded = device.load({ ...base, outputs: [1, 0, 1] });
  const outs = [0, 1, 2].map(() => device.allocate(4 * N));
  const x = upload(ramp(N));
  loaded.run([x], outs, []);
  const triple = ramp(N).map((v) => 3 * v);
  expect(await Promise.all(outs.map((out) => values(out)))).toEqual([triple, ramp(N), triple]);
  loaded.run([x], [outs[0]!, x, outs[0]!], []); // The same buffers again: nothing to copy.
  expect(await values(x)).toEqual(ramp(N));
});

test('programs share scratch and leave none behind', async () => {
  const device = await openWebGpu('webgpu:software');
  const before = device.memory();
  const through = (name: string, count: number): ReturnType<Device['load']> =>
    device.load(
      program({
        kernels: [kernel(name, count, ['read', 'read_write'], 'b1[i] = b0[i] + 1.0;')],
        buffers: [
          f32('x', 'input', count),
          f32('t', 'scratch', count, { arena: 0, offset: 0 }),
          f32('y', 'output', count),
        ],
        arenas: [4 * count],
        steps: [dispatch(0, [0, 1], count), dispatch(0, [1, 2], count)],
      }),
    );
  const small = through('small', 64);
  const [x, y] = [upload(ramp(64), device), device.allocate(256)];
  small.run([x], [y], []);
  const large = through('large', 65_536); // The shared arena grows under the first program.
  small.run([y], [x], []);
  expect(await values(x, device)).toEqual(ramp(64, 4));
  const largeIn = upload(ramp(65_536), device);
  const largeOut = device.allocate(4 * 65_536);
  large.run([largeIn], [largeOut], []);
  expect((await values(largeOut, device)).at(-1)).toBe(65_537);
  expect(device.memory().live).toBeLessThan(before.live + 3 * 4 * 65_536 + 4096);
  large.destroy();
  small.run([x], [y], []); // It shrinks again.
  expect(await values(y, device)).toEqual(ramp(64, 6));
  small.destroy();
  for (const buffer of [x, y, largeIn, largeOut]) buffer.destroy();
  expect(device.memory().live).toBe(before.live);
  device.destroy();
});

test('equal kernels compile once, whatever they are called', async () => {
  const { device, gpu } = await openWithGpu();
  const compile = vi.spyOn(gpu, 'createComputePipelineAsync');
  const [x, y] = [device.allocate(4 * N), device.allocate(4 * N)];
  device.write(x, bytesOf(ramp(N)));
  for (const name of ['one', 'two', 'one', 'three']) {
    device.load(mapProgram(name, N, 'v + 1.0')).run([x], [y], []);
    expect(floatsOf(await device.read(y, 4 * N))).toEqual(ramp(N, 1));
  }
  expect(compile).toHaveBeenCalledTimes(1);
  device.load(mapProgram('one', N, 'v + 2.0'));
  expect(compile).toHaveBeenCalledTimes(2);
  await device.finish();
  device.destroy();
});

test('a loop over the same buffers builds its bind groups once', async () => {
  const { device, gpu } = await openWithGpu();
  const group = vi.spyOn(gpu, 'createBindGroup');
  const submit = vi.spyOn(gpu.queue, 'submit');
  const loaded = device.load(mapProgram('swap', N, 'v + 1.0'));
  const [x, y] = [device.allocate(4 * N), device.allocate(4 * N)];
  device.write(x, bytesOf(ramp(N)));
  for (let k = 0; k < 50; k++) {
    loaded.run([x], [y], []);
    loaded.run([y], [x], []);
  }
  expect(floatsOf(await device.read(x, 4 * N))).toEqual(ramp(N, 100));
  expect(group).toHaveBeenCalledTimes(2);
  expect(submit).toHaveBeenCalledTimes(101);
  device.destroy();
});

test('5,000 runs over fresh buffers keep memory flat', async () => {
  const device = await openWebGpu('webgpu:software');
  const loaded = device.load(mapProgram('flat', 4096, 'v + 1.0'));
  const step = async (rounds: number): Promise<void> => {
    let x = upload(ramp(4096), device);
    for (let k = 0; k < rounds; k++) {
      const y = device.allocate(4 * 4096);
      loaded.run([x], [y], []);
      x.destroy();
      x = y;
      if (k % 100 === 99) await device.finish();
    }
    expect((await values(x, device))[0]).toBe(rounds);
    x.destroy();
  };
  await step(1000);
  const before = { ...device.memory(), rss: process.memoryUsage.rss() };
  await step(5000);
  const after = device.memory();
  expect(after.live).toBe(before.live);
  expect(after.pooled).toBe(before.pooled);
  // 5,000 buffers of 16 KiB would be 80 MiB by themselves.
  expect(process.memoryUsage.rss() - before.rss).toBeLessThan(60 * 2 ** 20);
  device.destroy();
});
