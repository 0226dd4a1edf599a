// One GPUDevice with code of the user's: GPUBuffers of theirs are tensors, memory of ours is bound by
// their kernels, in one queue; and what the device cannot use is refused by name.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { close, fromBuffer, setDevice, tensor } from '../../src/index.ts';
import {
  allocateBuffer,
  gpuBackend,
  hasBackend,
  nativeDevice,
  openDevice,
  registerBackend,
  wrapBuffer,
  type WrapOptions,
} from '../../src/interop/index.ts';
import { softwareAdapter } from '../../src/runtime/webgpu/node.ts';

const [COPY_SRC, COPY_DST, STORAGE] = [4, 8, 128];
const usual = COPY_SRC | COPY_DST | STORAGE;

/** `to[i] = from[i] * scale + shift` of the user's. */
function affine(gpu: GPUDevice, count: number, scale: number, shift: number): GPUComputePipeline {
  const code = `
    @group(0) @binding(0) var<storage, read> x: array<f32>;
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
      if (id.x < ${count}u) { y[id.x] = x[id.x] * f32(${scale}) + f32(${shift}); }
    }`;
  const module = gpu.createShaderModule({ code });
  return gpu.createComputePipeline({ layout: 'auto', compute: { module } });
}

function dispatch(
  gpu: GPUDevice,
  pipeline: GPUComputePipeline,
  resources: GPUBufferBinding[],
  count: number,
): void {
  const entries = resources.map((resource, binding) => ({ binding, resource }));
  const encoder = gpu.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, gpu.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
  pass.dispatchWorkgroups(Math.ceil(count / 64));
  pass.end();
  gpu.queue.submit([encoder.finish()]);
}

const ramp = (count: number): Float32Array<ArrayBuffer> => Float32Array.from({ length: count }, (_, i) => i);

