// The form of every attribute as a table, total by type: the verifier checks nodes against it and the parser checks text
// against it. Relations between attributes and input shapes are infer.ts's business.

import { isDType } from './dtype.ts';
import { monoids, ops, type Attrs, type Op, type ScatterMode } from './ops.ts';

const scatterModes: readonly ScatterMode[] = ['set', 'add', 'mul', 'min', 'max'];

interface Form {
  /** Completes `attribute axis must be …`. */
  readonly is: string;
  accepts(value: unknown): boolean;
}

const isInt = (value: unknown): boolean => Number.isSafeInteger(value) && !Object.is(value, -0);

const int: Form = { is: 'an integer', accepts: isInt };
const ints: Form = { is: 'a list of integers', accepts: (value) => isListOf(value, isInt) };
const number: Form = { is: 'a number', accepts: (value) => typeof value === 'number' };
const scalar: Form = {
  is: 'a number',
  accepts: (value) => typeof value === 'number' || typeof value === 'bigint',
};
const text: Form = { is: 'a string', accepts: (value) => typeof value === 'string' };
const flag: Form = { is: 'true or false', accepts: (value) => typeof value === 'boolean' };
const dtype: Form = { is: 'a dtype', accepts: (value) => typeof value === 'string' && isDType(value) };
const shape: Form = { is: 'a list of sizes', accepts: (value) => isListOf(value, isDim) };
const oneOf = (words: readonly string[]): Form => ({
  is: `one of ${words.join(', ')}`,
  accepts: (value) => typeof value === 'string' && words.includes(value),
});
const monoid: Form = oneOf(monoids);

function isListOf(value: unknown, accepts: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(accepts);
}

function isDim(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return isInt(value) && (value as number) >= 0;
  const { name, min, max } = value as Record<string, unknown>;
  return typeof name === 'string' && isInt(min) && isInt(max) && (min as number) <= (max as number);
}

type FormsOf<K extends Op> = { readonly [A in keyof Attrs<K>]: Form };

const forms = {
  cast: { dtype },
  bitcast: { dtype },
  reshape: { shape },
  permute: { order: ints },
  broadcast: { shape },
  slice: { start: ints, size: ints, step: ints },
  pad: { low: ints, high: ints, interior: ints, value: number },
  concat: { axis: int },
  window: { axis: int, size: int, stride: int, dilation: int },
  parameter: { index: int, name: text, dtype, shape },
  constant: { value: scalar, dtype },
  iota: { shape, axis: int, dtype },
  randomBits: { shape },
  reduce: { monoid, axes: ints },
  argReduce: { monoid: oneOf(['min', 'max']), axis: int },
  argSort: { axis: int, descending: flag },
  radixRank: { shift: int, digits: int, block: int },
  scan: { monoid, axis: int, reverse: flag, exclusive: flag },
  dot: { lhsBatch: ints, rhsBatch: ints, lhsContract: ints, rhsContract: ints, dtype },
  conv: { strides: ints, padLow: ints, padHigh: ints, lhsDilation: ints, rhsDilation: ints, groups: int },
  gather: { axis: int },
  scatter: { axis: int, mode: oneOf(scatterModes) },
  permuteScatter: { axis: int },
  searchSorted: { right: flag },
  segmentReduce: { axis: int, mode: oneOf(scatterModes) },
  scatterAddAtomic: { axis: int, size: int },
  customVjp: { rule: int },
} as const satisfies { readonly [K in Op as keyof Attrs<K> extends never ? never : K]: FormsOf<K> };

const none: Readonly<Record<string, Form>> = {};

/** What is wrong with a node's attributes as `attribute axis must be an integer`, and which; undefined when nothing is. */
export function attrProblem(
  op: Op,
  attrs: Readonly<Record<string, unknown>>,
): { readonly name: string; readonly problem: string } | undefined {
  const expected: Readonly<Record<string, Form>> = Object.hasOwn(forms, op)
    ? forms[op as keyof typeof forms]
    : none;
  for (const name in attrs) {
    if (!Object.hasOwn(expected, name)) {
      const known = ops[op].attrs.length === 0 ? 'none' : ops[op].attrs.join(', ');
      return { name, problem: `${op} has no attribute ${name} (it has ${known})` };
    }
  }
  for (const name in expected) {
    if (!Object.hasOwn(attrs, name)) return { name, problem: `${op} needs the attribute ${name}` };
    const form = expected[name]!;
    if (!form.accepts(attrs[name])) return { name, problem: `attribute ${name} must be ${form.is}` };
  }
  return undefined;
}
