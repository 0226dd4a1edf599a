// Folds in the reference interpreter: reduce, argReduce and scan. Floats of every width are folded
// in double and rounded once per result, so the oracle is at least as accurate as any order of
// summation on a device; integers wrap.

import { isFloat, type DType } from '../dtype.ts';
import { offsetsOf, pick } from './view.ts';
import type { Attrs, Monoid } from '../ops.ts';
import { combineMonoid } from './scalar.ts';
import { stridesOf, type FixedShape } from '../shape.ts';
import { castArray, emptyData, type HostArray } from '../value.ts';

/** Where folded elements lie. */
export interface Lines {
  /** The shape without the folded axes, and the offset of each of its elements. */
  readonly shape: FixedShape;
  readonly starts: Int32Array;
  /** Offsets of the folded elements from a start, in C-order. */
  readonly steps: Int32Array;
}

/** The lines of a shape along `axes`. */
export function linesAlong(shape: FixedShape, axes: readonly number[]): Lines {
  const strides = stridesOf(shape);
  const kept = shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));
  return {
    shape: pick(shape, kept),
    starts: offsetsOf(pick(shape, kept), pick(strides, kept)),
    steps: offsetsOf(pick(shape, axes), pick(strides, axes)),
  };
}

/** The dtype to fold in: floats in double, all others in their own. */
export function foldingDtype(dtype: DType): DType {
  return isFloat(dtype) ? 'f64' : dtype;
}

/** Fold of `axes`; an empty fold gives the monoid's identity. */
export function reduce(x: HostArray, monoid: Monoid, axes: readonly number[]): HostArray {
  const dtype = foldingDtype(x.dtype);
  const from = castArray(x, dtype).data;
  const { shape, starts, steps } = linesAlong(x.shape, axes);
  const data = emptyData(dtype, starts.length);
  if (from instanceof Float64Array && monoid === 'sum') {
    for (let i = 0; i < starts.length; i++) data[i] = sumAt(from, starts[i]!, steps);
  } else {
    const { identity, combine } = combineMonoid(monoid, dtype);
    for (let i = 0; i < starts.length; i++) {
      let folded = identity;
      for (let j = 0; j < steps.length; j++) folded = combine(folded, from[starts[i]! + steps[j]!]!);
      data[i] = folded;
    }
  }
  return castArray({ dtype, shape, data }, x.dtype);
}

/** Sums are most of the folding in real models: on their own the engine keeps them unboxed. */
function sumAt(from: Float64Array, start: number, steps: Int32Array): number {
  let sum = 0;
  for (let j = 0; j < steps.length; j++) sum += from[start + steps[j]!]!;
  return sum;
}

/**
 * Index of the first extremum along `axis`; the first NaN, if there is one, counts as the extremum.
 */
export function argReduce(x: HostArray, monoid: 'min' | 'max', axis: number): HostArray {
  const { shape, starts, steps } = linesAlong(x.shape, [axis]);
  const data = new Int32Array(starts.length);
  for (let i = 0; i < starts.length; i++) {
    const start = starts[i]!;
    let best = x.data[start]!;
    for (let j = 1; j < steps.length && !Number.isNaN(best); j++) {
      const value = x.data[start + steps[j]!]!;
      if (Number.isNaN(value) || (monoid === 'max' ? value > best : value < best)) {
        best = value;
        data[i] = j;
      }
    }
  }
  return { dtype: 'i32', shape, data };
}

/**
 * Running fold along an axis; `exclusive` leaves out the element itself, `reverse` starts at the
 * end.
 */
export function scan(x: HostArray, attrs: Attrs<'scan'>): HostArray {
  const dtype = foldingDtype(x.dtype);
  const from = castArray(x, dtype).data;
  const { starts, steps } = linesAlong(x.shape, [attrs.axis]);
  const data = emptyData(dtype, from.length);
  const { identity, combine } = combineMonoid(attrs.monoid, dtype);
  for (const start of starts) {
    let folded = identity;
    for (let j = 0; j < steps.length; j++) {
      const at = start + steps[attrs.reverse ? steps.length - 1 - j : j]!;
      const next = combine(folded, from[at]!);
      data[at] = attrs.exclusive ? folded : next;
      folded = next;
    }
  }
  return castArray({ dtype, shape: x.shape, data }, x.dtype);
}
