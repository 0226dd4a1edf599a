// Folds, scans and sorts as ONNX nodes. Runtimes differ in what they make of NaN where they look
// for extrema and sort: where floats may be NaN that is written out, so that NaN wins, as in
// ir/interpret/fold.ts.

import { isFloat, isWide, type DType } from '../../ir/dtype.ts';
import { dims } from '../../ir/graph.ts';
import type { Monoid } from '../../ir/ops.ts';
import { combineMonoid } from '../../ir/interpret/scalar.ts';
import { sizeOf, type FixedShape } from '../../ir/shape.ts';
import { extremum } from './elementwise.ts';
import type { ModelEmitter, Val } from './emitter.ts';
import type { ExportRows } from './row.ts';

const foldOps = {
  sum: 'ReduceSum',
  prod: 'ReduceProd',
  min: 'ReduceMin',
  max: 'ReduceMax',
  and: 'ReduceMin',
  or: 'ReduceMax',
} as const satisfies Record<Monoid, string>;

/** How two elements are combined by a monoid. */
function combined(e: ModelEmitter, monoid: Monoid, x: Val, y: Val): Val {
  switch (monoid) {
    case 'sum':
      return e.map('Add', [x, y]);
    case 'prod':
      return e.map('Mul', [x, y]);
    case 'min':
    case 'and':
      return extremum(e, 'Min', x, y);
    case 'max':
    case 'or':
      return extremum(e, 'Max', x, y);
    default:
      return monoid satisfies never;
  }
}

const leastI64 = -(2n ** 63n);

/** Integers whose signed order is that of the value: u64 with its upper bit turned over. */
function ordered(e: ModelEmitter, x: Val): Val {
  return x.dtype === 'u64' ? e.map('BitwiseXor', [e.cast(x, 'i64'), e.scalar(leastI64, 'i64')]) : x;
}

/** The folded axes as one, behind the others. */
function asLines(e: ModelEmitter, x: Val, axes: readonly number[]): Val {
  const rest = x.shape.flatMap((_, axis) => (axes.includes(axis) ? [] : [axis]));
  const at = (list: readonly number[]): number[] => list.map((axis) => x.shape[axis]!);
  return e.reshape(e.transpose(x, [...rest, ...axes]), [...at(rest), sizeOf(at(axes))]);
}

/** Runtimes reduce integers in doubles and saturate; their matrix products wrap as they should. */
function wideSum(e: ModelEmitter, x: Val, axes: readonly number[], shape: FixedShape): Val {
  const lines = asLines(e, x, axes);
  const ones = e.expand(e.scalar(1, x.dtype), [lines.shape.at(-1)!, 1]);
  const type = { dtype: x.dtype, shape: [...lines.shape.slice(0, -1), 1] };
  return e.reshape(e.node('MatMul', [lines, ones], type), shape);
}

/**
 * ONNX Runtime 1.30 computes extrema of 64-bit integers from 32 of their bits; the positions that
 * it gives for them are right.
 */
function wideExtremum(
  e: ModelEmitter,
  x: Val,
  monoid: 'min' | 'max',
  axes: readonly number[],
  shape: FixedShape,
): Val {
  const lines = asLines(e, x, axes);
  const axis = lines.shape.length - 1;
  const type = { dtype: 'i64', shape: lines.shape.with(axis, 1) } as const;
  const op = monoid === 'max' ? 'ArgMax' : 'ArgMin';
  const key = ordered(e, lines);
  const places = e.node(op, [e.cast(key, e.carrier(op, key.dtype))], type, { axis, keepdims: 1 });
  return e.reshape(e.move('GatherElements', [lines, places], type.shape, { axis }), shape);
}

/** Products of integers by halves, for the same reason. */
function product(e: ModelEmitter, x: Val, axes: readonly number[], shape: FixedShape): Val {
  let left = asLines(e, x, axes);
  const last = left.shape.length - 1;
  const start = left.shape.map(() => 0);
  for (let n = left.shape[last]!; n > 1; n = Math.ceil(n / 2)) {
    const half = Math.floor(n / 2);
    const size = left.shape.with(last, half);
    const part = (from: number, count: number): Val =>
      e.slice(left, start.with(last, from), size.with(last, count));
    const joined = e.map('Mul', [part(0, half), part(half, half)]);
    const type = { dtype: x.dtype, shape: size.with(last, half + 1) };
    left = n % 2 === 0 ? joined : e.node('Concat', [joined, part(n - 1, 1)], type, { axis: last });
  }
  return e.reshape(left, shape);
}

