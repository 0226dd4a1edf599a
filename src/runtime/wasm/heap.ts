// Memory of a WebAssembly device: one WebAssembly.Memory that grows, and the ranges of it that are
// free. A freed range is merged with free neighbours, so that large ranges form again.

import { DeviceError } from '../../errors.ts';
import type { SlabSource } from '../slabs.ts';

/**
 * Bytes of a page of WebAssembly memory, and as many pages as 32 bits reach but for one: older
 * engines have no view of all.
 */
const page = 65_536;
const mostPages = 65_535;
/** Bytes that all buffers together may take. */
export const heapBytes: number = (mostPages - 1) * page;
/** Ranges begin at multiples of this, as buffers of programs do in their arenas. */
const alignment = 256;

interface Free {
  readonly start: number;
  readonly end: number;
}

export class Heap implements SlabSource<number> {
  #memory: WebAssembly.Memory | undefined;
  /** The maximum of pages that the engine has accepted. */
  readonly #pages: number;
  readonly #device: string;
  readonly #sizes = new Map<number, number>();
  /** Free ranges by address. The first bytes are never allocated: address 0 means no address. */
  #free: Free[] = [];
  #end = alignment;
  #view: Uint8Array;

  /** `shared`: several threads use the memory, which costs stores some speed in older engines. */
  constructor(device: string, shared = false) {
    this.#device = device;
    [this.#memory, this.#pages] = reserve(device, shared);
    this.#view = new Uint8Array(this.memory.buffer);
  }

  get memory(): WebAssembly.Memory {
    if (this.#memory !== undefined) return this.#memory;
    throw new DeviceError('E_DEVICE_LOST', this.#device, 'the device was destroyed');
  }

  /** Lets go of the memory. */
  release(): void {
    this.#memory = undefined;
    this.#view = new Uint8Array();
  }

  /** Bytes that the memory may grow to. */
  get room(): number {
    return this.#pages * page;
  }

  /** All bytes; growing detaches old views, so callers must not keep this one. */
  get bytes(): Uint8Array {
    if (this.#view.buffer !== this.memory.buffer) this.#view = new Uint8Array(this.memory.buffer);
    return this.#view;
  }

  /**
   * The address of so many bytes: the smallest free range that holds them, else the memory grows.
   */
  create(bytes: number): number {
    const size = Math.ceil(bytes / alignment) * alignment;
    let best = -1;
    this.#free.forEach(({ start, end }, i) => {
      const room = end - start;
      const known = this.#free[best];
      if (room >= size && (known === undefined || room < known.end - known.start)) best = i;
    });
    const range = this.#free[best];
    const start = range === undefined ? this.#grow(size) : range.start;
    if (range !== undefined) {
      const rest = { start: range.start + size, end: range.end };
      this.#free.splice(best, 1, ...(rest.start < rest.end ? [rest] : []));
    }
    this.#sizes.set(start, size);
    return start;
  }

  destroy(start: number): void {
    const size = this.#sizes.get(start);
    if (size === undefined) return;
    this.#sizes.delete(start);
    let [low, high] = [start, start + size];
    this.#free = this.#free.filter((range) => {
      if (range.end === low) low = range.start;
      else if (range.start === high) high = range.end;
      else return true;
      return false;
    });
    if (high === this.#end) this.#end = low;
    else this.#free.push({ start: low, end: high });
  }

  #grow(size: number): number {
    const start = this.#end;
    const missing = Math.ceil((start + size - this.memory.buffer.byteLength) / page);
    if (missing > 0) {
      // Grows by half, so that growing stays rare; by the bytes needed if the engine refuses that.
      const held = this.memory.buffer.byteLength / page;
      const generous = Math.min(this.#pages - held, Math.max(missing, Math.ceil(held / 2)));
      if (!this.#tryToGrow(generous) && !this.#tryToGrow(missing)) {
        const problem = `${size} bytes were asked for beyond ${start}: WebAssembly memory has no room for them`;
        throw new DeviceError('E_OOM', this.#device, problem, {
          hint: 'dispose of tensors you no longer need, or take smaller batches: 4 GiB are the most',
        });
      }
    }
    this.#end = start + size;
    return start;
  }

  #tryToGrow(pages: number): boolean {
    if (pages <= 0) return false;
    try {
      this.memory.grow(pages);
      return true;
    } catch {
      return false;
    }
  }
}

/**
 * Memory that grows as far as the engine lets it: small machines have less than 4 GiB of addresses
 * to spare.
 */
function reserve(device: string, shared: boolean): [memory: WebAssembly.Memory, pages: number] {
  for (let maximum = mostPages; maximum >= 1024; maximum = Math.floor(maximum / 2)) {
    try {
      return [new WebAssembly.Memory({ initial: 16, maximum, shared }), maximum];
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
  }
  throw new DeviceError('E_OOM', device, 'there is not room for a WebAssembly memory of 64 MiB');
}
