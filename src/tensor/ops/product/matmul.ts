// Matrix products of every rank PyTorch allows; the contraction itself is contract.ts.

import type { Promoted } from '../../inferred.ts';
import { TensorError } from '../../../errors.ts';
import * as formula from '../../formula/elementwise.ts';
import { add, binary, broadcast, cast, mul, reduce, reshape } from '../../../ir/build.ts';
import * as arg from '../../../ir/arguments.ts';
import { type DType } from '../../../ir/dtype.ts';
import { dims } from '../../../ir/graph.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import { apply, checkRank, operandType, show, takesOne, type Common } from '../operand.ts';
import { productType, leadingAxes, matmulNodes, contract } from './contract.ts';
import { diagonalOf } from '../../formula/layout.ts';

export interface MatmulOptions {
  /**
   * The result's dtype, without an intermediate rounding to the operands' dtype; the operands' by
   * default.
   */
  readonly dtype?: DType;
}

const takesPair = arg.takes<typeof matmul>(
  ['the first operand', aTensor],
  ['the second operand', aTensor],
  ['options', arg.options<MatmulOptions>({ dtype: arg.dtype })],
);

/**
 * The matrix product of the last two axes; leading axes broadcast. A vector on the left is a row,
 * on the right a column, and that axis vanishes; two vectors give their inner product.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const y = sn.tensor([[1, 0], [2, 1], [0, 3]]);
 * sn.matmul(x, y);
 * @example <caption>bf16</caption>
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const y = sn.tensor([[1, 0], [2, 1], [0, 3]]);
 * sn.matmul(x.cast('bf16'), y.cast('bf16'), { dtype: 'f32' });
 * @example <caption>vector</caption>
 * const y = sn.tensor([[1, 0], [2, 1], [0, 3]]);
 * const v = sn.tensor([1, 2, 3]);
 * sn.matmul(v, y);
 * @example <caption>stack</caption>
 * const y = sn.tensor([[1, 0], [2, 1], [0, 3]]);
 * const bx = sn.linspace(0, 5, 6).reshape([1, 2, 3]);
 * sn.matmul(bx, y);
 */
export function matmul<X extends Tensor, Y extends Tensor>(
  x: X,
  y: Y,
  options: MatmulOptions = {},
): Tensor<Common<X, Y>> {
  takesPair('matmul', x, y, options);
  return product('matmul', x, y, options);
}

function product(op: string, x: Tensor, y: Tensor, options: MatmulOptions): Tensor {
  if (x.rank === 0 || y.rank === 0) {
    throw new TensorError('E_SHAPE', op, `expects at least one axis each: ${show(x, y)}`, 'mul for a number');
  }
  const common = productType(op, x, y);
  const left = x.rank === 1 ? [1, x.size] : x.shape;
  const right = y.rank === 1 ? [y.size, 1] : y.shape;
  if (left.at(-1) !== right.at(-2)) {
    const turned =
      y.rank > 1 && y.shape.at(-1) === left.at(-1) ? 'transpose() on the second operand' : undefined;
    throw new TensorError('E_SHAPE', op, `inner sizes differ: ${show(x)} @ ${show(y)}`, turned);
  }
  if (leadingAxes(left.slice(0, -2), right.slice(0, -2)) === undefined) {
    throw new TensorError('E_SHAPE', op, `leading axes do not broadcast: ${show(x)} @ ${show(y)}`);
  }
  return apply([x, y], (b, p, q) => {
    const [wideX, wideY] = [cast(b, p, common), cast(b, q, common)];
    const full = matmulNodes(b, reshape(b, wideX, left), reshape(b, wideY, right), options.dtype ?? common);
    const shape = [...dims(full)];
    if (y.rank === 1) shape.splice(-1, 1);
    if (x.rank === 1) shape.splice(y.rank === 1 ? -1 : -2, 1);
    return reshape(b, full, shape);
  });
}

/**
 * The inner product of two vectors.
 *
 * @method
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * sn.dot(v, v);
 */
export function dot<X extends Tensor, Y extends Tensor>(
  x: X,
  y: Y,
  options: MatmulOptions = {},
): Tensor<Common<X, Y>> {
  takesPair('dot', x, y, options);
  checkRank('dot', 'the first operand', x, 1);
  checkRank('dot', 'the second operand', y, 1);
  return product('dot', x, y, options);
}

/**
 * [M, K] by [K, N].
 *
 * @method
 * @jax jnp.matmul
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const y = sn.tensor([[1, 0], [2, 1], [0, 3]]);
 * sn.mm(x, y);
 */
export function mm<X extends Tensor, Y extends Tensor>(
  x: X,
  y: Y,
  options: MatmulOptions = {},
): Tensor<Common<X, Y>> {
  takesPair('mm', x, y, options);
  checkRank('mm', 'the first operand', x, 2);
  checkRank('mm', 'the second operand', y, 2);
  return product('mm', x, y, options);
}

/**
 * [M, K] by [K].
 *
 * @method
 * @jax jnp.matvec
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const v = sn.tensor([1, 2, 3]);
 * sn.mv(x, v);
 */
