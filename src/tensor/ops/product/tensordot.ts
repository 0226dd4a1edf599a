// Products of tensors over axes that the caller names, of all pairs, of vectors.

import type { DType } from '../../../ir/dtype.ts';
import type { Promoted } from '../../inferred.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { checkList, normalizeAxis, sizeOf } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { conj } from '../complex/complex.ts';
import { mul } from '../elementwise/arithmetic.ts';
import { calledAs, show } from '../operand.ts';
import { productType } from './contract.ts';
import { permute, reshape } from '../shape/view.ts';
import { dot, matmul } from './matmul.ts';

const takesTensordot = arg.takes<typeof tensordot>(
  ['the first operand', aTensor],
  ['the second operand', aTensor],
  ['axes', arg.inside()],
);

/**
 * The sum of products over pairs of axes: the last `axes` of x with the first ones of y (2 by
 * default), or those of two lists.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const y = sn.tensor([[1, 0], [2, 1], [0, 3]]);
 * sn.tensordot(x, y, 1);
 */
export function tensordot(
  x: Tensor,
  y: Tensor,
  axes: number | readonly [readonly number[], readonly number[]] = 2,
): Tensor {
  takesTensordot('tensordot', x, y, axes);
  return overPairs('tensordot', x, y, axes);
}

function overPairs(
  op: string,
  x: Tensor,
  y: Tensor,
  axes: number | readonly [readonly number[], readonly number[]],
): Tensor {
  const [left, right] = pairsOf(x, y, axes);
  const fits = left.length === right.length && left.every((axis, i) => x.shape[axis] === y.shape[right[i]!]);
  if (!fits || new Set(left).size !== left.length || new Set(right).size !== right.length) {
    const problem = `axes [${left.join(',')}] and [${right.join(',')}] do not pair: ${show(x, y)}`;
    throw new TensorError('E_SHAPE', 'tensordot', problem);
  }
  const kept = (operand: Tensor, used: readonly number[]): number[] =>
    operand.shape.map((_, axis) => axis).filter((axis) => !used.includes(axis));
  const [rows, columns] = [kept(x, left), kept(y, right)];
  const inner = sizeOf(left.map((axis) => x.shape[axis]!));
  const [rowSizes, columnSizes] = [rows.map((axis) => x.shape[axis]!), columns.map((axis) => y.shape[axis]!)];
  productType(op, x, y);
  const product = matmul(
    reshape(permute(x, [...rows, ...left]), [sizeOf(rowSizes), inner]),
    reshape(permute(y, [...right, ...columns]), [inner, sizeOf(columnSizes)]),
  );
  return reshape(product, [...rowSizes, ...columnSizes]);
}

function pairsOf(
  x: Tensor,
  y: Tensor,
  axes: number | readonly [readonly number[], readonly number[]],
): [number[], number[]] {
  if (typeof axes === 'number') {
    if (!arg.count(0).accepts(axes)) arg.count(0).refuse('tensordot', 'the number of axes', axes);
    if (axes > Math.min(x.rank, y.rank))
      throw new TensorError('E_AXIS', 'tensordot', `there are no ${axes} axes to sum over: ${show(x, y)}`);
    return [
      Array.from({ length: axes }, (_, i) => x.rank - axes + i),
      Array.from({ length: axes }, (_, i) => i),
    ];
  }
  checkList('tensordot', 'axes', axes);
  const [left, right] = axes;
  checkList('tensordot', 'axes of the first operand', left);
  checkList('tensordot', 'axes of the second operand', right);
  return [
    Array.from(left, (axis) => normalizeAxis('tensordot', axis, x.rank)),
    Array.from(right, (axis) => normalizeAxis('tensordot', axis, y.rank)),
  ];
}

const takesPair = arg.takes<(x: Tensor, y: Tensor) => Tensor>(
  ['the first operand', aTensor],
  ['the second operand', aTensor],
);

/**
 * The sums of products over the last axes of both; with a number, the product.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const w = sn.tensor([[1, 0, 2], [3, 1, 0]]);
 * sn.inner(x, w);
 */
export function inner<A extends DType, B extends DType>(x: Tensor<A>, y: Tensor<B>): Tensor<Promoted<A, B>> {
  takesPair('inner', x, y);
  if (x.rank === 0 || y.rank === 0) return mul(x, y);
  if (x.shape.at(-1) !== y.shape.at(-1))
    throw new TensorError('E_SHAPE', 'inner', `last axes differ: ${show(x, y)}`);
  return overPairs('inner', x, y, [[-1], [-1]]);
}

/**
 * The inner product of two vectors; of complex ones, with the first conjugated.
 *
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * sn.vdot(v, v);
 */
export function vdot<A extends DType, B extends DType>(x: Tensor<A>, y: Tensor<B>): Tensor<Promoted<A, B>> {
  takesPair('vdot', x, y);
  return calledAs('vdot', () => dot(conj(x), y));
}

/**
 * Every element of x times all of y, as blocks: the Kronecker product.
 *
 * @example
 * const u = sn.tensor([1, -1]);
 * const s = sn.tensor([[1, 2], [3, 4]]);
 * sn.kron(s, u);
 */
export function kron<A extends DType, B extends DType>(x: Tensor<A>, y: Tensor<B>): Tensor<Promoted<A, B>> {
  takesPair('kron', x, y);
  const rank = Math.max(x.rank, y.rank);
  const sizes = (operand: Tensor): number[] => [
    ...new Array<number>(rank - operand.rank).fill(1),
    ...operand.shape,
  ];
  const [outer, within] = [sizes(x), sizes(y)];
  const product = mul(
    reshape(
      x,
      outer.flatMap((dim) => [dim, 1]),
    ),
    reshape(
      y,
      within.flatMap((dim) => [1, dim]),
    ),
  );
  return reshape(
    product,
    outer.map((dim, i) => dim * within[i]!),
  );
}
