// The part of sharing with other code (sharing.ts) that is the same on all GPUs: handles are ranges of slabs
// of a pool, whichever API the slabs belong to.

import type { DeviceAllocation } from './device.ts';
import type { Failures } from './failures.ts';
import { GpuBuffer, type BufferPools, type MemoryLocation } from './memory.ts';
import type { NativeDevice, NativeMemory, Sharing } from './sharing.ts';
import type { Timeline } from './timeline.ts';

/** What a GPU's device is made of, as far as sharing needs it. */
export interface Grounds<Gpu> {
  readonly memory: BufferPools<Gpu>;
  readonly failures: Failures;
  readonly timeline: Timeline;
}

export abstract class GpuSharing<Gpu> implements Sharing {
  readonly native: NativeDevice;
  /**
   * Of slabs. `minStorageBufferOffsetAlignment` is 256 at most, and so does CUDA's driver align
   * allocations.
   */
  readonly alignment = 256;
  readonly queues = 1;
  readonly #grounds: Grounds<Gpu>;

  protected constructor(native: NativeDevice, grounds: Grounds<Gpu>) {
    this.native = native;
    this.#grounds = grounds;
  }

  abstract wrap(memory: NativeMemory, ended: () => void): Promise<DeviceAllocation>;
  abstract place(buffer: DeviceAllocation): NativeMemory;
  abstract writeProblem(buffer: DeviceAllocation): string | undefined;
  abstract copy(from: DeviceAllocation, to: DeviceAllocation, bytes: number): void;

  part(buffer: DeviceAllocation, offset: number, bytes: number): DeviceAllocation {
    return this.#own(buffer).part(this.#grounds.memory, offset, bytes);
  }

  room(buffer: DeviceAllocation): number {
    const { slab, offset } = this.placeOf(buffer);
    return slab.bytes - offset;
  }

  submitted(): Promise<void> {
    this.#grounds.failures.assertAlive();
    return this.#grounds.timeline.drained();
  }

  trim(keep: number): void {
    this.#grounds.memory.shrink(keep);
  }

  keepAtMost(bytes: number): void {
    this.#grounds.memory.keepAtMost(bytes);
  }

  /** Where a buffer of this device lies; E_VALIDATION for one of another's. */
  protected placeOf(buffer: DeviceAllocation): MemoryLocation<Gpu> {
    return this.#own(buffer).place(this.#grounds.memory);
  }

  #own(buffer: DeviceAllocation): GpuBuffer<Gpu> {
    const { failures, memory } = this.#grounds;
    failures.assertAlive();
    if (buffer instanceof GpuBuffer) return buffer as GpuBuffer<Gpu>;
    throw memory.misuse('a buffer of another device was used');
  }
}
