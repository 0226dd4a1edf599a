// WebGPU shared with other code: GPUBuffers of the caller's on the same GPUDevice, and ours as
// bindings of the caller's. Which GPUDevice a buffer is of, and whether it was destroyed, only the
// device itself can tell: a copy of one word inside an error scope asks it.

import { DeviceError } from '../../errors.ts';
import type { DeviceAllocation } from '../device.ts';
import { GpuSharing } from '../gpu-sharing.ts';
import type { NativeMemory } from '../sharing.ts';
import { tidy } from './failures.ts';
import type { WebGpuEngine } from './engine.ts';
import type { GpuPlace } from './memory.ts';

/** GPUBufferUsage's numbers; Node has no such global. */
const usages = { COPY_SRC: 4, COPY_DST: 8, STORAGE: 128 } as const;

export class WebGpuSharing extends GpuSharing<GPUBuffer> {
  readonly #engine: WebGpuEngine;

  constructor(engine: WebGpuEngine) {
    super({ api: 'webgpu', device: engine.gpu, queue: engine.gpu.queue }, engine);
    this.#engine = engine;
  }

  override async wrap(given: NativeMemory, ended: () => void): Promise<DeviceAllocation> {
    const { failures, memory } = this.#engine;
    failures.assertAlive();
    if (given.api !== 'webgpu') throw memory.misuse(`memory of ${given.api} is none of this device`);
    const { buffer, offset, size } = given;
    this.#check(buffer, offset, size);
    await this.#probe(buffer, offset);
    failures.assertAlive();
    const whole = Math.floor(buffer.size / 4) * 4;
    return memory.wrap(buffer, whole, { offset, bytes: size }, ended);
  }

  override place(buffer: DeviceAllocation): NativeMemory {
    const { slab, offset } = this.placeOf(buffer);
    return { api: 'webgpu', buffer: slab.gpu, offset, size: buffer.bytes };
  }

  override writeProblem(buffer: DeviceAllocation): string | undefined {
    const { usage } = this.placeOf(buffer).slab.gpu;
    return (usage & usages.COPY_DST) === 0 ? 'the GPUBuffer has no usage COPY_DST' : undefined;
  }

  override copy(from: DeviceAllocation, to: DeviceAllocation, bytes: number): void {
    const { gpu, failures, memory, timeline } = this.#engine;
    failures.assertAlive();
    const [source, target] = [this.placeOf(from), this.placeOf(to)];
    if (source.slab === target.slab && source.offset === target.offset) return;
    const at = failures.tick();
    timeline.push(() => {
      if (failures.lost) return;
      void failures.guard(at, failures.describe, () => {
        const encoder = gpu.createCommandEncoder();
        const move = (one: GpuPlace, other: GpuPlace): void =>
          encoder.copyBufferToBuffer(one.slab.gpu, one.offset, other.slab.gpu, other.offset, bytes);
        if (source.slab.gpu === target.slab.gpu) {
          // WebGPU forbids copies within one buffer.
          const slab = memory.scratch(bytes);
          move(source, { slab, offset: 0 });
          move({ slab, offset: 0 }, target);
          memory.recycle(slab);
        } else move(source, target);
        gpu.queue.submit([encoder.finish()]);
      });
    });
  }

  /** What a GPUBuffer says of itself. */
  #check(buffer: GPUBuffer, offset: number, size: number): void {
    const { facts, memory } = this.#engine;
    const { name } = facts;
    const isBuffer = typeof buffer === 'object' && buffer !== null && typeof buffer.mapAsync === 'function';
    if (!isBuffer) throw memory.misuse('what was given is no GPUBuffer');
    const missing = (['STORAGE', 'COPY_SRC'] as const).filter(
      (usage) => (buffer.usage & usages[usage]) === 0,
    );
    if (missing.length > 0) {
      throw new DeviceError('E_VALIDATION', name, `the GPUBuffer has no usage ${missing.join(' and ')}`, {
        hint: 'usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC, and COPY_DST to write to it',
      });
    }
    // Older implementations do not tell.
    if ((buffer.mapState ?? 'unmapped') !== 'unmapped') {
      const problem = `the GPUBuffer is ${buffer.mapState === 'pending' ? 'being mapped' : 'mapped'}`;
      throw new DeviceError('E_STATE', name, problem, { hint: 'buffer.unmap() first' });
    }
    if (offset % 4 !== 0)
      throw memory.misuse(`memory from byte ${offset} on is misaligned: copies take multiples of 4`);
    if (size % 4 !== 0 || size === 0 || offset + size > buffer.size) {
      const problem = `${size} bytes from ${offset} on do not lie in a GPUBuffer of ${buffer.size}`;
      throw memory.misuse(size % 4 === 0 ? problem : `${problem} in whole words`);
    }
  }

  /** Has the device copy a word of it: refused where it is another device's, or destroyed. */
  async #probe(buffer: GPUBuffer, offset: number): Promise<void> {
    const { gpu, memory, facts } = this.#engine;
    const slab = memory.scratch(4);
    gpu.pushErrorScope('validation');
    let thrown: string | undefined;
    try {
      const encoder = gpu.createCommandEncoder();
      encoder.copyBufferToBuffer(buffer, offset, slab.gpu, 0, 4);
      gpu.queue.submit([encoder.finish()]);
    } catch (error) {
      thrown = String(error);
    }
    const refused = await gpu.popErrorScope().catch(() => null);
    memory.recycle(slab);
    const problem = refused?.message ?? thrown;
    if (problem === undefined) return;
    throw new DeviceError('E_VALIDATION', facts.name, `the device refuses the GPUBuffer: ${tidy(problem)}`, {
      hint: 'a buffer of the GPUDevice that Sinter computes on, not destroyed',
    });
  }
}
