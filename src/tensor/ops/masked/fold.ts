// Masked sums, products, extrema and their places, means, variances, norms and medians.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { binary, cast, div, full, reduceKeep, reshape, sub, unary } from '../../../ir/build.ts';
import { partType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, checkFloat, checkNotComplex, checkNotEmpty } from '../operand.ts';
import type { Axes } from '../reduce/axes.ts';
import { nanmedian } from '../statistics/order.ts';
import {
  checkMask,
  endOf,
  floatOf,
  keptOr,
  maskedFold,
  maskedReduceOptions,
  normNode,
  takesMaskedReduce,
  type MaskedReduceOptions,
} from './masks.ts';

/**
 * Σ of the elements where the mask is true; 0 over nothing.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.sum(x, 1, { mask });
 */
export function sum(x: Tensor, axes?: Axes, options: MaskedReduceOptions = {}): Tensor {
  takesMaskedReduce('masked.sum', x, axes, options);
  return folded('masked.sum', 'sum', x, axes, options);
}

/**
 * Π of the elements where the mask is true; 1 over nothing.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.prod(x, 1, { mask });
 */
export function prod(x: Tensor, axes?: Axes, options: MaskedReduceOptions = {}): Tensor {
  takesMaskedReduce('masked.prod', x, axes, options);
  return folded('masked.prod', 'prod', x, axes, options);
}

function folded(
  op: string,
  monoid: 'sum' | 'prod',
  x: Tensor,
  axes: Axes | undefined,
  options: MaskedReduceOptions,
): Tensor {
  const dtype = options.dtype ?? formula.sumType(x.dtype);
  if (dtype === 'bool') throw new TensorError('E_DTYPE', op, 'cannot accumulate in bool', "dtype: 'i32'");
  return maskedFold(op, x, axes, options, dtype, (b, node, mask, list) =>
    reduceKeep(b, monoid, keptOr(b, node, mask, monoid === 'sum' ? 0 : 1), list),
  );
}

function extremum(
  op: string,
  monoid: 'min' | 'max',
  x: Tensor,
  axes: Axes | undefined,
  options: MaskedReduceOptions,
): Tensor {
  checkNotComplex(op, x);
  const dtype = options.dtype ?? x.dtype;
  return maskedFold(op, x, axes, options, dtype, (b, node, mask, list) => {
    if (list.some((axis) => x.shape[axis] === 0)) checkNotEmpty(op, x, list);
    const kept = keptOr(b, node, mask, endOf(node.dtype, monoid === 'min'));
    const fold = node.dtype === 'bool' ? (monoid === 'max' ? 'or' : 'and') : monoid;
    return reduceKeep(b, fold, kept, list);
  });
}

/**
 * The greatest elements where the mask is true; −∞ or the least integer over nothing.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.amax(x, 1, { mask });
 */
export function amax(x: Tensor, axes?: Axes, options: MaskedReduceOptions = {}): Tensor {
  takesMaskedReduce('masked.amax', x, axes, options);
  return extremum('masked.amax', 'max', x, axes, options);
}

/**
 * The least elements where the mask is true; ∞ or the greatest integer over nothing.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.amin(x, 1, { mask });
 */
export function amin(x: Tensor, axes?: Axes, options: MaskedReduceOptions = {}): Tensor {
  takesMaskedReduce('masked.amin', x, axes, options);
  return extremum('masked.amin', 'min', x, axes, options);
}

const takesArgmax = arg.takes<typeof argmax>(
  ['the operand', aTensor],
  ['axis', arg.optional(arg.integer)],
  ['options', arg.options<MaskedReduceOptions>(maskedReduceOptions)],
);

function place(
  op: string,
  monoid: 'min' | 'max',
  x: Tensor,
  axis: number | undefined,
  options: MaskedReduceOptions,
): Tensor {
  checkNotComplex(op, x);
  checkMask(op, x, options.mask);
  const isWhole = axis === undefined || x.rank === 0;
  const at = axis === undefined ? 0 : normalizeAxis(op, axis, Math.max(1, x.rank));
  checkNotEmpty(op, x, isWhole ? x.shape.map((_, i) => i) : [at]);
  return apply([x, options.mask], (b, node, mask) => {
    const wide = options.dtype === undefined ? node : cast(b, node, options.dtype);
    const kept = keptOr(b, wide, mask, endOf(wide.dtype, monoid === 'min'));
    const line = isWhole ? reshape(b, kept, [x.size]) : kept;
    const found = b.add('argReduce', [line], { monoid, axis: isWhole ? 0 : at }) as Node;
    const shape = isWhole ? x.shape.map(() => 1) : x.shape.with(at, 1);
    return options.keepdim === true ? reshape(b, found, shape) : found;
  });
}

/**
 * The i32 places of the greatest elements where the mask is true; the first over nothing.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.argmax(x, 1, { mask });
 */
export function argmax(x: Tensor, axis?: number, options: MaskedReduceOptions = {}): Tensor<'i32'> {
  takesArgmax('masked.argmax', x, axis, options);
  return place('masked.argmax', 'max', x, axis, options);
}

/**
 * The i32 places of the least elements where the mask is true; the first over nothing.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.argmin(x, 1, { mask });
 */
