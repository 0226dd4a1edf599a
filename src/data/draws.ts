// Random integers on the host, for shuffling and sampling: Philox 4x32-10 keyed by a seed, with the
// epoch in the counter, so that what an epoch draws depends on nothing that was drawn before.

import * as arg from '../ir/arguments.ts';
import { philox4x32 } from '../ir/interpret/random.ts';
import { currentSeed, split, takeCounts } from '../tensor/generator.ts';

/** A seed of a sampler: any integer. */
export type Seed = number | bigint;

export const aSeed: arg.Kind<Seed> = arg.kind(
  'an integer',
  (value) => typeof value === 'bigint' || Number.isSafeInteger(value),
);

/** A number of an epoch. */
export const anEpoch: arg.Kind<number> = arg.count(0);

/** The seed that is given, else one drawn from the generator that `manualSeed` seeds. */
export function seedOf(seed: Seed | undefined): bigint {
  if (seed !== undefined) return BigInt.asUintN(64, BigInt(seed));
  const [low, high] = split(takeCounts(1n));
  const [a, b] = philox4x32([low, high, 0x5eed, 0], split(currentSeed()) as [number, number]);
  return (BigInt(b) << 32n) | BigInt(a);
}

/** The random words of one epoch of one seed, in order. */
export class Draws {
  readonly #key: readonly [number, number];
  readonly #epoch: number;
  #counter = 0;
  #words: readonly number[] = [];
  #next = 0;

  constructor(seed: bigint, epoch: number) {
    this.#key = split(seed);
    this.#epoch = epoch;
  }

  /** 32 random bits. */
  word(): number {
    if (this.#next === this.#words.length) {
      const at = this.#counter++;
      const [epoch, above] = [this.#epoch >>> 0, Math.floor(this.#epoch / 2 ** 32)];
      this.#words = philox4x32([at >>> 0, Math.floor(at / 2 ** 32), epoch, above], this.#key);
      this.#next = 0;
    }
    return this.#words[this.#next++] as number;
  }

  /** A number in (0, 1), one of 2⁵³ equally spaced. */
  share(): number {
    const [high, low] = [this.word() >>> 5, this.word() >>> 6];
    return (high * 2 ** 26 + low + 0.5) / 2 ** 53;
  }

  /** An integer from 0 to before `n`, each equally likely; n is at most 2³². */
  below(n: number): number {
    // Words above the last whole multiple of n would make small integers likelier.
    const limit = 2 ** 32 - (2 ** 32 % n);
    for (;;) {
      const word = this.word();
      if (word < limit) return word % n;
    }
  }
}

/** The integers below `n` in a random order (Fisher and Yates; Durstenfeld, 1964). */
export function permutation(n: number, draws: Draws): Uint32Array {
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1; i > 0; i--) {
    const other = draws.below(i + 1);
    const held = order[i] as number;
    order[i] = order[other] as number;
    order[other] = held;
  }
  return order;
}
