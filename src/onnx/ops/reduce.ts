// Reductions and running ones. Axes are an attribute in older opsets and an input in newer ones.

import { dtypeKind, integerRange, isFloat } from '../../ir/dtype.ts';
import * as sn from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Call, Row, Rows } from '../call.ts';
import { hasDoubles, hostType } from '../element.ts';
import { knownData, Value } from '../value.ts';
import { hosted, row } from './row.ts';

interface Fold {
  readonly keepdim: boolean;
}

/** A reduction over axes, all of them when none are named unless the node says otherwise. */
function reduction(since: readonly number[], run: (x: Tensor, axes: number[], fold: Fold) => Tensor): Row {
  return hosted(since, [1], (call) => {
    const x = call.tensor(0);
    const given = call.ints('axes', 1);
    const keepdim = call.attributes.int('keepdims', 1) === 1;
    const isNoop =
      (given === undefined || given.length === 0) && call.attributes.int('noop_with_empty_axes', 0) === 1;
    // Without axes only what is done to each element is left: squares, absolute values, logarithms.
    if (isNoop) return sn.reshape(run(sn.unsqueeze(x, x.rank), [x.rank], { keepdim: false }), x.shape);
    const isAll = given === undefined || given.length === 0;
    const axes = isAll ? x.shape.map((_, axis) => axis) : call.axes(given, x.rank);
    return run(x, axes, { keepdim });
  });
}

function sum(x: Tensor, axes: number[], fold: Fold): Tensor {
  return sn.sum(x, axes, { ...fold, dtype: x.dtype });
}

/** The mean of integers is cut off. */
function mean(x: Tensor, axes: number[], fold: Fold): Tensor {
  if (isFloat(x.dtype)) return sn.mean(x, axes, fold);
  const count = axes.reduce((size, axis) => size * x.shape[axis]!, 1);
  return sn.div(sum(x, axes, fold), count, { rounding: 'trunc' });
}

function absolute(x: Tensor): Tensor {
  return dtypeKind(x.dtype) === 'uint' ? x : sn.abs(x);
}

/** A function of floats on integers too: computed in f64 where it is to be had, brought back. */
function inFloats(x: Tensor, run: (x: Tensor) => Tensor): Tensor {
  return isFloat(x.dtype) ? run(x) : sn.cast(run(sn.cast(x, hasDoubles() ? 'f64' : 'f32')), x.dtype);
}

function logSumExp(x: Tensor, axes: number[], fold: Fold): Tensor {
  if (axes.some((axis) => x.shape[axis] === 0)) return emptyExtremum(x, axes, fold, -1);
  return inFloats(x, (wide) => sn.logsumexp(wide, axes, fold));
}

/** The extremum of nothing: the end of the type's range. */
function emptyExtremum(x: Tensor, axes: readonly number[], { keepdim }: Fold, sign: 1 | -1): Tensor {
  const shape = x.shape.flatMap((dim, axis) => (axes.includes(axis) ? (keepdim ? [1] : []) : [dim]));
  if (isFloat(x.dtype)) return sn.full(shape, sign * Infinity, { dtype: x.dtype });
  if (x.dtype === 'bool') return sn.full(shape, sign > 0, { dtype: 'bool' });
  return sn.full(shape, integerRange(x.dtype)[sign > 0 ? 1 : 0], { dtype: x.dtype });
}

function extremum(run: typeof sn.amax, sign: 1 | -1) {
  return (x: Tensor, axes: number[], fold: Fold): Tensor =>
    axes.some((axis) => x.shape[axis] === 0) ? emptyExtremum(x, axes, fold, sign) : run(x, axes, fold);
}

function place(run: typeof sn.argmax): (call: Call) => Value {
  return (call) => {
    const x = call.tensor(0);
    const axis = call.axis(call.attributes.int('axis', 0), x.rank);
    const keepdim = call.attributes.int('keepdims', 1) === 1;
    const isLast = call.attributes.int('select_last_index', 0) === 1;
    const kept = x.shape.flatMap((dim, i) => (i !== axis ? [dim] : keepdim ? [1] : []));
    if (kept.includes(0)) return knownData('int64', kept, new BigInt64Array(0));
    const found = run(isLast ? sn.flip(x, axis) : x, axis, { keepdim });
    return Value.of(sn.cast(isLast ? sn.sub(x.shape[axis]! - 1, found) : found, hostType('int64')), 'int64');
  };
}

function running(run: typeof sn.cumsum): Row['run'] {
  return (call) => {
    const x = call.tensor(0);
    const options = {
      exclusive: call.attributes.int('exclusive', 0) === 1,
      reverse: call.attributes.int('reverse', 0) === 1,
    };
    return run(x, call.number(1)!, { ...options, dtype: x.dtype });
  };
}

const versions = [1, 11, 13, 18];

export const reduce: Rows = {
  ArgMax: row([1, 11, 12, 13], place(sn.argmax)),
  ArgMin: row([1, 11, 12, 13], place(sn.argmin)),
  CumProd: hosted([26], [1], running(sn.cumprod)),
  CumSum: hosted([11, 14], [1], running(sn.cumsum)),
  ReduceL1: reduction(versions, (x, axes, fold) => sum(absolute(x), axes, fold)),
  ReduceL2: reduction(versions, (x, axes, fold) =>
    inFloats(x, (wide) => sn.sqrt(sum(sn.square(wide), axes, fold))),
  ),
  ReduceLogSum: reduction(versions, (x, axes, fold) => inFloats(x, (wide) => sn.log(sum(wide, axes, fold)))),
  ReduceLogSumExp: reduction(versions, logSumExp),
  ReduceMax: reduction([1, 11, 12, 13, 18, 20], extremum(sn.amax, -1)),
  ReduceMean: reduction(versions, mean),
  ReduceMin: reduction([1, 11, 12, 13, 18, 20], extremum(sn.amin, 1)),
  ReduceProd: reduction(versions, (x, axes, fold) => sn.prod(x, axes, { ...fold, dtype: x.dtype })),
  ReduceSum: reduction([1, 11, 13], sum),
  ReduceSumSquare: reduction(versions, (x, axes, fold) => sum(sn.square(x), axes, fold)),
};
