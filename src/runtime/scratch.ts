// Scratch memory, shared by all programs of a device: runs follow each other in order, so arena `i`
// of every program may be one buffer, as large as the largest asks for. It grows and shrinks as
// programs are loaded and destroyed.

import type { BufferPools } from './memory.ts';
import type { Slab } from './slabs.ts';

/** The shared arenas of one device. */
export class Scratch<Gpu> {
  readonly #memory: BufferPools<Gpu>;
  readonly #claims = new Set<readonly number[]>();
  readonly #slabs: (Slab<Gpu> | undefined)[] = [];

  constructor(memory: BufferPools<Gpu>) {
    this.#memory = memory;
  }

  /**
   * Makes room for a program's arenas, until `release` with the same list. Throws E_OOM or E_LIMIT.
   */
  claim(arenas: readonly number[]): void {
    arenas.forEach((bytes, i) => {
      const old = this.#slabs[i];
      if ((old?.bytes ?? 0) >= bytes) return;
      // The new slab is allocated first: if that fails, the other programs keep the old one.
      this.#slabs[i] = this.#memory.scratch(bytes);
      if (old !== undefined) this.#memory.recycle(old);
    });
    this.#claims.add(arenas);
  }

  release(arenas: readonly number[]): void {
    if (!this.#claims.delete(arenas)) return;
    this.#slabs.forEach((slab, i) => {
      let largest = 0;
      for (const claim of this.#claims) largest = Math.max(largest, claim[i] ?? 0);
      if (slab === undefined || largest * 2 > slab.bytes) return;
      this.#slabs[i] = undefined;
      this.#memory.recycle(slab);
      if (largest > 0) this.#slabs[i] = this.#memory.scratch(largest);
    });
  }

  /**
   * The current slab of arena `i`; runs read it when they are encoded, not when they are queued.
   */
  slab(i: number): Slab<Gpu> {
    return this.#slabs[i]!;
  }
}