describe('on the GPUDevice of webgpu:software', () => {
  let gpu: GPUDevice;
  beforeAll(async () => {
    setDevice('webgpu:software');
    gpu = (await nativeDevice(await openDevice(), 'webgpu'))!.device;
  });
  afterAll(async () => {
    await close();
    setDevice(undefined);
  });

  const bufferOf = (
    values: Float32Array<ArrayBuffer>,
    size = values.byteLength,
    usage = usual,
  ): GPUBuffer => {
    const buffer = gpu.createBuffer({ size, usage });
    gpu.queue.writeBuffer(buffer, 0, values);
    return buffer;
  };
  const problem = async (make: () => GPUBuffer, options: WrapOptions = {}): Promise<[unknown, string]> => {
    try {
      await wrapBuffer(make(), options);
    } catch (error) {
      const { code, message } = error as { code: unknown; message: string };
      return [code, message];
    }
    return ['', 'nothing is thrown'];
  };

  test('a kernel of theirs writes, ours computes; ours computes, theirs reads', async () => {
    const count = 100;
    const theirs = bufferOf(ramp(count), 4 * count + 64);
    const input = bufferOf(ramp(count));
    dispatch(gpu, affine(gpu, count, 2, 1), [{ buffer: input }, { buffer: theirs }], count);
    const buffer = await wrapBuffer(theirs, { length: count });
    expect(buffer.isWrapped).toBe(true);
    expect(buffer.as('webgpu')?.buffer).toBe(theirs);
    expect(buffer.as('cuda')).toBeUndefined();
    const x = fromBuffer(buffer, { shape: [10, 10], copy: false });
    const y = x.mul(3).add(1);
    const lent = await y.buffer();
    const back = bufferOf(new Float32Array(count));
    const { buffer: from, offset, size } = lent.as('webgpu')!;
    dispatch(gpu, affine(gpu, count, 1, 0.5), [{ buffer: from, offset, size }, { buffer: back }], count);
    const result = await wrapBuffer(back);
    const expected = ramp(count).map((i) => (2 * i + 1) * 3 + 1.5);
    expect(await result.data()).toEqual(expected);
    for (const each of [buffer, lent, result]) each.release();
  });

  test('what they write next is a new value, and the old one stays where it was asked for', async () => {
    const count = 64;
    const [theirs, input] = [bufferOf(ramp(count), 4 * count + 64), bufferOf(ramp(count))];
    const buffer = await wrapBuffer(theirs, { length: count });
    const before = fromBuffer(buffer, { copy: false });
    const { buffer: to } = (await buffer.handleMut()) as { buffer: GPUBuffer };
    expect(buffer.version).toBe(1);
    dispatch(gpu, affine(gpu, count, -1, 0), [{ buffer: input }, { buffer: to }], count);
    expect(await before.data()).toEqual(ramp(count));
    expect(await fromBuffer(buffer).data()).toEqual(ramp(count).map((i) => -i));
    buffer.release();
  });

  test('a run that still waits for its kernels reads what was there before their write', async () => {
    const count = 64;
    const input = bufferOf(ramp(count));
    const pipeline = affine(gpu, count, 0, 5);
    for (let i = 0; i < 4; i++) {
      const theirs = bufferOf(ramp(count), 4 * count + 64);
      const buffer = await wrapBuffer(theirs, { length: count });
      // A kernel that nothing has compiled yet.
      const x = fromBuffer(buffer, { copy: false });
      const y = x
        .mul(x.add(i + 1.5))
        .sub(i)
        .tanh()
        .data();
      x.dispose();
      await buffer.handleMut();
      dispatch(gpu, pipeline, [{ buffer: input }, { buffer: theirs }], count);
      const expected = ramp(count).map((at) => Math.tanh(at * (at + i + 1.5) - i));
      ((await y) as Float32Array).forEach((at, k) => expect(at).toBeCloseTo(expected[k]!, 5));
      expect(await buffer.data()).toEqual(new Float32Array(count).fill(5));
      buffer.release();
    }
  });

  test('memory that kernels cannot read where it lies is copied, or refused', async () => {
    const exact = await wrapBuffer(bufferOf(ramp(64)));
    expect(await fromBuffer(exact).sum().item()).toBe(2016);
    expect(() => fromBuffer(exact, { copy: false })).toThrow(/kernels read in groups and need 272 bytes/);
    const shifted = await wrapBuffer(bufferOf(ramp(128), 1024), { byteOffset: 64, length: 32 });
    expect(() => fromBuffer(shifted, { copy: false })).toThrow(/multiples of 256 bytes on: it begins at 64/);
    expect(await fromBuffer(shifted).data()).toEqual(ramp(48).slice(16));
    exact.release();
    shifted.release();
  });

  test('the owner is told when nothing uses the memory any more', async () => {
    let released = 0;
    const theirs = bufferOf(ramp(64), 512);
    const buffer = await wrapBuffer(theirs, { length: 64, release: () => void (released += 1) });
    const [x, slice] = [fromBuffer(buffer, { copy: false }), buffer.slice(4)];
    buffer.release();
    slice.release();
    expect(released).toBe(0);
    expect(await x.sum().item()).toBe(2016);
    x.dispose();
    await (await openDevice()).finish();
    expect(released).toBe(1);
    theirs.destroy();
    const taken = await wrapBuffer(bufferOf(ramp(8)));
    await expect(taken.take('host')).rejects.toThrow(/its memory is not of 'host'/);
    expect(taken.references).toBe(1);
    expect((await taken.take('webgpu')).size).toBe(32);
    expect(taken.references).toBe(0);
  });

  test('what the device cannot use is refused, and why is said', async () => {
    expect(await problem(() => bufferOf(ramp(4), 16, COPY_SRC | COPY_DST))).toEqual([
      'E_VALIDATION',
      expect.stringContaining('has no usage STORAGE') as string,
    ]);
    expect(await problem(() => bufferOf(ramp(4), 16, STORAGE | COPY_DST))).toEqual([
      'E_VALIDATION',
      expect.stringContaining('has no usage COPY_SRC') as string,
    ]);
    const mapped = (): GPUBuffer => gpu.createBuffer({ size: 64, usage: usual, mappedAtCreation: true });
    expect(await problem(mapped)).toEqual(['E_STATE', expect.stringContaining('is mapped') as string]);
    expect(await problem(() => bufferOf(ramp(4)), { byteOffset: 2 })).toEqual([
      'E_VALIDATION',
      expect.stringContaining('misaligned') as string,
    ]);
    expect(await problem(() => bufferOf(ramp(4)), { length: 5 })).toEqual([
      'E_VALIDATION',
      expect.stringContaining('f32[5] takes 20 bytes: there are 16') as string,
    ]);
    const destroyed = (): GPUBuffer => {
      const buffer = bufferOf(ramp(4));
      buffer.destroy();
      return buffer;
    };
    expect(await problem(destroyed)).toEqual([
      'E_VALIDATION',
      expect.stringMatching(/refuses the GPUBuffer: .*destroyed/) as string,
    ]);
    const other = await (await softwareAdapter()).requestDevice();
    const foreign = (): GPUBuffer => other.createBuffer({ size: 64, usage: usual });
    expect(await problem(foreign)).toEqual([
      'E_VALIDATION',
      expect.stringContaining('the device refuses the GPUBuffer') as string,
    ]);
    other.destroy();
    expect(await problem(() => ({}) as GPUBuffer)).toEqual(['E_VALUE', expect.any(String) as string]);
    expect(await problem(() => Float32Array.of(1) as never)).toEqual([
      'E_VALIDATION',
      expect.any(String) as string,
    ]);
    const readonly = await wrapBuffer(bufferOf(ramp(4), 16, usual));
    expect(await readonly.data()).toEqual(ramp(4));
    readonly.release();
    // Sinter's own work goes on after all of this.
    expect(await tensor([1, 2]).add(1).array()).toEqual([2, 3]);
  });

  test('a buffer without COPY_DST is read, and written by kernels only', async () => {
    const source = gpu.createBuffer({ size: 64, usage: STORAGE | COPY_SRC, mappedAtCreation: true });
    new Float32Array(source.getMappedRange()).set(ramp(16));
    source.unmap();
    const buffer = await wrapBuffer(source);
    expect(() => buffer.write([1])).toThrow(/no usage COPY_DST/);
    expect(buffer.version).toBe(0);
    expect(await fromBuffer(buffer).max().item()).toBe(15);
    expect((await buffer.handleMut()).api).toBe('webgpu');
    buffer.release();
  });

  test('memory that is mapped or destroyed later fails the work that reads it, and nothing else', async () => {
    const theirs = gpu.createBuffer({ size: 512, usage: usual });
    const buffer = await wrapBuffer(theirs, { length: 64 });
    const x = fromBuffer(buffer, { copy: false });
    expect(await x.sum().item()).toBe(0);
    theirs.destroy();
    await expect(x.add(1).data()).rejects.toMatchObject({ code: 'E_VALIDATION' });
    expect(await tensor([1, 2]).add(1).array()).toEqual([2, 3]);
    buffer.release();
  });
});

