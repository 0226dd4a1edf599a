// Systems of linear equations, and inverses.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { permute, reshape } from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { adjoint, transpose } from '../../../ir/matrix.ts';
import { solveLower, solveUpper } from '../../formula/matrix.ts';
import { broadcastShapes, sameShape } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import { record, recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { show } from '../operand.ts';
import { inverseOf, singularPivot, solvedSystem } from './formula.ts';
import { watchInfo } from './info.ts';
import { isSingular, type CheckOptions } from './lu.ts';
import {
  batchOf,
  checkMatrices,
  checkSquare,
  checkOneDType,
  commonBatch,
  sizeOfMatrix,
  stacked,
  stackedTogether,
  unstacked,
} from '../matrices.ts';

/** @names SolveOptions, linalg.SolveOptions */
export interface SolveOptions {
  /** false solves X·A = B; true by default. */
  readonly left?: boolean;
}

/** @names SolveExOptions, linalg.SolveExOptions */
export interface SolveExOptions extends SolveOptions, CheckOptions {}

/** The solution, and where A is singular. */
function solution(op: string, a: Tensor, b: Tensor, left: boolean): [x: Tensor, info: Tensor] {
  checkSquare(op, a);
  checkOneDType(op, a, b);
  const n = a.shape.at(-1)!;
  // One vector, or a stack of them with the batch of A.
  const isVector = b.rank === 1 || (b.rank === a.rank - 1 && sameShape(b.shape, a.shape.slice(0, -1)));
  if (b.rank === 0 || (isVector && b.shape.at(-1) !== n))
    throw new TensorError('E_SHAPE', op, `the right-hand sides do not fit: ${show(a, b)}`);
  const whole = isVector ? [...b.shape, 1] : [...b.shape];
  if (!isVector && sizeOfMatrix(b)[left ? 0 : 1] !== n)
    throw new TensorError('E_SHAPE', op, `the right-hand sides do not fit: ${show(a, b)}`);
  if (isVector && !left) throw new TensorError('E_SHAPE', op, `X·A = B takes matrices: ${show(a, b)}`);
  const batch = broadcastShapes(op, batchOf(a), whole.slice(0, -2));
  const [x, info] = recordMany([a, b], (builder, [node, rhs]) => {
    const [matrix, sides] = stackedTogether(builder, node!, reshape(builder, rhs!, whole), batch);
    // X·A = B is Aᴴ·Xᴴ = Bᴴ.
    const found = left
      ? solvedSystem(builder, matrix, sides)
      : adjoint(builder, solvedSystem(builder, matrix, adjoint(builder, sides), true));
    const inBatch = unstacked(builder, found, batch);
    return [
      isVector ? reshape(builder, inBatch, dims(inBatch).slice(0, -1)) : inBatch,
      reshape(builder, singularPivot(builder, stacked(builder, node!)), batchOf(a)),
    ];
  });
  return [x!, info!];
}

const takesSolve = arg.takes<typeof solve>(
  ['the matrix', aTensor],
  ['the right-hand sides', aTensor],
  ['options', arg.options<SolveOptions>({ left: arg.flag })],
);

/**
 * X of A·X = B for square matrices, by elimination with partial pivoting. B is a matrix, a vector,
 * or a stack of either. Where A is singular the next read fails with E_VALUE.
 *
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * const b = sn.tensor([[2], [1]]);
 * sn.linalg.solve(a, b);
 */
export function solve(a: Tensor, b: Tensor, options: SolveOptions = {}): Tensor {
  takesSolve('solve', a, b, options);
  const [x, info] = solution('solve', a, b, options.left !== false);
  watchInfo('solve', info, isSingular);
  return x;
}

const takesSolveEx = arg.takes<typeof solveEx>(
  ['the matrix', aTensor],
  ['the right-hand sides', aTensor],
  ['options', arg.options<SolveExOptions>({ left: arg.flag, checkErrors: arg.flag })],
);

/**
 * What `solve` gives, and i32 numbers: the first pivot that is 0, counted from 1, or 0.
 *
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * const b = sn.tensor([[2], [1]]);
 * sn.linalg.solveEx(a, b);
 */
export function solveEx(a: Tensor, b: Tensor, options: SolveExOptions = {}): [x: Tensor, info: Tensor] {
  takesSolveEx('solveEx', a, b, options);
  const found = solution('solveEx', a, b, options.left !== false);
  if (options.checkErrors === true) watchInfo('solveEx', found[1], isSingular);
  return found;
}

function inverted(x: Tensor): [inverse: Tensor, info: Tensor] {
  const [inverse, info] = recordMany([x], (b, [node]) => {
    const a = stacked(b, node!);
    const singular = singularPivot(b, a);
    return [unstacked(b, inverseOf(b, a), batchOf(x)), reshape(b, singular, batchOf(x))];
  });
  return [inverse!, info!];
}

const takesInv = arg.takes<typeof inv>(['x', aTensor]);

/**
 * A⁻¹ of a square matrix. Where it is singular the next read fails with E_VALUE.
 *
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.linalg.inv(a);
 */
export function inv(x: Tensor): Tensor {
  return inverseFor('inv', x);
}

/**
 * A⁻¹: `linalg.inv`.
 *
 * @names inverse
 * @jax jnp.linalg.inv
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.inverse(a);
 */
export function inverse(x: Tensor): Tensor {
  return inverseFor('inverse', x);
}

function inverseFor(op: string, x: Tensor): Tensor {
  takesInv(op, x);
  checkSquare(op, x);
  const [found, info] = inverted(x);
  watchInfo(op, info, isSingular);
  return found;
}

const takesInvEx = arg.takes<typeof invEx>(
  ['x', aTensor],
  ['options', arg.options<CheckOptions>({ checkErrors: arg.flag })],
);

/**
 * A⁻¹, and i32 numbers: the first pivot that is 0, counted from 1, or 0.
 *
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.linalg.invEx(a);
 */
export function invEx(x: Tensor, options: CheckOptions = {}): [inverse: Tensor, info: Tensor] {
  takesInvEx('invEx', x, options);
  checkSquare('invEx', x);
  const found = inverted(x);
  if (options.checkErrors === true) watchInfo('invEx', found[1], isSingular);
  return found;
}

/** @names SolveTriangularOptions, linalg.SolveTriangularOptions */
export interface SolveTriangularOptions {
  /** Whether A is an upper triangle (the other one is not read); false by default. */
  readonly upper?: boolean;
  /** false solves X·A = B; true by default. */
  readonly left?: boolean;
  /** Whether ones are taken to stand on the diagonal, which is not read then; false by default. */
  readonly unitriangular?: boolean;
}

const takesTriangular = arg.takes<typeof solveTriangular>(
  ['the triangle', aTensor],
  ['the right-hand sides', aTensor],
  [
    'options',
    arg.options<SolveTriangularOptions>({ upper: arg.flag, left: arg.flag, unitriangular: arg.flag }),
  ],
);

/**
 * X of A·X = B by substitution, of a triangle A: a pivot of 0 gives ±∞ or NaN.
 *
 * @example
 * const b = sn.tensor([[2], [1]]);
 * const l = sn.tensor([[2, 0], [1, 1]]);
 * sn.linalg.solveTriangular(l, b, { upper: false });
 */
export function solveTriangular(a: Tensor, b: Tensor, options: SolveTriangularOptions = {}): Tensor {
  const op = 'solveTriangular';
  takesTriangular(op, a, b, options);
  checkSquare(op, a);
  checkMatrices(op, a, b);
  const { upper = false, left = true, unitriangular = false } = options;
  if (sizeOfMatrix(b)[left ? 0 : 1] !== sizeOfMatrix(a)[0])
    throw new TensorError('E_SHAPE', op, `the right-hand sides do not fit: ${show(a, b)}`);
  const batch = commonBatch(op, a, b);
  return record([a, b], (builder, [node, rhs]) => {
    const [triangle, sides] = stackedTogether(builder, node!, rhs!, batch);
    if (left) return unstacked(builder, substituted(builder, triangle, sides, upper, unitriangular), batch);
    // X·A = B is Aᵀ·Xᵀ = Bᵀ.
    const turned = transpose(builder, triangle);
    const x = substituted(builder, turned, transpose(builder, sides), !upper, unitriangular);
    return unstacked(builder, transpose(builder, x), batch);
  });
}

function substituted(b: GraphBuilder, triangle: Node, sides: Node, upper: boolean, unit: boolean): Node {
  return upper ? solveUpper(b, triangle, sides, unit) : solveLower(b, triangle, sides, unit);
}

/** @names TriangularSolveOptions, linalg.TriangularSolveOptions */
export interface TriangularSolveOptions {
  /** Whether A is an upper triangle; true by default, as in PyTorch. */
  readonly upper?: boolean;
  /** Solves with Aᵀ in the place of A; false by default. */
  readonly transpose?: boolean;
  /** Whether ones are taken to stand on the diagonal; false by default. */
  readonly unitriangular?: boolean;
}

const takesOld = arg.takes<typeof triangularSolve>(
  ['the right-hand sides', aTensor],
  ['the triangle', aTensor],
  [
    'options',
    arg.options<TriangularSolveOptions>({ upper: arg.flag, transpose: arg.flag, unitriangular: arg.flag }),
  ],
);

/**
 * X of A·X = B, and A: what `solveTriangular` does, with PyTorch's older arguments.
 *
 * @names triangularSolve, linalg.triangularSolve
 * @jax jax.scipy.linalg.solve_triangular
 * @example
 * const b = sn.tensor([[2], [1]]);
 * const l = sn.tensor([[2, 0], [1, 1]]);
 * sn.triangularSolve(b, l, { upper: false });
 */
export function triangularSolve(
  b: Tensor,
  a: Tensor,
  options: TriangularSolveOptions = {},
): [x: Tensor, a: Tensor] {
  takesOld('triangularSolve', b, a, options);
  checkSquare('triangularSolve', a);
  const { upper = true, transpose: turned = false, unitriangular = false } = options;
  const held = turned ? record([a], (builder, [node]) => lastTwoSwapped(builder, node!)) : a;
  return [solveTriangular(held, b, { upper: upper !== turned, unitriangular }), a];
}

function lastTwoSwapped(b: GraphBuilder, x: Node): Node {
  const order = dims(x).map((_, axis) => axis);
  return permute(b, x, [...order.slice(0, -2), order.length - 1, order.length - 2]);
}
