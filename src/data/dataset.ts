// Datasets: what has a length and gives items by their index, and streams: what gives items one
// after the other. Any object with these members is one; nothing has to be extended.

import { showValue, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import type { Collated } from './item.ts';

/** Items by their index. */
export interface Dataset<T> {
  readonly length: number;
  /** The item at an index from 0 to before `length`. */
  get(index: number): T | Promise<T>;
  /**
   * What the default collation makes of the items at these indices, where they can be had at once;
   * loaders with a `collate` of their own and workers do without.
   */
  batch?(indices: readonly number[]): Collated<T> | Promise<Collated<T>>;
}

/** Items one after the other, anew at each iteration. */
export type Stream<T> = Iterable<T> | AsyncIterable<T>;

/** Whether a value has a length and gives items by their index. */
export function isDataset(value: unknown): value is Dataset<unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const { length, get } = value as { length?: unknown; get?: unknown };
  return Number.isSafeInteger(length) && (length as number) >= 0 && typeof get === 'function';
}

export function isStream(value: unknown): value is Stream<unknown> {
  if (typeof value !== 'object' || value === null || isDataset(value)) return false;
  return Symbol.iterator in value || Symbol.asyncIterator in value;
}

const forms = 'a dataset, with `length` and `get(index)`';

/** A dataset. */
export const aDataset: arg.Kind<Dataset<unknown>> = arg.kind(forms, isDataset, (value) =>
  Array.isArray(value) ? 'fromArray(list)' : undefined,
);

/** A dataset or a stream; an iterator that has begun is neither, since it cannot begin again. */
export const aSource: arg.Kind<Dataset<unknown> | Stream<unknown>> = {
  accepts: (value) => isDataset(value) || (isStream(value) && !isOnce(value)),
  refuse(op, what, value): never {
    const isBegun = isStream(value) && isOnce(value);
    const problem = isBegun
      ? `${what} is an iterator, which can be run through once`
      : `${what} must be ${forms}, or an iterable, got ${showValue(value)}`;
    throw new TensorError('E_VALUE', op, problem, isBegun ? 'stream(() => …), which makes one' : undefined);
  },
};

/** Whether it is its own iterator, as generators are. */
function isOnce(value: Stream<unknown>): boolean {
  return 'next' in value && typeof value.next === 'function';
}

/** An iterator over a stream. */
export function iterate<T>(source: Stream<T>): Iterator<T> | AsyncIterator<T> {
  return Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
}

/** A dataset of these members; `get` sees indices that are there alone. */
export function datasetOf<T>(
  op: string,
  length: number,
  get: (index: number) => T | Promise<T>,
  batch?: Dataset<T>['batch'],
): Dataset<T> {
  const made = {
    length,
    get: (index: number): T | Promise<T> => {
      checkIndex(op, index, length);
      return get(index);
    },
  };
  if (batch === undefined) return made;
  return {
    ...made,
    batch: (indices) => {
      for (const index of indices) checkIndex(op, index, length);
      return batch(indices);
    },
  };
}

/** Throws E_INDEX unless a dataset of this length has the index. */
export function checkIndex(op: string, index: number, length: number): void {
  if (Number.isSafeInteger(index) && index >= 0 && index < length) return;
  throw new TensorError('E_INDEX', op, `there is no item ${String(index)}: the dataset has ${length}`);
}

const aList: arg.Kind<readonly unknown[]> = arg.kind('an array of items', Array.isArray, (value) =>
  ArrayBuffer.isView(value) ? 'fromArrays(…), of typed arrays' : undefined,
);
const takesArray = arg.takes<(items: readonly unknown[]) => unknown>(['the items', aList]);

/** A dataset of items that are there already. The array must not change afterwards. */
export function fromArray<T>(items: readonly T[]): Dataset<T> {
  takesArray('fromArray', items);
  return datasetOf('fromArray', items.length, (index) => items[index] as T);
}

const takesStream = arg.takes<(make: () => Stream<unknown>) => unknown>([
  'the function',
  arg.callable<() => Stream<unknown>>(),
]);

/** A stream of what a function gives at each iteration, such as a generator. */
export function stream<T>(make: () => Stream<T>): AsyncIterable<T> {
  takesStream('stream', make);
  return {
    async *[Symbol.asyncIterator]() {
      const made: unknown = make();
      if (!isStream(made)) {
        const problem = `the function must give an iterable, got ${showValue(made)}`;
        throw new TensorError('E_VALUE', 'stream', problem, 'a generator: async function* () { … }');
      }
      yield* made as Stream<T>;
    },
  };
}
