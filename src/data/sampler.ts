// Samplers: which items of a dataset come in which order. What a sampler gives depends on its seed
// and the number of the epoch alone, so that an epoch can be taken up again in its middle.

import { TensorError, showValue } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { anEpoch, aSeed, Draws, permutation, seedOf, type Seed } from './draws.ts';

/** An order of items for each epoch. */
export interface Sampler {
  /** How many indices an epoch has. */
  readonly length: number;
  /** The indices of an epoch: the same at each call. */
  indices(epoch: number): Iterable<number>;
}

/** An order of batches for each epoch. */
export interface BatchSampler {
  /** How many batches an epoch has. */
  readonly length: number;
  /** The indices of each batch of an epoch: the same at each call. */
  batches(epoch: number): Iterable<readonly number[]>;
}

function has(value: unknown, method: string): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { length, [method]: made } = value as Record<string, unknown>;
  return Number.isSafeInteger(length) && typeof made === 'function';
}

/** A sampler. */
export const aSampler: arg.Kind<Sampler> = arg.kind(
  'a sampler, with `length` and `indices(epoch)`',
  (value) => has(value, 'indices'),
);
/** A sampler of batches. */
export const aBatchSampler: arg.Kind<BatchSampler> = arg.kind(
  'a sampler of batches, with `length` and `batches(epoch)`',
  (value) => has(value, 'batches'),
);

/** As many items as random words can tell apart. */
const mostItems = 2 ** 32;
const aLength: arg.Kind<number> = arg.kind(
  'an integer from 0 to 2³²',
  (value) => arg.count(0).accepts(value) && (value as number) <= mostItems,
);

/** Refuses epochs that are none before anything is made of them. */
function sampler(op: string, length: number, indices: (epoch: number) => Iterable<number>): Sampler {
  return {
    length,
    indices: (epoch) => {
      if (!anEpoch.accepts(epoch)) anEpoch.refuse(op, 'the epoch', epoch);
      return indices(epoch);
    },
  };
}

const takesSequential = arg.takes<typeof sequentialSampler>(['the length', aLength]);

/** Every item, in order. */
export function sequentialSampler(length: number): Sampler {
  takesSequential('sequentialSampler', length);
  return sampler('sequentialSampler', length, function* () {
    for (let i = 0; i < length; i++) yield i;
  });
}

export interface RandomSamplerOptions {
  /** Of the order; drawn from the generator that `manualSeed` seeds by default. */
  readonly seed?: Seed;
  /** Whether an item may come twice; false by default. */
  readonly replacement?: boolean;
  /** How many are drawn; as many as there are items by default. */
  readonly count?: number;
}

const takesRandom = arg.takes<typeof randomSampler>(
  ['the length', aLength],
  ['options', arg.options<RandomSamplerOptions>({ seed: aSeed, replacement: arg.flag, count: arg.count(0) })],
);

/**
 * Items in a random order, another in each epoch. More than there are, without replacement, come in
 * one random order after the other.
 */
export function randomSampler(length: number, options: RandomSamplerOptions = {}): Sampler {
  takesRandom('randomSampler', length, options);
  const { replacement = false, count = length } = options;
  if (length === 0 && count > 0)
    throw new TensorError('E_VALUE', 'randomSampler', `${count} items cannot be drawn from an empty dataset`);
  const seed = seedOf(options.seed);
  return sampler('randomSampler', count, function* (epoch) {
    const draws = new Draws(seed, epoch);
    if (replacement) {
      for (let i = 0; i < count; i++) yield draws.below(length);
      return;
    }
    for (let left = count; left > 0; left -= length) {
      const order = permutation(length, draws);
      yield* left < length ? order.subarray(0, left) : order;
    }
  });
}

const places: arg.Kind<readonly number[]> = arg.listOf(arg.count(0));

export interface SeedOptions {
  /** Of the order; drawn from the generator that `manualSeed` seeds by default. */
  readonly seed?: Seed;
}

const seedTable: arg.Table<SeedOptions> = { seed: aSeed };
const takesSubset = arg.takes<typeof subsetRandomSampler>(
  ['the indices', places],
  ['options', arg.options<SeedOptions>(seedTable)],
);

/** These items in a random order, another in each epoch. */
export function subsetRandomSampler(indices: readonly number[], options: SeedOptions = {}): Sampler {
  takesSubset('subsetRandomSampler', indices, options);
  const [chosen, seed] = [[...indices], seedOf(options.seed)];
  return sampler('subsetRandomSampler', chosen.length, function* (epoch) {
    for (const at of permutation(chosen.length, new Draws(seed, epoch))) yield chosen[at] as number;
  });
}

export interface WeightedSamplerOptions extends SeedOptions {
  /** Whether an item may come twice; true by default. */
  readonly replacement?: boolean;
  /** How many are drawn; as many as there are weights by default. */
  readonly count?: number;
}

