// Softmax and its logarithm over axes: plain reduce, broadcast and elementwise nodes, which fuse
// into one kernel per row.

import type { Floated } from '../../inferred.ts';
import { cast, neg } from '../../../ir/build.ts';
import * as arg from '../../../ir/arguments.ts';
import { isComplex, isFloat, isInteger, type DType } from '../../../ir/dtype.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import { normalizeAxes } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { cast as castTo } from '../elementwise/cast.ts';
import { neg as negate } from '../elementwise/elementwise.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, casted, checkFloat, takesOne } from '../operand.ts';
import type { Axes } from './axes.ts';

export interface SoftmaxOptions<T extends DType = DType> {
  /** The result's dtype; x's own by default. */
  readonly dtype?: T;
}

function overRows(
  op: string,
  given: Tensor,
  axes: Axes,
  options: SoftmaxOptions,
  make: (b: GraphBuilder, x: Node, axes: readonly number[]) => Node,
): Tensor {
  const x = casted(op, given);
  const { dtype } = options;
  // As PyTorch: a real dtype takes the real part of complex numbers.
  if (isComplex(x.dtype) && dtype !== undefined && !isComplex(dtype))
    return overRows(op, castTo(x, dtype), axes, options, make);
  // Integers are computed in the dtype of the result, where one is wanted.
  const isWhole = !isFloat(x.dtype) && dtype !== undefined && isFloat(dtype);
  if (!isWhole) checkFloat(op, x);
  const list = x.rank === 0 ? [] : normalizeAxes(op, axes, x.rank);
  return apply([x], (b, node) => {
    const wide = cast(b, node, formula.wideType(isWhole ? dtype : x.dtype));
    return cast(b, make(b, wide, list), dtype ?? x.dtype);
  });
}

const takesSoftmax = arg.takes<typeof softmax>(
  ['the operand', aTensor],
  ['axes', arg.inside()],
  ['options', arg.options<SoftmaxOptions>({ dtype: arg.dtype })],
);

/**
 * eˣ / Σ eˣ along an axis (the last by default) or several; a row of −∞ alone gives NaN.
 *
 * @names softmax, special.softmax
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.softmax(x, 1);
 */
export function softmax<D extends DType, T extends DType = Floated<D>>(
  x: Tensor<D>,
  axes: Axes = -1,
  options: SoftmaxOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesSoftmax('softmax', x, axes, options);
  return overRows('softmax', x, axes, options, formula.softmax);
}

/**
 * log softmax, without its rounding: (x − max) − log Σ e^(x − max).
 *
 * @names logSoftmax, special.logSoftmax
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.logSoftmax(x, 1);
 */
export function logSoftmax<D extends DType, T extends DType = Floated<D>>(
  x: Tensor<D>,
  axes: Axes = -1,
  options: SoftmaxOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesSoftmax('logSoftmax', x, axes, options);
  return overRows('logSoftmax', x, axes, options, formula.logSoftmax);
}

/**
 * softmax(−x); integers are negated as such, so that unsigned ones wrap, as in PyTorch.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.softmin(x, 1);
 */
export function softmin<D extends DType, T extends DType = Floated<D>>(
  x: Tensor<D>,
  axes: Axes = -1,
  options: SoftmaxOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesSoftmax('softmin', x, axes, options);
  const negated = isInteger(x.dtype) ? negate(x) : x;
  return overRows('softmin', negated, axes, options, (b, node, list) =>
    formula.softmax(b, negated === x ? neg(b, node) : node, list),
  );
}

/**
 * softmax over the channels of [N,C,H,W] or [C,H,W].
 *
 * @example
 * const image = sn.linspace(0, 1.75, 8).reshape([1, 4, 1, 2]);
 * sn.softmax2d(image);
 */
export function softmax2d<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
  takesOne('softmax2d', x);
  return overRows('softmax2d', x, -3, {}, formula.softmax);
}
