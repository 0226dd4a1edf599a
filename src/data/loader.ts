// DataLoader: batches of a dataset, in the order of a sampler, made a few ahead by this thread or by
// workers, and brought to the device before the loop asks for them.

import * as arg from '../ir/arguments.ts';
import { TensorError } from '../errors.ts';
import { upload } from '../tensor/values.ts';
import { Tensor } from '../tensor/tensor.ts';
import { collate, collated } from './collate.ts';
import { aSource, isDataset, iterate, type Dataset, type Stream } from './dataset.ts';
import { aSeed, seedOf, type Seed } from './draws.ts';
import type { Collated } from './item.ts';
import {
  aBatchSampler,
  aSampler,
  batchSampler,
  randomSampler,
  sequentialSampler,
  type BatchSampler,
  type Sampler,
} from './sampler.ts';
import { WorkerPool, type WorkerOptions } from './workers/pool.ts';

export interface LoaderOptions<T, B> {
  /** Items a batch; 1 by default. */
  readonly batchSize?: number;
  /** Whether each epoch has an order of its own, drawn from the seed; false by default. */
  readonly shuffle?: boolean;
  /** Of the order; drawn from the generator that `manualSeed` seeds by default. */
  readonly seed?: Seed;
  /** An order of your own; by default the one that `shuffle` asks for. */
  readonly sampler?: Sampler;
  /** Batches of your own; by default `batchSize` items of the sampler at a time. */
  readonly batchSampler?: BatchSampler;
  /** Whether a last batch of fewer items is left out; false by default. */
  readonly dropLast?: boolean;
  /** What makes a batch of items; `collate` by default. */
  readonly collate?: (items: readonly T[]) => B | Promise<B>;
  /** How many batches are made and brought to the device ahead of the loop; 2 by default. */
  readonly prefetch?: number;
  /** Threads that make the items; by default the loader's own thread makes them. */
  readonly workers?: WorkerOptions;
}

/** What the batches of one loop come from. */
interface Work<B> {
  readonly next: Next<B>;
  end(): Promise<void> | void;
  /** Whether the process has to stay for what is under way. */
  hold(needed: boolean): void;
}

/** An epoch, and how many of its batches a loop has been given. */
interface Place {
  readonly epoch: number;
  readonly batch: number;
}

/** Where a loader is: JSON. */
export interface LoaderState {
  readonly epoch: number;
  /** Batches of the epoch that its loop has been given. */
  readonly batch: number;
  /** Of the loader's own order; decimal. */
  readonly seed: string;
}

const aModule: arg.Kind<string | URL> = arg.kind(
  'the URL of a module',
  (value) => (typeof value === 'string' && value !== '') || value instanceof URL,
);
const workerOptions = arg.settings<WorkerOptions>(
  { count: arg.count(1), module: aModule, name: arg.text, data: arg.anything(), timeout: arg.positive },
  ['count', 'module'],
);
const takesLoader = arg.takes<
  (source: Dataset<unknown> | Stream<unknown>, options?: LoaderOptions<unknown, unknown>) => unknown
>(
  ['the dataset', aSource],
  [
    'options',
    arg.options<LoaderOptions<unknown, unknown>>({
      batchSize: arg.count(1),
      shuffle: arg.flag,
      seed: aSeed,
      sampler: aSampler,
      batchSampler: aBatchSampler,
      dropLast: arg.flag,
      collate: arg.callable(),
      prefetch: arg.count(0),
      workers: workerOptions,
    }),
  ],
);
const state = arg.settings<LoaderState>(
  {
    epoch: arg.count(0),
    batch: arg.count(0),
    seed: arg.kind('decimal digits', (value) => /^\d{1,20}$/.test(String(value))),
  },
  ['epoch', 'batch', 'seed'],
);

/** Batches of a dataset or of a stream: `for await (const batch of loader)`. */
export class DataLoader<T, B = Collated<T>> implements AsyncIterable<B> {
  readonly #source: Dataset<unknown> | Stream<unknown>;
  readonly #options: LoaderOptions<unknown, unknown>;
  readonly #collate: (items: readonly unknown[]) => B | Promise<B>;
  #seed: bigint;
  /** Where the last loop is, or has ended. */
  #at: Place = { epoch: 0, batch: 0 };
  /** Where the next loop begins. */
  #next: Place = this.#at;

