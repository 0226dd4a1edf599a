// Memory of loops. The values that an iteration passes to the next lie in arenas that hold one value at a
// time, because the kernels of an iteration read some of these values and write others, and WebGPU forbids
// binding one buffer for both. For the same reason, intermediates of an iteration have other arenas than
// those around the loop. Loops that do not need them at the same time share such arenas.

import type { Node } from '../../ir/graph.ts';
import type { ArenaBlock } from './arena.ts';

/** What a loop needs memory for. */
export interface LoopNeeds {
  readonly held: readonly {
    readonly result: Node | undefined;
    readonly spare: Node;
    readonly other: Node | undefined;
  }[];
  /** Bytes of each arena of its iterations. */
  readonly arenas: readonly number[];
}

/** Where the memory of a loop is. */
export interface LoopPlaces {
  /** Stands for the buffer of each value that turns hand on: its result, or else the spare. */
  readonly homes: readonly Node[];
  /** Which arenas are those of its iterations. */
  readonly arenas: readonly number[];
}

type Key = Node | string;

/** Values that share their arena with none that lives at the same time. */
export class Solos {
  readonly #entries = new Map<Key, { readonly bytes: number; readonly from: number; readonly to: number }>();

  /** A value in use from one step to another, both included. */
  add(key: Key, bytes: number, from: number, to: number): void {
    this.#entries.set(key, { bytes, from, to });
  }

  has(key: Key): boolean {
    return this.#entries.has(key);
  }

  get keys(): Iterable<Key> {
    return this.#entries.keys();
  }

  get blocks(): ArenaBlock[] {
    return Array.from(this.#entries.values(), ({ bytes, from, to }) => {
      return { bytes, extents: [{ offset: 0, bytes, from, to }] };
    });
  }

  /** Puts each value into an arena behind those there are: the largest first, where it fits best. */
  place(before: readonly number[]): { sizes: readonly number[]; arenaOf: (key: Key) => number } {
    const arenas: { readonly bytes: number; readonly taken: { from: number; to: number }[] }[] = [];
    const places = new Map<Key, number>();
    const entries = [...this.#entries].sort(([, a], [, b]) => b.bytes - a.bytes || a.from - b.from);
    for (const [key, { bytes, from, to }] of entries) {
      // Arenas come from the largest to the smallest: the last free one fits best.
      let best = arenas.findLastIndex(({ taken }) => taken.every((one) => one.to < from || to < one.from));
      if (best < 0) best = arenas.push({ bytes, taken: [] }) - 1;
      arenas[best]!.taken.push({ from, to });
      places.set(key, before.length + best);
    }
    return {
      sizes: [...before, ...arenas.map(({ bytes }) => bytes)],
      arenaOf: (key) => places.get(key)!,
    };
  }
}
