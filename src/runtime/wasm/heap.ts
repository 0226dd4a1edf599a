// Memory of a WebAssembly device: one WebAssembly.Memory that grows, and the ranges of it that are free. What is freed is joined with
// its neighbours, so that large ranges come back.

import { DeviceError } from '../../errors.ts';
import type { Source } from '../memory.ts';

/** Bytes of a page of WebAssembly memory, and as many pages as 32 bits reach. */
const page = 65_536;
const mostPages = 65_536;
/** Ranges begin at multiples of this, as buffers of programs do in their arenas. */
const alignment = 256;

interface Free {
  readonly start: number;
  readonly end: number;
}

export class Heap implements Source<number> {
  readonly memory: WebAssembly.Memory;
  readonly #device: string;
  readonly #sizes = new Map<number, number>();
  /** Free ranges by address. The first bytes are nobody's: address 0 stands for nothing. */
  #free: Free[] = [];
  #end = alignment;
  #view: Uint8Array;

  constructor(device: string) {
    this.#device = device;
    this.memory = new WebAssembly.Memory({ initial: 16, maximum: mostPages });
    this.#view = new Uint8Array(this.memory.buffer);
  }

  /** All bytes; growing leaves old views empty, so it is asked for anew. */
  get bytes(): Uint8Array {
    if (this.#view.buffer !== this.memory.buffer) this.#view = new Uint8Array(this.memory.buffer);
    return this.#view;
  }

  /** The address of so many bytes: the smallest free range that holds them, else the memory grows. */
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
      // Half as much again, so that growing stays rare; what is asked for where there is no more.
      const held = this.memory.buffer.byteLength / page;
      const generous = Math.min(mostPages - held, Math.max(missing, Math.ceil(held / 2)));
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
