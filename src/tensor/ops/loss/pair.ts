// Losses of distances between vectors: pairs, triplets and rankings.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  add,
  binary,
  cast,
  div,
  fullLike,
  mul,
  neg,
  reduce,
  reshape,
  sub,
  unary,
  where,
} from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { integerRange, isComplex, isFloat, type DType, type FloatDType } from '../../../ir/dtype.ts';
import { anOperand, aTensor } from '../../expect.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { hinge, lossOptions, reduced, type LossOptions } from '../loss-reduction.ts';
import { checkNotComplex, fit, operandType, resultType, show } from '../operand.ts';
import { pairwiseDistance } from '../spectral/distance.ts';
import { toInt } from '../elementwise/cast.ts';
import { unsqueeze } from '../shape/view.ts';
import { minimum, sub as subtract } from '../elementwise/arithmetic.ts';

/** Floats as they are, in f32 for 16-bit ones; integers as f32. */
function asFloat(b: GraphBuilder, x: Node): Node {
  return cast(b, x, isFloat(x.dtype) ? formula.wideType(x.dtype) : 'f32');
}

/** The dtype of the result, and that in which operands are subtracted and multiplied. */
function dtypesOf(op: string, operands: readonly TensorLike[]): { result: DType; operand: DType } {
  const common = operandType(op, operands, 'number');
  return isFloat(common)
    ? { result: common, operand: formula.wideType(common) }
    : { result: 'f32', operand: common };
}

/**
 * ‖x − y + eps‖ₚ along the last axis; a kept axis has size 1. Integers are subtracted as such, and
 * wrap.
 */
function distanceOf(b: GraphBuilder, x: Node, y: Node, p: number, eps: number, keepdim = false): Node {
  const difference = add(b, asFloat(b, sub(b, x, y)), eps);
  const shape = dims(difference);
  if (shape.length === 0) return formula.normOf(b, difference, p, []);
  const size = formula.normOf(b, difference, p, [shape.length - 1]);
  return keepdim ? size : reshape(b, size, shape.slice(0, -1));
}

export interface MarginOptions extends LossOptions {
  /** 0 by default. */
  readonly margin?: number;
}

/** @internal */
export const marginOptions: arg.Table<MarginOptions> = { ...lossOptions, margin: arg.number };

const takesMarginRanking = arg.takes<typeof marginRankingLoss>(
  ['x', aTensor],
  ['y', aTensor],
  ['the target', anOperand],
  ['options', arg.options<MarginOptions>(marginOptions)],
);

/**
 * max(0, −target·(x − y) + margin): the target is 1 where x should rank above y, −1 below.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 0, 1], [1, 5, 0]]);
 * const signs = sn.tensor([[1, -1, 1], [1, 1, -1]]);
 * sn.marginRankingLoss(x, y, signs);
 */
export function marginRankingLoss(
  x: Tensor,
  y: Tensor,
  target: TensorLike,
  options: MarginOptions = {},
): Tensor<FloatDType> {
  takesMarginRanking('marginRankingLoss', x, y, target, options);
  const { margin = 0, reduction = 'mean' } = options;
  const dtype = operandType('marginRankingLoss', [x, y, target], 'realFloat');
  return fit(
    'marginRankingLoss',
    [x, y, target],
    () => formula.wideType(dtype),
    (b, left, right, sign) => {
      const gap = add(b, mul(b, neg(b, sign), sub(b, left, right)), margin);
      return cast(b, reduced(b, hinge(b, gap), reduction), dtype);
    },
  );
}

/** −1 as a dtype holds it: unsigned integers wrap. */
function minusOneOf(dtype: DType): number {
  return /^u\d/.test(dtype) ? Number(integerRange(dtype)[1]) : -1;
}

const takesCosineEmbedding = arg.takes<typeof cosineEmbeddingLoss>(
  ['x', aTensor],
  ['y', aTensor],
  ['the target', aTensor],
  ['options', arg.options<MarginOptions>(marginOptions)],
);

/**
 * 1 − cos(x, y) where the target is 1, max(0, cos(x, y) − margin) where it is −1: for rows [N, D]
 * and targets [N], or one pair. A target of unsigned integers has its greatest for −1.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 0, 1], [1, 5, 0]]);
 * const side = sn.tensor([1, -1]);
 * sn.cosineEmbeddingLoss(x, y, side);
 */
export function cosineEmbeddingLoss(
  x: Tensor,
  y: Tensor,
  target: Tensor,
  options: MarginOptions = {},
): Tensor<FloatDType> {
  takesCosineEmbedding('cosineEmbeddingLoss', x, y, target, options);
  const op = 'cosineEmbeddingLoss';
  const { margin = 0, reduction = 'mean' } = options;
  checkNotComplex(op, x, y, target);
  if (x.rank !== y.rank || (x.rank !== 1 && x.rank !== 2) || target.rank !== x.rank - 1)
    throw new TensorError('E_SHAPE', op, `expects [N,D], [N,D] and [N]: ${show(x, y, target)}`);
  // bool has no products.
  const [left, right] = [x, y].map((at) => (at.dtype === 'bool' ? toInt(at) : at)) as [Tensor, Tensor];
  const { result, operand } = dtypesOf(op, [left, right]);
  return fit(
    op,
    [left, right, unsqueeze(target, -1)],
    (_, place) => (place < 2 ? operand : 'f32'),
    (b, p, q, sign) => {
      const last = dims(p).length - 1;
      const sums = (u: Node, v: Node): Node => reduce(b, 'sum', asFloat(b, mul(b, u, v)), [last]);
      // PyTorch's: eps stands under the root.
      const size = (node: Node): Node => add(b, sums(node, node), 1e-12);
      const cosine = div(b, sums(p, q), unary(b, 'sqrt', mul(b, size(p), size(q))));
      const targets = reduce(b, 'max', sign, [last]);
      const zero = fullLike(b, cosine, 0);
      const near = where(b, binary(b, 'eq', targets, 1), sub(b, 1, cosine), zero);
      const far = where(
        b,
        binary(b, 'eq', targets, minusOneOf(target.dtype)),
        hinge(b, sub(b, cosine, margin)),
        zero,
      );
      return cast(b, reduced(b, add(b, near, far), reduction), result);
    },
  );
}

