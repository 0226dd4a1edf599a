// Where a device's slabs come from: the driver's stream-ordered pool, whose frees and allocations
// keep the order of the stream and stop nothing, or plain allocations on devices that lack it.

import { DeviceError } from '../../errors.ts';
import type { SlabSource } from '../slabs.ts';
import type { CudaContext } from './api/context.ts';

export class DeviceMemory implements SlabSource<number> {
  readonly #context: CudaContext;
  /** The driver's pool; 0 for plain allocations. */
  readonly #pool: number;
  readonly #live = new Set<number>();

  constructor(context: CudaContext, hasPools: boolean) {
    this.#context = context;
    this.#pool = hasPools ? this.#openPool() : 0;
  }

  create(bytes: number): number {
    try {
      return this.#take(bytes);
    } catch (error) {
      if (!(error instanceof DeviceError && error.code === 'E_OOM')) throw error;
      // Memory that was freed in stream order returns to the driver only when the stream reaches
      // that point.
      this.#drain();
      return this.#take(bytes);
    }
  }

  destroy(address: number): void {
    if (!this.#live.delete(address) || this.#context.failures.lost) return;
    this.#give(address);
  }

  /** Frees everything; the stream must be idle. */
  close(): void {
    const { cu } = this.#context.driver;
    for (const address of this.#live) this.#give(address);
    this.#live.clear();
    if (this.#pool === 0) return;
    cu.cuStreamSynchronize(this.#context.stream);
    cu.cuMemPoolTrimTo(this.#pool, 0);
  }

  #give(address: number): void {
    const { driver, stream } = this.#context;
    this.#context.use();
    // Nothing is left to do where this fails; what made it fail shows with the next read.
    if (this.#pool === 0) driver.cu.cuMemFree_v2(address);
    else driver.cu.cuMemFreeAsync(address, stream);
  }

  #take(bytes: number): number {
    const { driver, stream } = this.#context;
    const { cu, cell } = driver;
    this.#context.use();
    const doing = `allocating ${bytes} bytes`;
    if (this.#pool === 0) {
      this.#context.check(cu.cuMemAlloc_v2(cell.address, bytes), 'cuMemAlloc_v2', doing);
    } else {
      this.#context.check(cu.cuMemAllocAsync(cell.address, bytes, stream), 'cuMemAllocAsync', doing);
    }
    const address = cell.number();
    this.#live.add(address);
    return address;
  }

  #drain(): void {
    const { driver, stream } = this.#context;
    const { cu } = driver;
    const doing = 'looking for memory that was freed';
    this.#context.check(cu.cuStreamSynchronize(stream), 'cuStreamSynchronize', doing);
    if (this.#pool !== 0) this.#context.check(cu.cuMemPoolTrimTo(this.#pool, 0), 'cuMemPoolTrimTo', doing);
  }

  #openPool(): number {
    const { driver, device } = this.#context;
    const { cu, cell } = driver;
    const result = cu.cuDeviceGetDefaultMemPool(cell.address, device);
    this.#context.check(result, 'cuDeviceGetDefaultMemPool', 'opening');
    const pool = cell.number();
    // By default freed memory goes back to the system at every synchronisation, and is mapped again
    // for the next slab.
    const RELEASE_THRESHOLD = 4;
    cell.set(Number.MAX_SAFE_INTEGER);
    const kept = cu.cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, cell.address);
    this.#context.check(kept, 'cuMemPoolSetAttribute', 'opening');
    return pool;
  }
}
