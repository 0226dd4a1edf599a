// The memory of a GPUDevice: slabs are GPUBuffers, of storage, of scalars, and of staging for
// reads.

import { DeviceError } from '../../errors.ts';
import { BufferPools, type MemoryLimits, type MemoryLocation } from '../memory.ts';
import type { SlabPool, Slab, SlabSource } from '../slabs.ts';
import type { Timeline } from '../timeline.ts';
import type { GpuFailures } from './failures.ts';

export type GpuSlab = Slab<GPUBuffer>;
export type GpuPlace = MemoryLocation<GPUBuffer>;

/** Staging kept for the next reads. */
const STAGING_KEPT = 64 * 2 ** 20;

/** GPUBufferUsage's numbers; Node has no such global. */
const USAGE = { MAP_READ: 1, COPY_SRC: 4, COPY_DST: 8, UNIFORM: 64, STORAGE: 128 } as const;

export class GpuMemory extends BufferPools<GPUBuffer> {
  readonly uniform: SlabPool<GPUBuffer>;
  readonly #staging: SlabPool<GPUBuffer>;

  constructor(
    gpu: GPUDevice,
    device: string,
    limits: MemoryLimits,
    timeline: Timeline,
    failures: GpuFailures,
  ) {
    const { STORAGE, UNIFORM, COPY_SRC, COPY_DST, MAP_READ } = USAGE;
    const source = (usage: number): SlabSource<GPUBuffer> => ({
      create(size) {
        let made: GPUBuffer | undefined;
        const describe = (code: 'E_VALIDATION' | 'E_OOM', message: string): DeviceError =>
          new DeviceError(code, device, `a buffer of ${size} bytes: ${message}`);
        void failures.guard(failures.tick(), describe, () => {
          made = gpu.createBuffer({ size, usage });
        });
        if (made === undefined) throw describe('E_OOM', 'the device refused it');
        return made;
      },
      destroy: (buffer) => buffer.destroy(),
    });
    super(device, limits, timeline, source(STORAGE | COPY_SRC | COPY_DST));
    this.uniform = this.pool(source(UNIFORM | COPY_DST));
    this.#staging = this.pool(source(MAP_READ | COPY_DST));
  }

  /** A slab that can be mapped, for one read; give it back with `unstage`. */
  stage(bytes: number): GpuSlab {
    return this.#staging.acquire(this.sizeOf(bytes));
  }

  /**
   * Takes a slab back from a read; too many free ones, or one whose state is in doubt, are
   * destroyed.
   */
  unstage(slab: GpuSlab, sound: boolean): void {
    this.#staging.release(slab);
    this.#staging.trim(sound ? STAGING_KEPT : 0);
  }
}