export interface TripletOptions extends LossOptions {
  /** 1 by default. */
  readonly margin?: number;
  /**
   * Takes the distance of positive and negative where it is less (Balntas et al., 2016); false by
   * default.
   */
  readonly swap?: boolean;
}

export interface TripletMarginOptions extends TripletOptions {
  /** Which norm, 2 by default. */
  readonly p?: number;
  /** Added to every difference; 1e-6 by default. */
  readonly eps?: number;
}

const tripletOptions: arg.Table<TripletOptions> = { ...lossOptions, margin: arg.number, swap: arg.flag };
/** @internal */
export const tripletMarginOptions: arg.Table<TripletMarginOptions> = {
  ...tripletOptions,
  p: arg.number,
  eps: arg.number,
};
const takesTripletMargin = arg.takes<typeof tripletMarginLoss>(
  ['the anchor', aTensor],
  ['the positive', aTensor],
  ['the negative', aTensor],
  ['options', arg.options<TripletMarginOptions>(tripletMarginOptions)],
);

/**
 * max(0, d(anchor, positive) − d(anchor, negative) + margin) along the last axis.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 0, 1], [1, 5, 0]]);
 * const z = sn.tensor([[0, 1, 1], [2, 0, 3]]);
 * sn.tripletMarginLoss(x, y, z);
 */
export function tripletMarginLoss(
  anchor: Tensor,
  positive: Tensor,
  negative: Tensor,
  options: TripletMarginOptions = {},
): Tensor<FloatDType> {
  takesTripletMargin('tripletMarginLoss', anchor, positive, negative, options);
  const { margin = 1, swap = false, p = 2, eps = 1e-6, reduction = 'mean' } = options;
  const op = 'tripletMarginLoss';
  if (isComplex(resultType([anchor, positive, negative]))) {
    const distance = (x: Tensor, y: Tensor): Tensor => pairwiseDistance(x, y, { p, eps });
    return tripletMarginWithDistanceLoss(anchor, positive, negative, { margin, swap, reduction, distance });
  }
  const { result, operand } = dtypesOf(op, [anchor, positive, negative]);
  return fit(
    op,
    [anchor, positive, negative],
    () => operand,
    (b, a, near, far) => {
      const away = distanceOf(b, a, far, p, eps);
      const other = swap ? binary(b, 'min', away, distanceOf(b, near, far, p, eps)) : away;
      const gap = add(b, sub(b, distanceOf(b, a, near, p, eps), other), margin);
      return cast(b, reduced(b, hinge(b, gap), reduction), result);
    },
  );
}

export interface TripletDistanceOptions extends TripletOptions {
  /** The distance of two tensors; `pairwiseDistance` by default. */
  readonly distance?: (x: Tensor, y: Tensor) => Tensor;
}

/** @internal */
export const tripletDistanceOptions: arg.Table<TripletDistanceOptions> = {
  ...tripletOptions,
  distance: arg.callable<(x: Tensor, y: Tensor) => Tensor>(),
};
const takesTripletDistance = arg.takes<typeof tripletMarginWithDistanceLoss>(
  ['the anchor', aTensor],
  ['the positive', aTensor],
  ['the negative', aTensor],
  ['options', arg.options<TripletDistanceOptions>(tripletDistanceOptions)],
);

/**
 * `tripletMarginLoss` with any function as its distance.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 0, 1], [1, 5, 0]]);
 * const z = sn.tensor([[0, 1, 1], [2, 0, 3]]);
 * sn.tripletMarginWithDistanceLoss(x, y, z);
 */
export function tripletMarginWithDistanceLoss(
  anchor: Tensor,
  positive: Tensor,
  negative: Tensor,
  options: TripletDistanceOptions = {},
): Tensor<FloatDType> {
  takesTripletDistance('tripletMarginWithDistanceLoss', anchor, positive, negative, options);
  const op = 'tripletMarginWithDistanceLoss';
  const { margin = 1, swap = false, reduction = 'mean', distance = pairwiseDistance } = options;
  if (options.distance === undefined) operandType(op, [anchor, positive, negative], 'number');
  const near = distance(anchor, positive);
  if (!aTensor.accepts(near)) aTensor.refuse(op, 'the distance', near);
  const far = distance(anchor, negative);
  const other = swap ? minimum(far, distance(positive, negative)) : far;
  const gap = subtract(near, other);
  const dtype = isFloat(gap.dtype) ? gap.dtype : 'f32';
  return fit(
    op,
    [gap],
    () => formula.wideType(dtype),
    (b, node) => cast(b, reduced(b, hinge(b, add(b, node, margin)), reduction), dtype),
  );
}
