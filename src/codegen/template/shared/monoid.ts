// Accumulators of reductions and scans: identities, combination, and the value-and-position pair of
// arg-reductions.

import { combining, type Monoid } from '../../../ir/ops.ts';
import { arithmetic, both, constant, operation, type LoopBuilder } from '../../loop/builder.ts';
import type { RegisterType, Value, Width } from '../../loop/loop.ts';

const extremes: Readonly<Record<RegisterType, readonly [number | bigint, number | bigint]>> = {
  f32: [-Infinity, Infinity],
  f64: [-Infinity, Infinity],
  i64: [-(2n ** 63n), 2n ** 63n - 1n],
  u64: [0, 2n ** 64n - 1n],
  i32: [-2147483648, 2147483647],
  u32: [0, 4294967295],
  bool: [0, 1],
};

export function identity(monoid: Monoid, type: RegisterType, width: Width): Value {
  const values: Readonly<Record<Monoid, number | bigint>> = {
    sum: 0,
    prod: 1,
    min: extremes[type][1],
    max: extremes[type][0],
    and: 1,
    or: 0,
  };
  return constant(values[monoid], type, width);
}

export function combine(monoid: Monoid, a: Value, b: Value): Value {
  return arithmetic(combining[monoid], [a, b], a.type);
}

/** Combines the four lanes of a vector into a scalar, pairwise. */
export function combineLanes(b: LoopBuilder, monoid: Monoid, vector: Value, hint: string): Value {
  if (vector.width === 1) return vector;
  const v = b.let(vector, hint);
  const lane = (i: number): Value => ({ kind: 'lane', arg: v, lane: i, type: v.type, width: 1 });
  return b.let(combine(monoid, combine(monoid, lane(0), lane(1)), combine(monoid, lane(2), lane(3))), hint);
}

/** The extremum so far and its position. */
export interface Best {
  readonly value: Value;
  readonly at: Value;
}

/**
 * Whether candidate beats the best: strictly better, or a NaN over a number; with `earlier`, equal
 * but at a lower index.
 */
export function beats(
  b: LoopBuilder,
  monoid: 'min' | 'max',
  candidate: Best,
  best: Best,
  earlier: boolean,
): Value {
  const [low, high] = monoid === 'max' ? [best.value, candidate.value] : [candidate.value, best.value];
  let wins = operation('lt', [low, high], 'bool');
  const isFloat = candidate.value.type === 'f32' || candidate.value.type === 'f64';
  const nan = (value: Value): Value => operation('isNan', [value], 'bool');
  if (isFloat)
    wins = operation(
      'or',
      [wins, both(nan(candidate.value), operation('not', [nan(best.value)], 'bool'))],
      'bool',
    );
  if (earlier) {
    let same = operation('eq', [candidate.value, best.value], 'bool');
    if (isFloat) same = operation('or', [same, both(nan(candidate.value), nan(best.value))], 'bool');
    wins = operation('or', [wins, both(same, operation('lt', [candidate.at, best.at], 'bool'))], 'bool');
  }
  return b.let(wins, 'wins');
}
