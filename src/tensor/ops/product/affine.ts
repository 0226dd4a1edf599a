// β·x + α·(a product): what PyTorch has of matrices, vectors and batches of them.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { isInexact } from '../../../ir/dtype.ts';
import { anOperand, aTensor } from '../../expect.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import { add, mul } from '../elementwise/arithmetic.ts';
import { calledAs, casted, resultType, show } from '../operand.ts';
import { sum } from '../reduce/reduce.ts';
import { expand } from '../shape/view.ts';
import { bmm, mm, mv, outer } from './matmul.ts';

export interface AffineOptions {
  /** Factor on x, 1 by default; with 0, x is not looked at. Integers take the whole part. */
  readonly beta?: TensorLike;
  /** Factor on the product, 1 by default. Integers take the whole part. */
  readonly alpha?: TensorLike;
}

type Affine = (x: Tensor, first: Tensor, second: Tensor, options?: AffineOptions) => Tensor;

const takesAffine = arg.takes<Affine>(
  ['x', aTensor],
  ['the first factor', aTensor],
  ['the second factor', aTensor],
  ['options', arg.options<AffineOptions>({ beta: anOperand, alpha: anOperand })],
);

/* @__NO_SIDE_EFFECTS__ */
function affine(op: string, product: (first: Tensor, second: Tensor) => Tensor): Affine {
  return (given, first, second, options = {}) => {
    takesAffine(op, given, first, second, options);
    const x = casted(op, given);
    const { beta = 1, alpha = 1 } = options;
    const made = calledAs(op, () => product(casted(op, first), casted(op, second)));
    const dtype = resultType([x, made]);
    const factor = (value: TensorLike): TensorLike =>
      isInexact(dtype) || typeof value === 'object' ? value : Math.trunc(Number(value));
    const fits =
      x.rank <= made.rank &&
      x.shape.every((dim, i) => dim === 1 || dim === made.shape[i + made.rank - x.rank]);
    if (!fits) {
      const problem = `x does not broadcast to the product: ${show(x)} beside ${show(made)}`;
      throw new TensorError('E_SHAPE', op, problem);
    }
    const scaled = scale(made, factor(alpha), dtype === 'bool');
    if (factor(beta) === 0) return scaled;
    return add(scale(expand(x, made.shape), factor(beta), dtype === 'bool'), scaled);
  };
}

/** A factor of bool is whether there is one. */
function scale(x: Tensor, factor: TensorLike, isBool: boolean): Tensor {
  if (factor === 1) return x;
  return mul(x, isBool ? factor !== 0 : factor);
}

/**
 * β·x + α·(first @ second) of matrices.
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const y = sn.tensor([[1, 0], [2, 1], [0, 3]]);
 * const s = sn.tensor([[1, 2], [3, 4]]);
 * sn.addmm(s, x, y);
 */
export const addmm: Affine = affine('addmm', mm);
/**
 * β·x + α·(matrix @ vector).
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const v = sn.tensor([1, 2, 3]);
 * const u = sn.tensor([1, -1]);
 * sn.addmv(u, x, v);
 */
export const addmv: Affine = affine('addmv', mv);
/**
 * β·x + α·(the outer product of two vectors).
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const v = sn.tensor([1, 2, 3]);
 * const u = sn.tensor([1, -1]);
 * sn.addr(x, u, v);
 */
export const addr: Affine = affine('addr', outer);
/**
 * β·x + α·(the products of two batches of matrices).
 *
 * @example
 * const bx = sn.linspace(0, 5, 6).reshape([1, 2, 3]);
 * const by = sn.ones([1, 3, 2]);
 * const s = sn.tensor([[1, 2], [3, 4]]);
 * sn.baddbmm(s, bx, by);
 */
export const baddbmm: Affine = affine('baddbmm', bmm);
/**
 * β·x + α·(the sum of the products of two batches of matrices).
 *
 * @example
 * const bx = sn.linspace(0, 5, 6).reshape([1, 2, 3]);
 * const by = sn.ones([1, 3, 2]);
 * const s = sn.tensor([[1, 2], [3, 4]]);
 * sn.addbmm(s, bx, by);
 */
export const addbmm: Affine = affine('addbmm', (first, second) => {
  const products = bmm(first, second);
  return sum(products, 0, { dtype: products.dtype });
});