  constructor(source: Dataset<T> | Stream<T>, options: LoaderOptions<T, B> = {}) {
    const given = options as LoaderOptions<unknown, unknown>;
    takesLoader('DataLoader', source, given);
    checkTogether(source, given);
    this.#source = source;
    this.#options = given;
    this.#collate = (given.collate ?? collate) as (items: readonly unknown[]) => B | Promise<B>;
    this.#seed = seedOf(options.seed);
  }

  /** How many batches an epoch has; undefined of a stream. */
  get length(): number | undefined {
    return this.#batches()?.length;
  }

  /** The number of the epoch that the last loop is in; the next one's, once it has come to its end. */
  get epoch(): number {
    return this.#at.epoch;
  }

  /** The next loop is of this epoch, from its start. By themselves loops are of one epoch after the other. */
  setEpoch(epoch: number): void {
    const kind = arg.count(0);
    if (!kind.accepts(epoch)) kind.refuse('setEpoch', 'the epoch', epoch);
    this.#at = this.#next = { epoch, batch: 0 };
  }

  /** Where the loader is, for `load`. */
  state(): LoaderState {
    return { ...this.#at, seed: String(this.#seed) };
  }

  /** The next loop goes on where the state was taken: with the batch after the last that was given. */
  load(from: LoaderState): void {
    if (!state.accepts(from)) state.refuse('load', 'the state', from);
    this.#at = this.#next = { epoch: from.epoch, batch: from.batch };
    this.#seed = BigInt.asUintN(64, BigInt(from.seed));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<B, undefined, undefined> {
    const { epoch, batch: skip } = this.#next;
    this.#next = { epoch: epoch + 1, batch: 0 };
    // Of several loops at once the state is the last one's.
    let at = (this.#at = { epoch, batch: skip });
    const move = (to: Place): void => {
      if (this.#at === at) this.#at = to;
      at = to;
    };
    const { next, end, hold } = this.#begin(epoch, skip);
    const batches = ahead(async () => brought(await next()), this.#options.prefetch ?? 2, end);
    try {
      for (;;) {
        hold(true);
        const result = await batches.next();
        hold(false);
        if (result.done === true) break;
        move({ epoch, batch: at.batch + 1 });
        yield result.value;
      }
    } finally {
      await batches.return(undefined);
    }
    move({ epoch: epoch + 1, batch: 0 });
    return undefined;
  }

  /** What a loop asks for batches, and ends. */
  #begin(epoch: number, skip: number): Work<B> {
    const { workers } = this.#options;
    const source = this.#source;
    const batches = this.#batches();
    if (batches === undefined) {
      const iterator = iterate(source as Stream<unknown>);
      // It is not waited for: a stream that never gives its next item would not end either.
      const end = (): void => void Promise.resolve(iterator.return?.()).catch(() => undefined);
      return { next: this.#ofStream(iterator, skip), end, hold: () => undefined };
    }
    const dataset = source as Dataset<unknown>;
    const pool = workers === undefined ? undefined : new WorkerPool(workers, dataset.length);
    return {
      next: this.#ofDataset(dataset, batches.batches(epoch), skip, pool),
      end: () => pool?.close(),
      hold: (needed) => pool?.hold(needed),
    };
  }

  /** The batches of an epoch; undefined of a stream. */
  #batches(): BatchSampler | undefined {
    const source = this.#source;
    if (!isDataset(source)) return undefined;
    const { batchSampler: given, shuffle = false, batchSize = 1, dropLast = false } = this.#options;
    if (given !== undefined) return given;
    const own = shuffle
      ? randomSampler(source.length, { seed: this.#seed })
      : sequentialSampler(source.length);
    return batchSampler(this.#options.sampler ?? own, { batchSize, dropLast });
  }

  #ofDataset(
    dataset: Dataset<unknown>,
    batches: Iterable<readonly number[]>,
    skip: number,
    pool: WorkerPool | undefined,
  ): Next<B> {
    const iterator = batches[Symbol.iterator]();
    for (let i = 0; i < skip; i++) iterator.next();
    const own = this.#options.collate;
    return async () => {
      const { done, value: indices } = iterator.next();
      if (done === true) return { done: true, value: undefined };
      if (pool !== undefined) {
        const made = await pool.load(indices, own !== undefined);
        if ('batch' in made) return { done: false, value: collated(made.batch) as B };
        return { done: false, value: await this.#collate(made.items) };
      }
      if (own === undefined && dataset.batch !== undefined)
        return { done: false, value: (await dataset.batch(indices)) as B };
      const items = await Promise.all(indices.map((index) => dataset.get(index)));
      return { done: false, value: await this.#collate(items) };
    };
  }

  #ofStream(iterator: Iterator<unknown> | AsyncIterator<unknown>, skip: number): Next<B> {
    const { batchSize = 1, dropLast = false } = this.#options;
    let [left, isOver] = [skip, false];
    return inTurn(async () => {
      for (;;) {
        const items: unknown[] = [];
        while (!isOver && items.length < batchSize) {
          const { done, value } = await iterator.next();
          if (done === true) isOver = true;
          else items.push(value);
        }
        if (items.length === 0 || (dropLast && items.length < batchSize))
          return { done: true, value: undefined };
        if (left === 0) return { done: false, value: await this.#collate(items) };
        left -= 1;
      }
    });
  }
}

/** Throws E_VALUE where options contradict each other, or the source. */
function checkTogether(source: unknown, options: LoaderOptions<unknown, unknown>): void {
  const given = (names: readonly (keyof LoaderOptions<unknown, unknown>)[]): string[] =>
    names.filter((name) => options[name] !== undefined && options[name] !== false);
  const refuse = (what: string, names: readonly string[], hint?: string): void => {
    if (names.length > 0)
      throw new TensorError('E_VALUE', 'DataLoader', `${what}: ${names.join(', ')}`, hint);
  };
  if (!isDataset(source)) {
    const hint = 'a dataset with length and get(index), or shuffle(stream, { buffer })';
    refuse(
      'the order of a stream cannot be changed',
      given(['shuffle', 'sampler', 'batchSampler', 'workers']),
      hint,
    );
  }
  if (options.sampler !== undefined) refuse('the sampler already sets the order', given(['shuffle']));
  if (options.batchSampler !== undefined)
    refuse('the batchSampler already sets it', given(['batchSize', 'shuffle', 'sampler', 'dropLast']));
}

/** The batch, with what the host has of its tensors on the way to the device. */
async function brought<B>(result: IteratorResult<B, undefined>): Promise<IteratorResult<B, undefined>> {
  if (result.done !== true) await upload(tensorsIn(result.value));
  return result;
}

/** The tensors of a batch of any make. */
function tensorsIn(batch: unknown): Tensor[] {
  if (batch instanceof Tensor) return [batch];
  if (Array.isArray(batch)) return batch.flatMap(tensorsIn);
  return arg.isPlainObject(batch) ? Object.values(batch).flatMap(tensorsIn) : [];
}

// Work that is begun before its result is asked for, a few results ahead, and ends with whoever
// asks.

/** The next result, or that there is none. What is asked for at once may be worked on at once. */
type Next<T> = () => Promise<IteratorResult<T, undefined>>;

/**
 * The results in order, with `depth` of them under way while the loop is busy with one. Stops at the
 * first failure. `end` is called when the loop is over, however it ends.
 */
async function* ahead<T>(
  next: Next<T>,
  depth: number,
  end: () => Promise<void> | void,
): AsyncGenerator<T, undefined, undefined> {
  const begun: Promise<IteratorResult<T, undefined>>[] = [];
  try {
    for (;;) {
      while (begun.length <= depth) {
        const result = next();
        // It is looked at in its turn, or never, where the loop ends before.
        result.catch(() => undefined);
        begun.push(result);
      }
      const { done, value } = (await begun.shift()) as IteratorResult<T, undefined>;
      if (done === true) return undefined;
      yield value;
    }
  } finally {
    await end();
  }
}

/** One call after the other: what needs the one before waits for it. */
function inTurn<T>(call: () => Promise<T>): () => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return () => {
    const turn = last.then(call);
    last = turn.catch(() => undefined);
    return turn;
  };
}
