// Gaussian elimination with partial pivoting: factors, and what is solved with them.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { add, broadcast, cast, reshape, sub } from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { adjoint } from '../../../ir/matrix.ts';
import { sizeOf } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import { record, recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { checkInteger, show } from '../operand.ts';
import {
  luParts,
  orderAfter,
  permutationMatrix,
  singularAt,
  solvedByLu,
  unitLower,
  upperOf,
} from './formula.ts';
import { watchInfo } from './info.ts';
import {
  batchOf,
  checkMatrices,
  checkOneDType,
  checkSquare,
  commonBatch,
  sizeOfMatrix,
  stacked,
  stackedTogether,
  unstacked,
} from '../matrices.ts';

const takesOne = arg.takes<(x: Tensor) => Tensor>(['x', aTensor]);

function factored(x: Tensor): [factors: Tensor, pivots: Tensor, info: Tensor] {
  const [factors, pivots, info] = recordMany([x], (b, [node]) => {
    const parts = luParts(b, stacked(b, node!));
    return [
      unstacked(b, parts.factors, batchOf(x)),
      unstacked(b, add(b, parts.exchanges, 1), batchOf(x)),
      reshape(b, singularAt(b, parts.factors), batchOf(x)),
    ];
  });
  return [factors!, pivots!, info!];
}

/**
 * L below the diagonal (its own is ones) and U of P·L·U = A in one matrix, and i32 pivots, counted
 * from 1: row i was exchanged with row pivots[i], one after the other.
 *
 * @torch torch.linalg.lu_factor, torch.lu
 * @example
 * const x = sn.tensor([[1, 2], [3, 4], [5, 6]]);
 * sn.linalg.luFactor(x);
 */
export function luFactor(x: Tensor): [lu: Tensor, pivots: Tensor] {
  takesOne('luFactor', x);
  checkMatrices('luFactor', x);
  const [factors, pivots] = factored(x);
  return [factors, pivots];
}

/** @names CheckOptions, linalg.CheckOptions */
export interface CheckOptions {
  /** Whether a read fails where a matrix is singular; false by default. */
  readonly checkErrors?: boolean;
}

/** Words a pivot that is 0. @internal */
export const isSingular = (at: number, matrix: string): string =>
  `${matrix} is singular: pivot ${at} of its U is 0`;

const takesEx = arg.takes<typeof luFactorEx>(
  ['x', aTensor],
  ['options', arg.options<CheckOptions>({ checkErrors: arg.flag })],
);

/**
 * What `luFactor` gives, and i32 numbers: the first pivot of U that is 0, counted from 1, or 0.
 *
 * @example
 * const x = sn.tensor([[1, 2], [3, 4], [5, 6]]);
 * sn.linalg.luFactorEx(x);
 */
export function luFactorEx(
  x: Tensor,
  options: CheckOptions = {},
): [lu: Tensor, pivots: Tensor, info: Tensor] {
  takesEx('luFactorEx', x, options);
  checkMatrices('luFactorEx', x);
  const found = factored(x);
  if (options.checkErrors === true) watchInfo('luFactorEx', found[2], isSingular);
  return found;
}

/**
 * P, L and U with P·L·U = A; with k = min(m, n), L is m×k and U k×n.
 *
 * @example
 * const x = sn.tensor([[1, 2], [3, 4], [5, 6]]);
 * sn.linalg.lu(x);
 */
export function lu(x: Tensor): [p: Tensor, l: Tensor, u: Tensor] {
  takesOne('lu', x);
  checkMatrices('lu', x);
  const [p, l, u] = recordMany([x], (b, [node]) => {
    const { factors, order } = luParts(b, stacked(b, node!));
    return [permutationMatrix(b, order, factors), unitLower(b, factors), upperOf(b, factors)].map((part) =>
      unstacked(b, part, batchOf(x)),
    );
  });
  return [p!, l!, u!];
}

/** Pivots counted from 1, as exchanges of a stack counted from 0. */
function exchangesOf(b: GraphBuilder, pivots: Node, lines: number): Node {
  return sub(b, cast(b, reshape(b, pivots, [lines, dims(pivots).at(-1)!]), 'i32'), 1);
}

function checkPivots(op: string, factors: Tensor, pivots: Tensor): void {
  checkMatrices(op, factors);
  checkInteger(op, 'the pivots', pivots);
  const wanted = Math.min(...sizeOfMatrix(factors));
  const isHeld = pivots.rank === factors.rank - 1 && pivots.shape.at(-1) === wanted;
  if (!isHeld || pivots.shape.slice(0, -1).some((size, i) => size !== factors.shape[i]))
    throw new TensorError(
      'E_SHAPE',
      op,
      `expects a row of ${wanted} pivots a matrix: ${show(factors, pivots)}`,
    );
}

const takesUnpack = arg.takes<typeof luUnpack>(['the factors', aTensor], ['the pivots', aTensor]);

/**
 * P, L and U from what `luFactor` gives.
 *
 * @names luUnpack, linalg.luUnpack
 * @example
 * const r = sn.tensor([[2, 1], [0, 3]]);
 * const pivots = sn.tensor([2, 2], { dtype: 'i32' });
 * sn.luUnpack(r, pivots);
 */
export function luUnpack(factors: Tensor, pivots: Tensor): [p: Tensor, l: Tensor, u: Tensor] {
  takesUnpack('luUnpack', factors, pivots);
  checkPivots('luUnpack', factors, pivots);
  const batch = batchOf(factors);
  const [p, l, u] = recordMany([factors, pivots], (b, [node, exchanged]) => {
    const packed = stacked(b, node!);
    const exchanges = exchangesOf(b, exchanged!, sizeOf(batch));
    const order = orderAfter(b, exchanges, sizeOfMatrix(factors)[0], factors.dtype);
    return [permutationMatrix(b, order, packed), unitLower(b, packed), upperOf(b, packed)].map((part) =>
      unstacked(b, part, batch),
    );
  });
  return [p!, l!, u!];
}

/** @names LuSolveOptions, linalg.LuSolveOptions */
export interface LuSolveOptions {
  /** false solves X·A = B; true by default. */
  readonly left?: boolean;
  /** Solves with Aᴴ in the place of A; false by default. */
  readonly adjoint?: boolean;
}

const takesSolve = arg.takes<typeof luSolve>(
  ['the factors', aTensor],
  ['the pivots', aTensor],
  ['the right-hand sides', aTensor],
  ['options', arg.options<LuSolveOptions>({ left: arg.flag, adjoint: arg.flag })],
);

/**
 * X of A·X = B from what `luFactor` gave for A.
 *
 * @torch torch.linalg.lu_solve, torch.lu_solve
 * @example
 * const r = sn.tensor([[2, 1], [0, 3]]);
 * const b = sn.tensor([[2], [1]]);
 * const pivots = sn.tensor([2, 2], { dtype: 'i32' });
 * sn.linalg.luSolve(r, pivots, b);
 */
export function luSolve(factors: Tensor, pivots: Tensor, b: Tensor, options: LuSolveOptions = {}): Tensor {
  const op = 'luSolve';
  takesSolve(op, factors, pivots, b, options);
  checkSquare(op, factors);
  checkPivots(op, factors, pivots);
  checkMatrices(op, b);
  checkOneDType(op, factors, b);
  const { left = true, adjoint: ofAdjoint = false } = options;
  const n = sizeOfMatrix(factors)[0];
  if (sizeOfMatrix(b)[left ? 0 : 1] !== n)
    throw new TensorError('E_SHAPE', op, `the right-hand sides do not fit: ${show(factors, b)}`);
  const batch = commonBatch(op, factors, b);
  return record([factors, pivots, b], (builder, [node, exchanged, rhs]) => {
    const [held, sides] = stackedTogether(builder, node!, rhs!, batch);
    const wide = broadcast(builder, exchanged!, [...batch, n]);
    const order = orderAfter(builder, exchangesOf(builder, wide, sizeOf(batch)), n, b.dtype);
    const solved = (columns: Node, ofAdjoint: boolean): Node =>
      solvedByLu(builder, held, order, columns, ofAdjoint);
    // X·A = B is Aᴴ·Xᴴ = Bᴴ.
    const x = left ? solved(sides, ofAdjoint) : adjoint(builder, solved(adjoint(builder, sides), !ofAdjoint));
    return unstacked(builder, x, batch);
  });
}
