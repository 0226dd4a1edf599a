// Programs on a real WebGPU device (SwiftShader), beyond what every device does: what it compiles, builds and submits.

import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Device } from '../../../src/runtime/device.ts';
import { openWebGpu } from '../../../src/runtime/webgpu/open.ts';
import { openWithGpu } from '../devices.ts';
import { bytesOf, dispatch, f32, floatsOf, kernel, mapProgram, program, ramp } from '../programs.ts';

let device: Device;
beforeAll(async () => {
  device = await openWebGpu('webgpu:software');
});
afterAll(() => device.destroy());

const N = 300;

test('the device is SwiftShader, and says so', () => {
  expect(device.facts.name).toBe('webgpu:software');
  expect(device.facts.software).toBe(true);
  expect(device.facts.description).toMatch(/swiftshader/i);
  expect(device.facts.limits.storageBuffers).toBeGreaterThanOrEqual(8);
  expect(device.facts.limits.bufferBytes).toBe(2 ** 30 - 256);
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
  expect(floatsOf(await device.read(y, 4 * count))).toEqual(ramp(count, 7));
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

test('kernels of one signature have pipeline layouts of their own, and share bind groups', async () => {
  // wgpu takes the sizes that the first of two shaders declares for both when their pipelines have one layout.
  const { device, gpu } = await openWithGpu();
  const layouts = vi.spyOn(gpu, 'createPipelineLayout');
  const groupLayouts = vi.spyOn(gpu, 'createBindGroupLayout');
  const compile = vi.spyOn(gpu, 'createComputePipelineAsync');
  for (const size of [64, 128, 256]) device.load(mapProgram('sized', size, 'v + 1.0'));
  expect(groupLayouts).toHaveBeenCalledTimes(1);
  expect(layouts).toHaveBeenCalledTimes(3);
  const made = layouts.mock.results.map(({ value }) => value as GPUPipelineLayout);
  expect(compile.mock.calls.map(([{ layout }]) => made.indexOf(layout as GPUPipelineLayout))).toEqual([
    0, 1, 2,
  ]);
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
