// Keeps what was prepared for the sets of buffers that a program was last run with, so that a loop
// which swaps two or three generations of its state prepares nothing again. A set is found again if
// all buffers and the program's arenas lie where they lay.

import type { Arrangement } from './layout.ts';
import type { GpuBuffer, BufferPools, MemoryLocation } from './memory.ts';
import type { Slab } from './slabs.ts';
import type { Scratch } from './scratch.ts';

/** The part of a plan that is compared to find it again. */
export interface FittedPlan<Gpu> {
  readonly arrangement: Arrangement<Gpu>;
  readonly arenas: readonly Slab<Gpu>[];
}

/** Sets remembered. */
const planLimit = 4;

export class Plans<Gpu, Plan extends FittedPlan<Gpu>> {
  readonly #memory: BufferPools<Gpu>;
  readonly #scratch: Scratch<Gpu>;
  /** The one used last comes first. */
  readonly #plans: Plan[] = [];

  constructor(memory: BufferPools<Gpu>, scratch: Scratch<Gpu>) {
    this.#memory = memory;
    this.#scratch = scratch;
  }

  [Symbol.iterator](): Iterator<Plan> {
    return this.#plans[Symbol.iterator]();
  }

  /** Where these buffers were found to lie before, if nothing moved since. */
  arrangementOf(given: readonly GpuBuffer<Gpu>[]): Arrangement<Gpu> | undefined {
    const known = this.#plans.find(({ arrangement: { places, lasting } }) => {
      return lasting && given.every((buffer, i) => isSame(buffer.place(this.#memory), places[i]!));
    });
    return known?.arrangement;
  }

  /** The plan for these places and the arenas as they are now. */
  known(arrangement: Arrangement<Gpu>): Plan | undefined {
    const plans = this.#plans;
    const at = plans.findIndex((plan) => {
      const { places } = plan.arrangement;
      const same =
        plan.arrangement === arrangement || arrangement.places.every((place, i) => isSame(place, places[i]!));
      return same && plan.arenas.every((slab, arena) => slab === this.#scratch.slab(arena));
    });
    if (at > 0) plans.unshift(...plans.splice(at, 1));
    return at < 0 ? undefined : plans[0];
  }

  /** Keeps a plan; gives the one that is evicted for it, if any. */
  add(plan: Plan): Plan | undefined {
    const last = this.#plans.length === planLimit ? this.#plans.pop() : undefined;
    this.#plans.unshift(plan);
    return last;
  }

  clear(): void {
    this.#plans.length = 0;
  }
}

function isSame<Gpu>(a: MemoryLocation<Gpu>, b: MemoryLocation<Gpu>): boolean {
  return a.slab === b.slab && a.offset === b.offset;
}