/** A fold over some axes; the reduced axes stay with size 1 where they are kept. */
export function folded(
  e: ModelEmitter,
  x: Val,
  monoid: Monoid,
  axes: readonly number[],
  isKept: boolean,
): Val {
  const shape = x.shape.flatMap((dim, axis) => (axes.includes(axis) ? (isKept ? [1] : []) : [dim]));
  if (axes.length === 0) return x;
  const fold = (op: string, of: Val): Val =>
    e.move(op, [of, e.ints(axes)], shape, { keepdims: Number(isKept) });
  const op = foldOps[monoid];
  if (monoid === 'prod' && !isFloat(x.dtype)) return product(e, x, axes, shape);
  if (monoid === 'sum' && isWide(x.dtype)) return wideSum(e, x, axes, shape);
  if (monoid !== 'min' && monoid !== 'max') return fold(op, x);
  if (isWide(x.dtype) || x.dtype === 'u32') return wideExtremum(e, x, monoid, axes, shape);
  const found = fold(op, x);
  if (!isFloat(x.dtype)) return found;
  return e.where(fold('ReduceMax', e.test('IsNaN', [x])), e.scalar(NaN, x.dtype), found);
}

/** The place of the first extremum, or of the first NaN. */
function extremeAt(e: ModelEmitter, x: Val, monoid: 'min' | 'max', axis: number): Val {
  const shape = x.shape.filter((_, i) => i !== axis);
  const key = ordered(e, x);
  const at = (op: string, of: Val): Val => {
    const wide = e.cast(of, e.carrier(op, of.dtype));
    return e.node(op, [wide], { dtype: 'i64', shape }, { axis, keepdims: 0 });
  };
  const found = at(monoid === 'max' ? 'ArgMax' : 'ArgMin', key);
  if (!isFloat(x.dtype)) return e.cast(found, 'i32');
  const isNan = e.test('IsNaN', [x]);
  const some = e.move('ReduceMax', [isNan, e.ints([axis])], shape, { keepdims: 0 });
  return e.cast(e.where(some, at('ArgMax', isNan), found), 'i32');
}

/** Places of the first `size` elements in order, as i64. */
function top(e: ModelEmitter, x: Val, axis: number, descending: boolean, size: number): Val {
  const dtype = e.carrier('TopK', x.dtype);
  const shape = x.shape.with(axis, size);
  const inputs = [e.cast(x, dtype), e.ints([size])];
  const types = [{ dtype, shape } as const, { dtype: 'i64', shape } as const];
  return e.many('TopK', inputs, types, { axis, largest: Number(descending) })[1]!;
}

/**
 * The first `size` places of an axis in order; stable in both directions. NaN is the greatest:
 * sorted among the infinities first, and then, stably, out of them.
 */
export function order(e: ModelEmitter, x: Val, axis: number, descending: boolean, size: number): Val {
  if (!isFloat(x.dtype)) return e.cast(top(e, ordered(e, x), axis, descending, size), 'i32');
  const isNan = e.test('IsNaN', [x]);
  const number = e.where(isNan, e.scalar(Infinity, x.dtype), x);
  const all = top(e, number, axis, descending, x.shape[axis]!);
  const flags = e.move('GatherElements', [isNan, all], all.shape, { axis });
  const among = top(e, flags, axis, descending, size);
  return e.cast(e.move('GatherElements', [all, among], among.shape, { axis }), 'i32');
}