export function argmin(x: Tensor, axis?: number, options: MaskedReduceOptions = {}): Tensor<'i32'> {
  takesArgmax('masked.argmin', x, axis, options);
  return place('masked.argmin', 'min', x, axis, options);
}

/** How many elements count, in the dtype of x's parts, axes kept. */
function countOf(b: GraphBuilder, x: Node, mask: Node | undefined, axes: readonly number[]): Node {
  return reduceKeep(b, 'sum', keptOr(b, full(b, dims(x), 1, partType(x.dtype)), mask, 0), axes);
}

function meanOf(b: GraphBuilder, x: Node, mask: Node | undefined, axes: readonly number[]): Node {
  const count = cast(b, countOf(b, x, mask, axes), x.dtype);
  return div(b, reduceKeep(b, 'sum', keptOr(b, x, mask, 0), axes), count);
}

/**
 * Mean of the elements where the mask is true, integers as f32; NaN over nothing.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.mean(x, 1, { mask });
 */
export function mean(x: Tensor, axes?: Axes, options: MaskedReduceOptions = {}): Tensor {
  takesMaskedReduce('masked.mean', x, axes, options);
  return maskedFold('masked.mean', x, axes, options, floatOf(x, options), meanOf);
}

export interface MaskedVarOptions extends MaskedReduceOptions {
  /** Squares are divided by the number of elements less this: 1 by default. */
  readonly correction?: number;
}

const takesVariance = arg.takes<typeof variance>(
  ['the operand', aTensor],
  ['axes', arg.inside()],
  ['options', arg.options<MaskedVarOptions>({ ...maskedReduceOptions, correction: arg.finite })],
);

function spread(
  op: string,
  x: Tensor,
  axes: Axes | undefined,
  { correction = 1, ...options }: MaskedVarOptions,
  root: boolean,
): Tensor {
  return maskedFold(op, x, axes, options, floatOf(x, options), (b, node, mask, list) => {
    const centre = meanOf(b, node, mask, list);
    const away = keptOr(b, sub(b, node, formula.spreadTo(b, centre, node)), mask, 0);
    const squares = reduceKeep(b, 'sum', formula.squaredSize(b, away), list);
    const count = binary(b, 'max', sub(b, countOf(b, node, mask, list), correction), 0);
    const result = div(b, squares, count);
    return root ? unary(b, 'sqrt', result) : result;
  });
}

/**
 * Variance of the elements where the mask is true; unbiased unless `correction: 0`.
 *
 * @names masked.var
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.var(x, 1, { mask });
 */
export function variance(x: Tensor, axes?: Axes, options: MaskedVarOptions = {}): Tensor {
  takesVariance('masked.var', x, axes, options);
  return spread('masked.var', x, axes, options, false);
}

/**
 * Standard deviation of the elements where the mask is true.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.std(x, 1, { mask });
 */
export function std(x: Tensor, axes?: Axes, options: MaskedVarOptions = {}): Tensor {
  takesVariance('masked.std', x, axes, options);
  return spread('masked.std', x, axes, options, true);
}

const takesNorm = arg.takes<typeof norm>(
  ['the operand', aTensor],
  ['p', arg.optional(arg.number)],
  ['axes', arg.inside()],
  ['options', arg.options<MaskedReduceOptions>(maskedReduceOptions)],
);

/**
 * (Σ |x|^p)^(1/p) of the elements where the mask is true.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.norm(x, 2, 1, { mask });
 */
export function norm(x: Tensor, p = 2, axes?: Axes, options: MaskedReduceOptions = {}): Tensor {
  takesNorm('masked.norm', x, p, axes, options);
  return maskedFold('masked.norm', x, axes, options, floatOf(x, options), (b, node, mask, list) =>
    normNode(b, node, mask, p, list),
  );
}

const takesMedian = arg.takes<typeof median>(
  ['the operand', aTensor],
  ['axis', arg.inside()],
  ['options', arg.options<MaskedReduceOptions>(maskedReduceOptions)],
);

/**
 * The lower of the middle elements along an axis where the mask is true; NaN over nothing.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.median(x, 1, { mask });
 */
export function median(x: Tensor, axis = -1, options: MaskedReduceOptions = {}): Tensor {
  takesMedian('masked.median', x, axis, options);
  const { mask, keepdim, dtype } = options;
  checkFloat('masked.median', x);
  checkMask('masked.median', x, mask);
  normalizeAxis('masked.median', axis, Math.max(1, x.rank));
  const kept = apply([x, mask], (b, node, given) => keptOr(b, cast(b, node, dtype ?? x.dtype), given, NaN));
  return nanmedian(kept, axis, keepdim === undefined ? {} : { keepdim });
}

/**
 * log Σ eˣ of the elements where the mask is true; −∞ over nothing.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.masked.logsumexp(x, 1, { mask });
 */
export function logsumexp(x: Tensor, axes?: Axes, options: MaskedReduceOptions = {}): Tensor {
  takesMaskedReduce('masked.logsumexp', x, axes, options);
  checkNotComplex('masked.logsumexp', x);
  return maskedFold('masked.logsumexp', x, axes, options, floatOf(x, options), (b, node, mask, list) =>
    formula.logSumExp(b, keptOr(b, node, mask, -Infinity), list),
  );
}