const weightList: arg.Kind<ArrayLike<number>> = arg.kind(
  'an array of numbers of at least 0',
  (value) => arg.isNumberList(value) && Array.from(value).every((at) => Number.isFinite(at) && at >= 0),
);
const takesWeighted = arg.takes<typeof weightedSampler>(
  ['the weights', weightList],
  [
    'options',
    arg.options<WeightedSamplerOptions>({ ...seedTable, replacement: arg.flag, count: arg.count(0) }),
  ],
);

/**
 * Items drawn with probabilities in proportion to their weights. Without replacement each draw is
 * among those that are left (by exponential keys: Efraimidis and Spirakis, 2006).
 */
export function weightedSampler(weights: ArrayLike<number>, options: WeightedSamplerOptions = {}): Sampler {
  takesWeighted('weightedSampler', weights, options);
  const list = Float64Array.from(weights);
  const { replacement = true, count = list.length } = options;
  const there = list.reduce((sum, weight) => sum + (weight > 0 ? 1 : 0), 0);
  if (count > 0 && (there === 0 || (!replacement && count > there))) {
    const problem = `${count} items cannot be drawn: ${there} of ${list.length} weights are above 0`;
    throw new TensorError('E_VALUE', 'weightedSampler', problem);
  }
  const seed = seedOf(options.seed);
  return sampler('weightedSampler', count, (epoch) => {
    const draws = new Draws(seed, epoch);
    return replacement ? drawn(list, count, draws) : drawnOnce(list, count, draws);
  });
}

function* drawn(weights: Float64Array, count: number, draws: Draws): Generator<number> {
  let total = 0;
  const upTo = weights.map((weight) => (total += weight));
  for (let i = 0; i < count; i++) {
    const wanted = draws.share() * total;
    // The first whose running sum is above; weights of 0 have the sum of the one before.
    let [low, high] = [0, upTo.length - 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((upTo[middle] as number) > wanted) high = middle;
      else low = middle + 1;
    }
    // The product above may have been rounded up to the total, behind which nothing is.
    while (weights[low] === 0) low--;
    yield low;
  }
}

function drawnOnce(weights: Float64Array, count: number, draws: Draws): number[] {
  const keys = weights.map((weight) => {
    const share = draws.share();
    return weight > 0 ? -Math.log(share) / weight : Infinity;
  });
  const order = Array.from(keys.keys()).sort((a, b) => (keys[a] as number) - (keys[b] as number));
  return order.slice(0, count);
}

export interface ShardOptions {
  /** Which of the shards, from 0. */
  readonly shard: number;
  /** How many there are. */
  readonly shards: number;
  /**
   * Whether items beyond the last whole round are left out; by default the first ones come again, so
   * that every shard has as many.
   */
  readonly dropLast?: boolean;
}

const takesSharded = arg.takes<typeof shardedSampler>(
  ['the sampler', aSampler],
  [
    'options',
    arg.settings<ShardOptions>({ shard: arg.count(0), shards: arg.count(1), dropLast: arg.flag }, [
      'shard',
      'shards',
    ]),
  ],
);

/**
 * One of several equal parts of what a sampler gives, for processes that share an epoch: all of them
 * need the same sampler with the same seed.
 */
export function shardedSampler(inner: Sampler, options: ShardOptions): Sampler {
  takesSharded('shardedSampler', inner, options);
  const { shard, shards, dropLast = false } = options;
  if (shard >= shards)
    throw new TensorError('E_VALUE', 'shardedSampler', `there is no shard ${shard} of ${shards}`);
  const length = dropLast ? Math.floor(inner.length / shards) : Math.ceil(inner.length / shards);
  return sampler('shardedSampler', length, function* (epoch) {
    const all = Array.from(inner.indices(epoch));
    for (let i = 0; i < length; i++) yield all[(shard + i * shards) % all.length] as number;
  });
}

export interface BatchOptions {
  readonly batchSize: number;
  /** Whether a last batch of fewer items is left out; false by default. */
  readonly dropLast?: boolean;
}

const takesBatches = arg.takes<typeof batchSampler>(
  ['the sampler', aSampler],
  ['options', arg.settings<BatchOptions>({ batchSize: arg.count(1), dropLast: arg.flag }, ['batchSize'])],
);

/** The indices of a sampler in batches. */
export function batchSampler(inner: Sampler, options: BatchOptions): BatchSampler {
  takesBatches('batchSampler', inner, options);
  const { batchSize, dropLast = false } = options;
  const count = inner.length / batchSize;
  return {
    length: dropLast ? Math.floor(count) : Math.ceil(count),
    batches: function* (epoch) {
      if (!anEpoch.accepts(epoch)) anEpoch.refuse('batchSampler', 'the epoch', epoch);
      let batch: number[] = [];
      for (const index of inner.indices(epoch)) {
        if (!Number.isSafeInteger(index))
          throw new TensorError('E_VALUE', 'batchSampler', `the sampler gave ${showValue(index)}`);
        batch.push(index);
        if (batch.length < batchSize) continue;
        yield batch;
        batch = [];
      }
      if (batch.length > 0 && !dropLast) yield batch;
    },
  };
}
