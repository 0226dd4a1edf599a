// What all masked operations share: elements where the mask is false are replaced by the identity of
// the fold, so that they count for nothing. The mask broadcasts to the operand (torch.masked).

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { broadcast, cast, fullLike, where } from '../../../ir/build.ts';
import { integerRange, isFloat, isInexact, type DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { normOf, wideType } from '../../formula/elementwise.ts';
import { apply, checkImaginaryKept, checkMaskType, commonShape, show } from '../operand.ts';
import { axesOf, dropKeptAxes, type Axes, type ReduceOptions, reduceOptions } from '../reduce/axes.ts';

export interface MaskOptions {
  /** Which elements count: a bool tensor that broadcasts to the operand; all by default. */
  readonly mask?: Tensor;
  /** The dtype to compute in and to give; x's by default. */
  readonly dtype?: DType;
}

/** @internal */
export const maskOptions: arg.Table<MaskOptions> = { mask: aTensor, dtype: arg.dtype };

export interface MaskedReduceOptions extends ReduceOptions, MaskOptions {}

/** @internal */
export const maskedReduceOptions: arg.Table<MaskedReduceOptions> = { ...reduceOptions, ...maskOptions };

/** Checks the arguments of a masked reduction. @internal */
export const takesMaskedReduce: arg.Signature<
  [x: Tensor, axes?: Axes | undefined, options?: MaskedReduceOptions | undefined]
> = arg.takes<(x: Tensor, axes?: Axes, options?: MaskedReduceOptions) => Tensor>(
  ['the operand', aTensor],
  ['axes', arg.inside()],
  ['options', arg.options<MaskedReduceOptions>(maskedReduceOptions)],
);

/** The mask must be bool and broadcast to x. @internal */
export function checkMask(op: string, x: Tensor, mask: Tensor | undefined): void {
  if (mask === undefined) return;
  checkMaskType(op, mask);
  const shape = commonShape(op, [x, mask]);
  if (shape.length !== x.rank || shape.some((dim, axis) => dim !== x.shape[axis]))
    throw new TensorError('E_SHAPE', op, `the mask must broadcast to x: ${show(x, mask)}`);
}

/** x where the mask is true, elsewhere a number. @internal */
export function keptOr(b: GraphBuilder, x: Node, mask: Node | undefined, value: number | bigint): Node {
  return mask === undefined ? x : where(b, broadcast(b, mask, dims(x)), x, fullLike(b, x, value));
}

/** What the least or the greatest of nothing is. @internal */
export function endOf(dtype: DType, greatest: boolean): number | bigint {
  if (dtype === 'bool') return greatest ? 1 : 0;
  if (isFloat(dtype)) return greatest ? Infinity : -Infinity;
  return integerRange(dtype)[greatest ? 1 : 0];
}

/** Records a masked fold that keeps its axes, over x in a wide dtype. @internal */
export function maskedFold(
  op: string,
  x: Tensor,
  axes: Axes | undefined,
  options: MaskedReduceOptions,
  dtype: DType,
  make: (b: GraphBuilder, x: Node, mask: Node | undefined, axes: readonly number[]) => Node,
): Tensor {
  checkMask(op, x, options.mask);
  checkImaginaryKept(op, x, dtype);
  const list = axesOf(op, axes, x);
  return apply([x, options.mask], (b, node, mask) => {
    const kept = make(b, cast(b, node, wideType(dtype)), mask, list);
    return dropKeptAxes(b, cast(b, kept, options.dtype ?? dtype), list, options.keepdim === true);
  });
}

/** The dtype that a mean or a norm is computed in: floats and complex numbers as they are, others as f32. @internal */
export function floatOf(x: Tensor, { dtype }: MaskOptions): DType {
  if (dtype !== undefined && isInexact(dtype)) return dtype;
  return isInexact(x.dtype) ? x.dtype : 'f32';
}

/** (Σ |x|^p)^(1/p) of the elements where the mask is true, axes kept. @internal */
export function normNode(
  b: GraphBuilder,
  x: Node,
  mask: Node | undefined,
  p: number,
  axes: readonly number[],
): Node {
  return normOf(b, keptOr(b, x, mask, p < 0 ? Infinity : 0), p, axes);
}
