// What arguments mean, as this folder's rows say it: something valid, and which of the wrong values are valid there too. Written
// apart from the package's own tables, which it checks.

import { ones, tensor, zeros, type Tensor } from '../../src/index.ts';
import { wrongNames, type Wrong } from './wrong.ts';

export interface Meaning {
  /** Something valid, made anew for each call. */
  readonly sample: () => unknown;
  /** Wrong values that are valid here, or are refused for what they hold. */
  readonly accepts: ReadonlySet<Wrong>;
  /** The meanings of an object's options. */
  readonly options?: Readonly<Record<string, Meaning>>;
}

export function meaning(sample: () => unknown, ...accepts: readonly Wrong[]): Meaning {
  return { sample, accepts: new Set(accepts) };
}

/** The same with another sample. */
export function like(base: Meaning, sample: () => unknown): Meaning {
  return { ...base, sample };
}

/** The same, and may be left out. */
export function maybe(base: Meaning): Meaning {
  return { ...base, accepts: new Set([...base.accepts, 'nothing']) };
}

/** An object of options; each may be left out, but for those that `needed` names. */
export function options(table: Readonly<Record<string, Meaning>>, needed: readonly string[] = []): Meaning {
  const given = needed.map((name) => [name, table[name]!] as const);
  const named = Object.fromEntries(
    Object.entries(table).map(([name, at]) => [name, needed.includes(name) ? at : maybe(at)]),
  );
  return {
    sample: () => Object.fromEntries(given.map(([name, { sample }]) => [name, sample()])),
    accepts: new Set<Wrong>(needed.length === 0 ? ['nothing', 'emptyObject'] : []),
    options: named,
  };
}

const aTensor: readonly Wrong[] = ['tensor', 'bool', 'integers'];

/** A tensor of floats in this shape. */
export function t(...shape: readonly number[]): Meaning {
  return meaning(() => ones(shape), ...aTensor);
}

/** A tensor of integers, all 0, in this shape. */
export function ints(...shape: readonly number[]): Meaning {
  return meaning(() => zeros(shape, { dtype: 'i32' }), ...aTensor);
}

/** A tensor of bool in this shape. */
export function bools(...shape: readonly number[]): Meaning {
  return meaning((): Tensor => ones(shape, { dtype: 'bool' }), ...aTensor);
}

const aNumber: readonly Wrong[] = ['infinity', 'fraction', 'negative', 'large', 'number'];

/** Tensor, number or boolean. */
export const operand: Meaning = meaning(() => ones([2, 3]), ...aTensor, ...aNumber, 'nan', 'true');
/** Any number but NaN. */
export const number: Meaning = meaning(() => 0.5, ...aNumber);
/** Any number. */
export const element: Meaning = meaning(() => 0.5, ...aNumber, 'nan');
export const finite: Meaning = meaning(() => 0.5, 'fraction', 'negative', 'large', 'number');
export const positive: Meaning = meaning(() => 0.5, 'infinity', 'fraction', 'large', 'number');
export const notNegative: Meaning = meaning(() => 0.5, 'infinity', 'fraction', 'large', 'number');
export const share: Meaning = meaning(() => 0.5);
export const integer: Meaning = meaning(() => 1, 'negative', 'number');
export const count: Meaning = meaning(() => 1, 'number');
export const flag: Meaning = meaning(() => true, 'true');
export const dtype: Meaning = meaning(() => 'f32');
/** A place among axes. */
export const axis: Meaning = meaning(() => 0, 'number');
/** A place among axes, several, or none for all. */
export const axes: Meaning = meaning(() => 0, 'number', 'nothing', 'emptyList', 'bytes');
/** Sizes that fit what they are given for. */
export function shape(...sizes: readonly number[]): Meaning {
  return meaning(() => sizes, 'emptyList', 'bytes');
}
/** One whole number for all spatial axes, or one each. */
export const window: Meaning = meaning(() => 1, 'number', 'bytes');
export function word(...words: readonly string[]): Meaning {
  return meaning(() => words[0]);
}
export const text = (sample: string): Meaning => meaning(() => sample, 'text', 'empty');
export const fn: Meaning = meaning(() => (x: Tensor) => x, 'function', 'asynchronous');
export const someTensors: Meaning = meaning(() => [ones([2]), ones([2])], 'tensors', 'emptyList');
/** Host data of any shape. */
export const data: Meaning = meaning(
  () => tensorData,
  ...aNumber,
  'nan',
  'true',
  'bigint',
  'emptyList',
  'numbers',
  'floats',
  'bytes',
  'bigints',
);
const tensorData = [1, 2];
/** Anything at all, or what the rows try by other means. */
export const anything: Meaning = meaning(() => tensor([1]), ...wrongNames);