/** By doubling: after step d each element is the fold of the 2d before it. */
function running(
  e: ModelEmitter,
  x: Val,
  monoid: Monoid,
  axis: number,
  reverse: boolean,
  exclusive: boolean,
): Val {
  const n = x.shape[axis]!;
  const { identity } = combineMonoid(monoid, x.dtype);
  const zeros = x.shape.map(() => 0);
  const shifted = (of: Val, by: number): Val => {
    if (by === 0) return of;
    const rest = e.slice(of, zeros.with(axis, reverse ? by : 0), x.shape.with(axis, n - by));
    const filler = e.expand(e.scalar(identity, x.dtype), x.shape.with(axis, by));
    const parts = reverse ? [rest, filler] : [filler, rest];
    return e.node('Concat', parts, { dtype: x.dtype, shape: x.shape }, { axis });
  };
  let out = shifted(x, Number(exclusive));
  for (let reach = 1; reach < n; reach *= 2) out = combined(e, monoid, shifted(out, reach), out);
  return out;
}

/**
 * The probes of ir/interpret/interpret.ts: halving reaches, each taken while the boundary before it is
 * still below, in the order in which NaN is last.
 */
function places(e: ModelEmitter, boundaries: Val, values: Val, right: boolean): Val {
  const n = boundaries.shape.at(-1)!;
  const axis = boundaries.shape.length - 1;
  const { shape } = values;
  const isPassed = (boundary: Val): Val => {
    const isBelow = e.map('Not', [e.test(right ? 'Less' : 'LessOrEqual', [values, boundary])]);
    if (!isFloat(values.dtype)) return isBelow;
    const [isNumber, isLast] = [e.map('Not', [e.test('IsNaN', [boundary])]), e.test('IsNaN', [values])];
    return right
      ? e.map('Or', [isLast, e.map('And', [isNumber, isBelow])])
      : e.map('And', [isNumber, e.map('Or', [isLast, isBelow])]);
  };
  let place = e.expand(e.scalar(0, 'i64'), shape);
  for (let reach = 2 ** Math.floor(Math.log2(n)); reach >= 1; reach /= 2) {
    const next = e.map('Add', [place, e.scalar(reach, 'i64')]);
    const last = e.map('Sub', [next, e.scalar(1, 'i64')]);
    const at = e.map('Min', [last, e.scalar(n - 1, 'i64')]);
    const boundary = e.move('GatherElements', [boundaries, at], shape, { axis });
    const isInside = e.test('LessOrEqual', [next, e.scalar(n, 'i64')]);
    place = e.where(e.map('And', [isInside, isPassed(boundary)]), next, place);
  }
  return e.cast(place, 'i32');
}

/** The result of a fold over no elements. */
export function identityOf(e: ModelEmitter, monoid: Monoid, dtype: DType): Val {
  return e.scalar(combineMonoid(monoid, dtype).identity, dtype);
}

function isEmpty(shape: FixedShape): boolean {
  return sizeOf(shape) === 0;
}

export const folds: ExportRows<'reduce' | 'argReduce' | 'argSort' | 'scan' | 'searchSorted'> = {
  reduce: ({ e, full }, node) => {
    const { monoid, axes } = node.attrs;
    const x = node.inputs[0]!;
    return isEmpty(dims(x)) ? identityOf(e, monoid, node.dtype) : folded(e, full(x), monoid, axes, false);
  },
  argReduce: ({ e, full }, { inputs, attrs }) => extremeAt(e, full(inputs[0]!), attrs.monoid, attrs.axis),
  argSort: ({ e, full }, { inputs, attrs: { axis, descending } }) => {
    const x = full(inputs[0]!);
    return order(e, x, axis, descending, x.shape[axis]!);
  },
  scan: ({ e, full }, { inputs, attrs: { monoid, axis, reverse, exclusive } }) => {
    const x = full(inputs[0]!);
    if (monoid !== 'sum') return running(e, x, monoid, axis, reverse, exclusive);
    const attributes = { exclusive: Number(exclusive), reverse: Number(reverse) };
    return e.move('CumSum', [x, e.scalar(axis, 'i64')], x.shape, attributes);
  },
  searchSorted: ({ e, full }, node) => {
    const [boundaries, values] = [node.inputs[0]!, node.inputs[1]!];
    if (isEmpty(dims(boundaries))) return e.scalar(0, 'i32');
    return places(e, full(boundaries), full(values), node.attrs.right);
  },
};
