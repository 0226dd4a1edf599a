// The scalars of a program's runs. Each run's words wait in page-locked memory until the GPU has
// copied them into the program's scalar block, so a run under way never sees those of the next one.
// Equal words stay where they are.

import type { Slab } from '../slabs.ts';
import type { Fences } from './fences.ts';
import type { Pinned, Staging } from './staging.ts';

interface Slot {
  readonly piece: Slab<Pinned>;
  readonly words: Int32Array;
  /** The GPU may copy from it until then. */
  epoch: number;
}

export class ScalarBlocks {
  readonly #staging: Staging;
  readonly #fences: Fences;
  readonly #count: number;
  /** The one used longest ago comes first. */
  readonly #slots: Slot[] = [];

  constructor(staging: Staging, fences: Fences, count: number) {
    this.#staging = staging;
    this.#fences = fences;
    this.#count = count;
  }

  /** The pinned address of the words for the next run; `used` must follow. */
  place(words: Int32Array): number {
    const slot = this.#slots.at(-1);
    if (slot !== undefined && slot.words.every((word, i) => word === words[i])) return slot.piece.gpu.address;
    const free = this.#free();
    free.words.set(words);
    this.#slots.push(free);
    return free.piece.gpu.address;
  }

  /** The run was queued, and is done after the epoch. */
  used(epoch: number): void {
    this.#slots.at(-1)!.epoch = epoch;
  }

  destroy(): void {
    for (const { piece, epoch } of this.#slots) this.#staging.release(piece, epoch);
    this.#slots.length = 0;
  }

  #free(): Slot {
    const oldest = this.#slots[0];
    if (oldest !== undefined && this.#fences.isDone(oldest.epoch)) return this.#slots.shift()!;
    const piece = this.#staging.acquire(4 * this.#count);
    const { bytes } = piece.gpu;
    return { piece, words: new Int32Array(bytes.buffer, bytes.byteOffset, this.#count), epoch: 0 };
  }
}
