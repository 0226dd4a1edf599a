// Datasets of datasets: joined, split, cut, side by side, again and again, and with each item
// changed or left out. Of streams too, where no index is needed. Nothing is computed before an item
// is asked for, but by `filter`.

import { showValue, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import {
  aDataset,
  aSource,
  checkIndex,
  datasetOf,
  isDataset,
  iterate,
  type Dataset,
  type Stream,
} from './dataset.ts';
import { aSeed, Draws, permutation, seedOf, type Seed } from './draws.ts';
import type { Collated } from './item.ts';

/** A dataset over items of another, by their indices there. */
function picked<T>(
  op: string,
  from: Dataset<T>,
  length: number,
  place: (index: number) => number,
): Dataset<T> {
  const { batch } = from;
  return datasetOf(
    op,
    length,
    (index) => from.get(place(index)),
    batch === undefined ? undefined : (indices) => batch.call(from, indices.map(place)),
  );
}

/** The iterables of some streams, one after the other. */
async function* chained<T>(sources: readonly (Dataset<T> | Stream<T>)[]): AsyncGenerator<T> {
  for (const source of sources) yield* itemsOf(source);
}

/** Every item of a dataset or a stream, in order. */
export async function* itemsOf<T>(source: Dataset<T> | Stream<T>): AsyncGenerator<T> {
  if (!isDataset(source)) return yield* source as Stream<T>;
  const dataset = source as Dataset<T>;
  for (let i = 0; i < dataset.length; i++) yield await dataset.get(i);
}

/** A stream that is run through anew each time. */
function again<T>(make: () => AsyncGenerator<T>): AsyncIterable<T> {
  return { [Symbol.asyncIterator]: make };
}

const sources = arg.listOf(aSource);

/** One dataset after the other; of streams a stream. */
export function concat<T>(...parts: readonly Dataset<T>[]): Dataset<T>;
export function concat<T>(...parts: readonly (Dataset<T> | Stream<T>)[]): AsyncIterable<T>;
export function concat<T>(...parts: readonly (Dataset<T> | Stream<T>)[]): Dataset<T> | AsyncIterable<T> {
  if (!sources.accepts(parts)) sources.refuse('concat', 'the datasets', parts);
  if (!parts.every(isDataset)) return again(() => chained(parts));
  const datasets = parts as readonly Dataset<T>[];
  let length = 0;
  const starts = datasets.map((part) => (length += part.length) - part.length);
  return datasetOf('concat', length, (index) => {
    const at = starts.findLastIndex((start) => start <= index);
    return (datasets[at] as Dataset<T>).get(index - (starts[at] as number));
  });
}

const indexList: arg.Kind<ArrayLike<number>> = arg.kind(
  'an array of indices',
  (value) => arg.isNumberList(value) && Array.from(value).every((at) => Number.isSafeInteger(at)),
);
const takesSubset = arg.takes<(from: Dataset<unknown>, indices: ArrayLike<number>) => unknown>(
  ['the dataset', aDataset],
  ['the indices', indexList],
);

/** The items at these indices, in this order. */
export function subset<T>(from: Dataset<T>, indices: ArrayLike<number>): Dataset<T> {
  takesSubset('subset', from, indices);
  const places = Float64Array.from(indices);
  for (const place of places) checkIndex('subset', place, from.length);
  return picked('subset', from, places.length, (index) => places[index] as number);
}

export interface SplitOptions {
  /** Of the order; drawn from the generator that `manualSeed` seeds by default. */
  readonly seed?: Seed;
}

const takesSplit = arg.takes<
  (from: Dataset<unknown>, parts: readonly number[], options?: SplitOptions) => unknown
>(
  ['the dataset', aDataset],
  ['the parts', arg.listOf(arg.notNegative)],
  ['options', arg.options<SplitOptions>({ seed: aSeed })],
);

/**
 * A dataset cut at random into parts of these lengths, or of these shares, which add up to 1: then
 * items that are left over go to the first parts, one each.
 */
export function randomSplit<T, const P extends readonly number[]>(
  from: Dataset<T>,
  parts: P,
  options: SplitOptions = {},
): { -readonly [K in keyof P]: Dataset<T> } {
  takesSplit('randomSplit', from, parts, options);
  const lengths = lengthsOf(from.length, parts);
  const order = permutation(from.length, new Draws(seedOf(options.seed), 0));
  let start = 0;
  const made = lengths.map((length) => {
    const own = order.subarray(start, (start += length));
    return picked('randomSplit', from, length, (index) => own[index] as number);
  });
  return made as { -readonly [K in keyof P]: Dataset<T> };
}

function lengthsOf(length: number, parts: readonly number[]): readonly number[] {
  const sum = parts.reduce((total, part) => total + part, 0);
  if (sum === length && parts.every(Number.isSafeInteger)) return parts;
  if (Math.abs(sum - 1) > 1e-6 || parts.some((part) => part > 1)) {
    const problem = `the parts ${showValue(parts)} add up to ${sum}: expected lengths that add up to ${length}, or shares that add up to 1`;
    throw new TensorError('E_VALUE', 'randomSplit', problem);
  }
  const lengths = parts.map((part) => Math.floor(length * part));
  const left = length - lengths.reduce((total, part) => total + part, 0);
  for (let i = 0; i < left; i++) (lengths[i % lengths.length] as number) += 1;
  return lengths;
}

type Source<T> = Dataset<T> | Stream<T>;
type Changing<T, U> = (item: T) => U | Promise<U>;

const takesMap = arg.takes<(from: Source<unknown>, fn: Changing<unknown, unknown>) => unknown>(
  ['the dataset', aSource],
  ['the function', arg.callable<Changing<unknown, unknown>>()],
);

/** Each item changed by a function, when it is asked for: at every epoch anew. */
export function map<T, U>(from: Dataset<T>, fn: Changing<T, U>): Dataset<Awaited<U>>;
export function map<T, U>(from: Stream<T>, fn: Changing<T, U>): AsyncIterable<Awaited<U>>;
export function map<T, U>(from: Source<T>, fn: Changing<T, U>): Dataset<unknown> | AsyncIterable<unknown> {
  takesMap('map', from as Source<unknown>, fn as Changing<unknown, unknown>);
  if (isDataset(from)) {
    const dataset = from as Dataset<T>;
    return datasetOf('map', dataset.length, (index) => {
      const item = dataset.get(index);
      return item instanceof Promise ? item.then(fn) : fn(item);
    });
  }
  return again(async function* () {
    for await (const item of from as Stream<T>) yield await fn(item);
  });
}

const takesFilter = arg.takes<(from: Source<unknown>, keep: Changing<unknown, boolean>) => unknown>(
  ['the dataset', aSource],
  ['the function', arg.callable<Changing<unknown, boolean>>()],
);

/**
 * The items that a function keeps. Of a dataset all items are looked at once, now; of a stream as
 * they come.
 */
export function filter<T>(from: Dataset<T>, keep: Changing<T, boolean>): Promise<Dataset<T>>;
export function filter<T>(from: Stream<T>, keep: Changing<T, boolean>): AsyncIterable<T>;
export function filter<T>(
  from: Source<T>,
  keep: Changing<T, boolean>,
): Promise<Dataset<T>> | AsyncIterable<T> {
  takesFilter('filter', from as Source<unknown>, keep as Changing<unknown, boolean>);
  if (isDataset(from)) return kept(from as Dataset<T>, keep);
  return again(async function* () {
    for await (const item of from as Stream<T>) if (await keep(item)) yield item;
  });
}

async function kept<T>(from: Dataset<T>, keep: Changing<T, boolean>): Promise<Dataset<T>> {
  const places: number[] = [];
  for (let i = 0; i < from.length; i++) if (await keep(await from.get(i))) places.push(i);
  return picked('filter', from, places.length, (index) => places[index] as number);
}

const takesTake = arg.takes<(from: Source<unknown>, count: number) => unknown>(
  ['the dataset', aSource],
  ['the count', arg.count(0)],
);

/** The first items, as many as there are at most. */
export function take<T>(from: Dataset<T>, count: number): Dataset<T>;
export function take<T>(from: Stream<T>, count: number): AsyncIterable<T>;
export function take<T>(from: Source<T>, count: number): Dataset<T> | AsyncIterable<T> {
  takesTake('take', from as Source<unknown>, count);
  if (isDataset(from)) {
    const dataset = from as Dataset<T>;
    return picked('take', dataset, Math.min(count, dataset.length), (index) => index);
  }
  return again(async function* () {
    let left = count;
    if (left === 0) return;
    for await (const item of from as Stream<T>) {
      yield item;
      if (--left === 0) return;
    }
  });
}

const takesRepeat = arg.takes<(from: Source<unknown>, times: number) => unknown>(
  ['the dataset', aSource],
  ['the number of times', arg.count(0)],
);

/** All items, `times` times. */
export function repeat<T>(from: Dataset<T>, times: number): Dataset<T>;
export function repeat<T>(from: Stream<T>, times: number): AsyncIterable<T>;
export function repeat<T>(from: Source<T>, times: number): Dataset<T> | AsyncIterable<T> {
  takesRepeat('repeat', from as Source<unknown>, times);
  if (isDataset(from)) {
    const dataset = from as Dataset<T>;
    return picked('repeat', dataset, dataset.length * times, (index) => index % dataset.length);
  }
  return again(async function* () {
    for (let i = 0; i < times; i++) yield* from as Stream<T>;
  });
}

/** What the sources of some items give, side by side. */
export type Zipped<P extends readonly unknown[]> = {
  -readonly [K in keyof P]: P[K] extends Dataset<infer T> ? T : P[K] extends Stream<infer U> ? U : never;
};

/**
 * Items of several datasets side by side, as lists; they must be equally many. With a stream among
 * them it is a stream, which ends with the first that ends.
 */
export function zip<const P extends readonly Dataset<unknown>[]>(...parts: P): Dataset<Zipped<P>>;
export function zip<const P extends readonly Source<unknown>[]>(...parts: P): AsyncIterable<Zipped<P>>;
export function zip(...parts: readonly Source<unknown>[]): Dataset<unknown> | AsyncIterable<unknown> {
  if (!sources.accepts(parts)) sources.refuse('zip', 'the datasets', parts);
  if (parts.length === 0) throw new TensorError('E_VALUE', 'zip', 'expects at least one dataset');
  if (!parts.every(isDataset)) return again(() => zipped(parts));
  const datasets = parts as readonly Dataset<unknown>[];
  const lengths = datasets.map(({ length }) => length);
  const length = lengths[0] as number;
  if (lengths.some((each) => each !== length))
    throw new TensorError('E_SHAPE', 'zip', `the datasets have different lengths: ${lengths.join(', ')}`);
  const canBatch = datasets.every(({ batch }) => batch !== undefined);
  return datasetOf<unknown>(
    'zip',
    length,
    (index) => {
      const items = datasets.map((part) => part.get(index));
      return items.some((item) => item instanceof Promise) ? Promise.all(items) : items;
    },
    canBatch
      ? (((indices) => Promise.all(datasets.map((part) => part.batch?.(indices)))) as (
          indices: readonly number[],
        ) => Promise<Collated<unknown>>)
      : undefined,
  );
}

async function* zipped(parts: readonly Source<unknown>[]): AsyncGenerator<unknown[]> {
  const iterators = parts.map((part) => iterate(itemsOf(part)));
  try {
    for (;;) {
      const results = await Promise.all(iterators.map((each) => each.next()));
      if (results.some(({ done }) => done)) return;
      yield results.map(({ value }) => value as unknown);
    }
  } finally {
    await Promise.all(iterators.map((each) => each.return?.()));
  }
}