test('Sinter computes on a GPUDevice of theirs, which stays theirs', async () => {
  const adapter = await softwareAdapter();
  const gpu = await adapter.requestDevice();
  const errors: string[] = [];
  gpu.addEventListener('uncapturederror', (event) => {
    event.preventDefault();
    errors.push(event.error.message);
  });
  registerBackend(gpuBackend('theirs', gpu));
  expect(hasBackend('theirs')).toBe(true);
  setDevice('theirs');
  const device = await openDevice();
  expect(gpuBackend('theirs', gpu).target).toBe(device.facts.target);
  expect((await nativeDevice(device, 'webgpu'))!.device).toBe(gpu);
  const source = gpu.createBuffer({ size: 512, usage: usual });
  gpu.queue.writeBuffer(source, 0, ramp(64));
  const buffer = await wrapBuffer(source, { length: 64 });
  const x = fromBuffer(buffer, { copy: false });
  for (let i = 0; i < 3; i++) expect(await x.add(i).sum().item()).toBe(2016 + 64 * i);
  // Their mistakes are theirs.
  gpu.createBuffer({ size: 16, usage: 0 });
  await gpu.queue.onSubmittedWorkDone();
  expect(await x.add(5).sum().item()).toBe(2016 + 320);
  expect(errors).toHaveLength(1);
  // Ours are ours: a run that was accepted before is watched all the same.
  source.destroy();
  await expect(x.add(0).sum().item()).rejects.toMatchObject({ code: 'E_VALIDATION' });
  expect(errors).toHaveLength(1);
  buffer.release();
  await close();
  const made = gpu.createBuffer({ size: 16, usage: usual });
  gpu.queue.writeBuffer(made, 0, ramp(4));
  await gpu.queue.onSubmittedWorkDone();
  gpu.destroy();
  setDevice(undefined);
});

test('memory of a device that is lost is refused as lost', async () => {
  setDevice('webgpu:software');
  const device = await openDevice();
  const buffer = await allocateBuffer(4);
  const x = tensor([1, 2]).add(1);
  await x.data();
  await device.destroy();
  await expect(x.buffer()).rejects.toMatchObject({ code: 'E_DEVICE_LOST' });
  for (const use of [
    () => buffer.data(),
    () => buffer.handle(),
    () => buffer.write([1]),
    () => buffer.clone(),
  ]) {
    await expect((async () => use())()).rejects.toMatchObject({ code: 'E_DEVICE_LOST' });
  }
  setDevice(undefined);
});
