// Programs on a real WebGPU device (SwiftShader), beyond what every device does: what it compiles, builds and submits.

import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Device } from '../../../src/runtime/device.ts';
import type { ProgramStep } from '../../../src/runtime/program.ts';
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

/** Names of all calls into WebGPU from now on that encode or submit, in order; they still happen. */
function watchCalls(gpu: GPUDevice): string[] {
  const calls: string[] = [];
  const watch = (
    object: object,
    names: readonly string[],
    made: (result: object) => void = () => {},
  ): void => {
    for (const name of names) {
      const method = Reflect.get(object, name) as (...given: unknown[]) => object;
      Reflect.set(object, name, (...given: unknown[]): object => {
        calls.push(name);
        const result = method.apply(object, given);
        made(result);
        return result;
      });
    }
  };
  const inPass = ['setPipeline', 'setBindGroup', 'dispatchWorkgroups', 'end'];
  watch(gpu, ['createBindGroup', 'createBuffer']);
  watch(gpu.queue, ['submit', 'writeBuffer']);
  watch(gpu, ['createCommandEncoder'], (encoder) => {
    watch(encoder, ['copyBufferToBuffer', 'clearBuffer', 'finish']);
    watch(encoder, ['beginComputePass'], (pass) => watch(pass, inPass));
  });
  return calls;
}

/** A pass of dispatches, as calls: `each` has those of one dispatch after the other. */
function inOnePass(each: readonly (readonly string[])[]): string[] {
  return ['createCommandEncoder', 'beginComputePass', ...each.flat(), 'end', 'finish', 'submit'];
}

const fresh = ['setPipeline', 'setBindGroup', 'dispatchWorkgroups'];

test('a step makes three calls a dispatch and five besides, and builds nothing', async () => {
  const { device, gpu } = await openWithGpu();
  const layers = 20;
  const [x, y, between, other] = [0, 1, 2, 3];
  const loaded = device.load(
    program({
      kernels: [
        kernel('more', N, ['read', 'read_write'], 'b1[i] = b0[i] + 1.0;'),
        kernel('twice', N, ['read', 'read_write'], 'b1[i] = 2.0 * b0[i];'),
      ],
      buffers: [
        f32('x', 'input', N),
        f32('y', 'output', N),
        f32('between', 'scratch', N, { arena: 0, offset: 0 }),
        f32('other', 'scratch', N, { arena: 1, offset: 0 }),
      ],
      arenas: [2048, 2048],
      steps: [
        dispatch(0, [x, between], N),
        ...ramp(layers).flatMap(() => [dispatch(1, [between, other], N), dispatch(0, [other, between], N)]),
        dispatch(1, [between, y], N),
      ],
    }),
  );
  const [given, result] = [device.allocate(4 * N), device.allocate(4 * N)];
  device.write(given, bytesOf(ramp(N)));
  const calls = watchCalls(gpu);
  loaded.run([given], [result], []);
  let expected = ramp(N).map((value) => value + 1);
  for (let layer = 0; layer < layers; layer++) expected = expected.map((value) => 2 * value + 1);
  expect(floatsOf(await device.read(result, 4 * N))).toEqual(expected.map((value) => Math.fround(2 * value)));
  // Every layer binds the same scratch memory, so that all layers have two bind groups between them.
  expect(calls.filter((name) => name === 'createBindGroup')).toHaveLength(4);
  calls.length = 0;
  loaded.run([given], [result], []);
  expect(calls).toEqual(inOnePass(Array.from({ length: 2 * layers + 2 }, () => fresh)));
  await device.finish();
  device.destroy();
});

test('what a pass has set is not set again, and is set in the next pass', async () => {
  const { device, gpu } = await openWithGpu();
  const inPlace = f32('x', 'input', N);
  const counted: ProgramStep = { kind: 'repeat', times: 3, steps: [dispatch(0, [0], N)] };
  const loaded = device.load(
    program({
      kernels: [kernel('count', N, ['read_write'], 'b0[i] = b0[i] + 1.0;')],
      buffers: [inPlace, f32('copied', 'scratch', N, { arena: 0, offset: 0 })],
      arenas: [2048],
      steps: [counted, { kind: 'copy', from: 0, to: 1 }, counted],
      outputs: [0],
      donated: [{ output: 0, input: 0 }],
    }),
  );
  const x = device.allocate(4 * N);
  device.write(x, bytesOf(ramp(N)));
  loaded.run([x], [x], []);
  expect(floatsOf(await device.read(x, 4 * N))).toEqual(ramp(N, 6));
  const calls = watchCalls(gpu);
  loaded.run([x], [x], []);
  const turns = ['beginComputePass', ...fresh, 'dispatchWorkgroups', 'dispatchWorkgroups', 'end'];
  expect(calls).toEqual([
    'createCommandEncoder',
    ...turns,
    'copyBufferToBuffer',
    ...turns,
    'finish',
    'submit',
  ]);
  expect(floatsOf(await device.read(x, 4 * N))).toEqual(ramp(N, 12));
  device.destroy();
});

test('a submit that throws leaves nothing behind for the next', async () => {
  const { device, gpu } = await openWithGpu();
  const loaded = device.load(mapProgram('plus', N, 'v + 1.0'));
  const [x, y] = [device.allocate(4 * N), device.allocate(4 * N)];
  device.write(x, bytesOf(ramp(N)));
  loaded.run([x], [y], []);
  await device.finish();
  const submit = vi.spyOn(gpu.queue, 'submit').mockImplementationOnce(() => {
    throw new Error('no submit today');
  });
  loaded.run([x], [y], []);
  await expect(device.finish()).rejects.toThrow('no submit today');
  const calls = watchCalls(gpu);
  loaded.run([x], [y], []);
  expect(calls).toEqual(inOnePass([fresh]));
  expect(submit).toHaveBeenCalledTimes(2);
  expect(floatsOf(await device.read(y, 4 * N))).toEqual(ramp(N, 1));
  device.destroy();
});
