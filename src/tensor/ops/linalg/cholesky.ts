// Cholesky's factorisation, and what is solved with it.

import * as arg from '../../../ir/arguments.ts';
import { TensorError } from '../../../errors.ts';
import type { CustomRule } from '../../../autograd/custom.ts';
import { add, neg, real, reshape } from '../../../ir/build.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import {
  adjoint,
  diagonalOf,
  identity,
  lower,
  product,
  productByAdjoint,
  sizes,
} from '../../../ir/matrix.ts';
import { factor, solveLower, solveUpper } from '../../formula/matrix.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { apply, show } from '../operand.ts';
import { isNan, withRule } from '../../formula/elementwise.ts';
import { firstFailure } from './formula.ts';
import { watchInfo } from './info.ts';
import {
  batchOf,
  checkMatrices,
  checkSquare,
  commonBatch,
  sizeOfMatrix,
  stacked,
  stackedTogether,
  unstacked,
} from '../matrices.ts';

/** @names CholeskyOptions, linalg.CholeskyOptions */
export interface CholeskyOptions {
  /** The upper triangle U of A = Uᴴ·U, from the upper triangle of A; false by default. */
  readonly upper?: boolean;
}

/** @names CholeskyExOptions, linalg.CholeskyExOptions */
export interface CholeskyExOptions extends CholeskyOptions {
  /** Whether a read fails where a matrix is not positive definite; false by default. */
  readonly checkErrors?: boolean;
}

/** The triangle, and where it fails. */
function factored(x: Tensor, upper: boolean): [triangle: Tensor, info: Tensor] {
  const [triangle, info] = recordMany([x], (b, [node]) => {
    const a = stacked(b, node!);
    const l = factor(b, 'cholesky', upper ? adjoint(b, a) : a);
    const failed = firstFailure(b, isNan(b, diagonalOf(b, real(b, l))));
    return [unstacked(b, upper ? adjoint(b, l) : l, batchOf(x)), reshape(b, failed, batchOf(x))];
  });
  return [triangle!, info!];
}

const isNotPositive = (order: number, matrix: string): string =>
  `${matrix} is not positive definite: its leading minor of order ${order} is not positive`;

const takesCholesky = arg.takes<typeof cholesky>(
  ['x', aTensor],
  ['options', arg.options<CholeskyOptions>({ upper: arg.flag })],
);

/**
 * The lower triangle L of A = L·Lᴴ, of a Hermitian positive definite matrix or a stack of them; its
 * lower triangle alone is read. Where it is not positive definite the next read fails with E_VALUE.
 *
 * @names cholesky, linalg.cholesky
 * @jax jnp.linalg.cholesky
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.cholesky(a);
 */
export function cholesky(x: Tensor, options: CholeskyOptions = {}): Tensor {
  takesCholesky('cholesky', x, options);
  checkSquare('cholesky', x);
  const [triangle, info] = factored(x, options.upper === true);
  watchInfo('cholesky', info, isNotPositive);
  return triangle;
}

const takesCholeskyEx = arg.takes<typeof choleskyEx>(
  ['x', aTensor],
  ['options', arg.options<CholeskyExOptions>({ upper: arg.flag, checkErrors: arg.flag })],
);

/**
 * The triangle of `cholesky`, and i32 numbers: 0 where a matrix is positive definite, else the
 * order of its first leading minor that is not positive. The triangle is NaN from there on.
 *
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.linalg.choleskyEx(a);
 */
export function choleskyEx(x: Tensor, options: CholeskyExOptions = {}): [l: Tensor, info: Tensor] {
  takesCholeskyEx('choleskyEx', x, options);
  checkSquare('choleskyEx', x);
  const [triangle, info] = factored(x, options.upper === true);
  if (options.checkErrors === true) watchInfo('choleskyEx', info, isNotPositive);
  return [triangle, info];
}

/** X of A·X = B from the lower triangle L of A = L·Lᴴ. */
function solved(b: GraphBuilder, l: Node, rhs: Node): Node {
  const x = solveUpper(b, adjoint(b, l), solveLower(b, l, rhs));
  return withRule(b, x, [l, rhs], solvedRule);
}

/** B gets S = A⁻¹·G, A gets −S·Xᴴ, and L what A = L·Lᴴ passes on, as if all of L was read. */
const solvedRule: CustomRule = (b, [l], x, g) => {
  const sides = solved(b, l!, g);
  const outer = productByAdjoint(b, sides, x);
  return [neg(b, product(b, add(b, outer, adjoint(b, outer)), lower(b, l!))), sides];
};

const takesSolve = arg.takes<typeof choleskySolve>(
  ['the right-hand sides', aTensor],
  ['the triangle', aTensor],
  ['options', arg.options<CholeskyOptions>({ upper: arg.flag })],
);

/**
 * X of A·X = B from the triangle that `cholesky` gave for A.
 *
 * @names choleskySolve, linalg.choleskySolve
 * @jax jax.scipy.linalg.cho_solve
 * @example
 * const b = sn.tensor([[2], [1]]);
 * const l = sn.tensor([[2, 0], [1, 1]]);
 * sn.choleskySolve(b, l);
 */
export function choleskySolve(b: Tensor, l: Tensor, options: CholeskyOptions = {}): Tensor {
  const op = 'choleskySolve';
  takesSolve(op, b, l, options);
  checkSquare(op, l);
  checkMatrices(op, b, l);
  if (sizeOfMatrix(b)[0] !== sizeOfMatrix(l)[0])
    throw new TensorError('E_SHAPE', op, `expects as many rows as the triangle has: ${show(b, l)}`);
  const batch = commonBatch(op, b, l);
  return apply([b, l], (builder, rhs, triangle) => {
    const [sides, held] = stackedTogether(builder, rhs, triangle, batch);
    const lowerHeld = options.upper === true ? adjoint(builder, held) : held;
    return unstacked(builder, solved(builder, lowerHeld, sides), batch);
  });
}

const takesInverse = arg.takes<typeof choleskyInverse>(
  ['the triangle', aTensor],
  ['options', arg.options<CholeskyOptions>({ upper: arg.flag })],
);

/**
 * A⁻¹ from the triangle that `cholesky` gave for A.
 *
 * @names choleskyInverse, linalg.choleskyInverse
 * @example
 * const l = sn.tensor([[2, 0], [1, 1]]);
 * sn.choleskyInverse(l);
 */
export function choleskyInverse(l: Tensor, options: CholeskyOptions = {}): Tensor {
  takesInverse('choleskyInverse', l, options);
  checkSquare('choleskyInverse', l);
  return apply([l], (b, node) => {
    const held = stacked(b, node);
    const triangle = options.upper === true ? adjoint(b, held) : held;
    const [lines, n] = sizes(triangle);
    return unstacked(b, solved(b, triangle, identity(b, lines, [n, n], l.dtype)), batchOf(l));
  });
}
