// Shuffling of streams, whose length is not known: a buffer of items, of which a random one leaves
// when the next comes.

import * as arg from '../ir/arguments.ts';
import { aSource, type Dataset, type Stream } from './dataset.ts';
import { itemsOf } from './combine.ts';
import { aSeed, Draws, seedOf, type Seed } from './draws.ts';

export interface ShuffleOptions {
  /** How many items are held; 1000 by default. */
  readonly buffer?: number;
  /** Of the order; drawn from the generator that `manualSeed` seeds by default. */
  readonly seed?: Seed;
}

const takesShuffle = arg.takes<
  (from: Dataset<unknown> | Stream<unknown>, options?: ShuffleOptions) => unknown
>(['the stream', aSource], ['options', arg.options<ShuffleOptions>({ buffer: arg.count(1), seed: aSeed })]);

/**
 * The items of a stream in a random order, another at each iteration: each is drawn from the next
 * `buffer` items, so items move forward by less than that.
 */
export function shuffle<T>(from: Dataset<T> | Stream<T>, options: ShuffleOptions = {}): AsyncIterable<T> {
  takesShuffle('shuffle', from as Stream<unknown>, options);
  const { buffer = 1000 } = options;
  const seed = seedOf(options.seed);
  let epoch = 0;
  return {
    async *[Symbol.asyncIterator]() {
      const draws = new Draws(seed, epoch++);
      const held: T[] = [];
      for await (const item of itemsOf(from)) {
        if (held.length < buffer) {
          held.push(item);
          continue;
        }
        const at = draws.below(held.length);
        yield held[at] as T;
        held[at] = item;
      }
      while (held.length > 0) {
        const at = draws.below(held.length);
        yield held[at] as T;
        held[at] = held.at(-1) as T;
        held.pop();
      }
    },
  };
}