export function mv<X extends Tensor, Y extends Tensor>(
  x: X,
  y: Y,
  options: MatmulOptions = {},
): Tensor<Common<X, Y>> {
  takesPair('mv', x, y, options);
  checkRank('mv', 'the first operand', x, 2);
  checkRank('mv', 'the second operand', y, 1);
  return product('mv', x, y, options);
}

/**
 * [B, M, K] by [B, K, N].
 *
 * @method
 * @jax jnp.matmul, lax.batch_matmul
 * @example
 * const bx = sn.linspace(0, 5, 6).reshape([1, 2, 3]);
 * const by = sn.ones([1, 3, 2]);
 * sn.bmm(bx, by);
 */
export function bmm<X extends Tensor, Y extends Tensor>(
  x: X,
  y: Y,
  options: MatmulOptions = {},
): Tensor<Common<X, Y>> {
  takesPair('bmm', x, y, options);
  checkRank('bmm', 'the first operand', x, 3);
  checkRank('bmm', 'the second operand', y, 3);
  if (x.shape[0] !== y.shape[0]) {
    throw new TensorError(
      'E_SHAPE',
      'bmm',
      `batch sizes differ: ${show(x)} @ ${show(y)}`,
      'matmul, which broadcasts',
    );
  }
  return product('bmm', x, y, options);
}

const takesOuter = arg.takes<typeof outer>(['the first operand', aTensor], ['the second operand', aTensor]);

/**
 * All products of an element of x and one of y: [M] and [N] give [M, N].
 *
 * @method
 * @example
 * const v = sn.tensor([1, 2, 3]);
 * const u = sn.tensor([1, -1]);
 * sn.outer(u, v);
 */
export function outer<X extends Tensor, Y extends Tensor>(x: X, y: Y): Tensor<Common<X, Y>> {
  takesOuter('outer', x, y);
  checkRank('outer', 'the first operand', x, 1);
  checkRank('outer', 'the second operand', y, 1);
  const isBool = x.dtype === 'bool' && y.dtype === 'bool';
  const common = isBool ? 'bool' : productType('outer', x, y);
  const shape = [x.size, y.size];
  return apply([x, y], (b, p, q) => {
    const column = broadcast(b, reshape(b, cast(b, p, common), [x.size, 1]), shape);
    const row = broadcast(b, cast(b, q, common), shape);
    return isBool ? binary(b, 'and', column, row) : mul(b, column, row);
  });
}

const takesLinear = arg.takes<typeof linear>(
  ['x', aTensor],
  ['the weight', aTensor],
  ['the bias', arg.optional(aTensor)],
  ['options', arg.options<MatmulOptions>({ dtype: arg.dtype })],
);

/**
 * x · weightᵀ + bias: [.., in] with [out, in] and [out] gives [.., out].
 *
 * @example
 * const x = sn.tensor([[1, 2, 3], [4, 5, 6]]);
 * const w = sn.tensor([[1, 0, 2], [3, 1, 0]]);
 * const b = sn.tensor([0.5, -1]);
 * sn.linear(x, w, b);
 */
export function linear<A extends DType, B extends DType>(
  x: Tensor<A>,
  weight: Tensor<B>,
  bias?: Tensor,
  options: MatmulOptions = {},
): Tensor<Promoted<A, B>> {
  takesLinear('linear', x, weight, bias, options);
  checkRank('linear', 'the weight', weight, 1, 2);
  if (x.rank === 0 || x.shape.at(-1) !== weight.shape.at(-1)) {
    throw new TensorError(
      'E_SHAPE',
      'linear',
      `inner sizes differ: x ${show(x)}, weight ${show(weight)}`,
      'a weight [out, in]',
    );
  }
  const outputs = weight.shape.slice(0, -1);
  if (
    bias !== undefined &&
    (bias.rank > outputs.length || (bias.size !== 1 && bias.size !== (outputs[0] ?? 1)))
  ) {
    throw new TensorError('E_SHAPE', 'linear', `the bias must be [${outputs.join(',')}]: ${show(bias)}`);
  }
  const given = bias === undefined ? [x, weight] : [x, weight, bias];
  const common = productType('linear', ...given);
  return apply([x, weight, bias], (b, p, w, c) => {
    const pair = [x.rank - 1, weight.rank - 1] as const;
    const sum = contract(b, cast(b, p, common), cast(b, w, common), [], [pair], options.dtype ?? common);
    return c === undefined ? sum : add(b, sum, broadcast(b, cast(b, c, sum.dtype), dims(sum)));
  });
}

/**
 * Sum of the diagonal of a matrix.
 *
 * @method
 * @example
 * const s = sn.tensor([[1, 2], [3, 4]]);
 * sn.trace(s);
 */
export function trace(x: Tensor): Tensor {
  takesOne('trace', x);
  checkRank('trace', 'the operand', x, 2);
  operandType('trace', [x], 'number');
  const target = formula.sumType(x.dtype);
  return apply([x], (b, node) => {
    const diagonal = cast(b, diagonalOf(b, node, 0, 1, 0), formula.wideType(target));
    return cast(b, reduce(b, 'sum', diagonal, [0]), target);
  });
}
