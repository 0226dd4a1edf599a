// Factors L·D·Lᵀ of symmetric matrices and L·D·Lᴴ of Hermitian ones that need not be positive
// definite, with diagonal pivots of one or two rows (J. R. Bunch and L. Kaufman, 1977), and what is
// solved with them. The packed form is LAPACK's.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  add,
  binary,
  broadcast,
  cast,
  complex,
  conj,
  div,
  full,
  fullLike,
  imag,
  mul,
  neg,
  real,
  reshape,
  sub,
  where,
} from '../../../ir/build.ts';
import { isComplex, partType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import {
  columnsOf,
  diagonalOf,
  identity,
  integersAt,
  inverseOrder,
  joined,
  lower,
  rowsAt,
  rowsOf,
  sizes,
  transpose,
} from '../../../ir/matrix.ts';
import { factor, solveLower, solveUpper } from '../../formula/matrix.ts';
import { sizeOf } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import { record, recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import { iota } from '../../formula/elementwise.ts';
import { checkInteger, show } from '../operand.ts';
import { firstFailure } from './formula.ts';
import { watchInfo } from './info.ts';
import type { CheckOptions } from './lu.ts';
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

/** @names LdlOptions, linalg.LdlOptions */
export interface LdlOptions {
  /** Whether a complex matrix is Hermitian, not symmetric; false by default. */
  readonly hermitian?: boolean;
}

/** @names LdlExOptions, linalg.LdlExOptions */
export interface LdlExOptions extends LdlOptions, CheckOptions {}

/** Only the lower triangle is read. */
function factored(x: Tensor, hermitian: boolean): [ld: Tensor, pivots: Tensor, info: Tensor] {
  const [ld, pivots, info] = recordMany([x], (b, [node]) => {
    const a = stacked(b, node!);
    const [lines, n] = sizes(a);
    if (n === 0) return [node!, full(b, x.shape.slice(0, -1), 0, 'i32'), full(b, batchOf(x), 0, 'i32')];
    const packed = factor(
      b,
      hermitian ? 'ldlHermitian' : 'ldlSymmetric',
      joined(b, 2, [real(b, a), imag(b, a)]),
    );
    const re = columnsOf(b, packed, 0, n);
    const factors = isComplex(x.dtype) ? complex(b, re, columnsOf(b, packed, n, 2 * n)) : re;
    const places = integersAt(b, packed, 2 * n);
    // Of a pivot of two rows the diagonal may be 0.
    const single = binary(b, 'lt', full(b, [lines, n], 0, 'i32'), places);
    const none = binary(b, 'eq', diagonalOf(b, factors), 0);
    const failed = firstFailure(b, binary(b, 'and', single, none));
    return [
      unstacked(b, factors, batchOf(x)),
      unstacked(b, places, batchOf(x)),
      reshape(b, failed, batchOf(x)),
    ];
  });
  return [ld!, pivots!, info!];
}

const isSingular = (at: number, matrix: string): string => `${matrix} is singular: element ${at} of D is 0`;

const takesFactor = arg.takes<typeof ldlFactor>(
  ['x', aTensor],
  ['options', arg.options<LdlOptions>({ hermitian: arg.flag })],
);

/**
 * L below the diagonal (its own is ones) and D on it, and below it where a pivot has two rows, of
 * P·L·D·Lᵀ·Pᵀ = A (L·D·Lᴴ where `hermitian`); and i32 pivots: p > 0 says that row and column p were
 * brought here, −p twice that the second of two rows was. Only the lower triangle of A is read.
 * Where D is singular the next read fails with E_VALUE. Has no derivative.
 *
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.linalg.ldlFactor(a);
 */
export function ldlFactor(x: Tensor, options: LdlOptions = {}): [ld: Tensor, pivots: Tensor] {
  takesFactor('ldlFactor', x, options);
  checkSquare('ldlFactor', x);
  const [ld, pivots, info] = factored(x, options.hermitian === true);
  watchInfo('ldlFactor', info, isSingular);
  return [ld, pivots];
}

const takesFactorEx = arg.takes<typeof ldlFactorEx>(
  ['x', aTensor],
  ['options', arg.options<LdlExOptions>({ hermitian: arg.flag, checkErrors: arg.flag })],
);

/**
 * What `ldlFactor` gives, and i32 numbers: the first element of D that is 0, counted from 1, or 0.
 *
 * @example
 * const a = sn.tensor([[4, 2], [2, 3]]);
 * sn.linalg.ldlFactorEx(a);
 */
export function ldlFactorEx(
  x: Tensor,
  options: LdlExOptions = {},
): [ld: Tensor, pivots: Tensor, info: Tensor] {
  takesFactorEx('ldlFactorEx', x, options);
  checkSquare('ldlFactorEx', x);
  const found = factored(x, options.hermitian === true);
  if (options.checkErrors === true) watchInfo('ldlFactorEx', found[2], isSingular);
  return found;
}

const takesSolve = arg.takes<typeof ldlSolve>(
  ['the factors', aTensor],
  ['the pivots', aTensor],
  ['the right-hand sides', aTensor],
  ['options', arg.options<LdlOptions>({ hermitian: arg.flag })],
);

/**
 * X of A·X = B from what `ldlFactor` gave for A.
 *
 * @example
 * const b = sn.tensor([[2], [1]]);
 * const factors = sn.tensor([[4, 0], [0.5, 2]]);
 * const order = sn.tensor([1, 2], { dtype: 'i32' });
 * sn.linalg.ldlSolve(factors, order, b);
 */
export function ldlSolve(ld: Tensor, pivots: Tensor, b: Tensor, options: LdlOptions = {}): Tensor {
  const op = 'ldlSolve';
  takesSolve(op, ld, pivots, b, options);
  checkSquare(op, ld);
  checkInteger(op, 'the pivots', pivots);
  checkMatrices(op, b);
  checkOneDType(op, ld, b);
  const n = sizeOfMatrix(ld)[0];
  const isHeld = pivots.rank === ld.rank - 1 && pivots.shape.every((size, axis) => size === ld.shape[axis]);
  if (!isHeld)
    throw new TensorError('E_SHAPE', op, `expects a row of ${n} pivots a matrix: ${show(ld, pivots)}`);
  if (sizeOfMatrix(b)[0] !== n)
    throw new TensorError('E_SHAPE', op, `the right-hand sides do not fit: ${show(ld, b)}`);
  const batch = commonBatch(op, ld, b);
  return record([ld, pivots, b], (builder, [node, told, rhs]) => {
    const [held, sides] = stackedTogether(builder, node!, rhs!, batch);
    const lines = sizeOf(batch);
    if (n === 0 || lines === 0 || sizes(sides)[2] === 0) return unstacked(builder, sides, batch);
    const wide = broadcast(builder, cast(builder, told!, 'i32'), [...batch, n]);
    const places = reshape(builder, wide, [lines, n]);
    return unstacked(builder, solved(builder, held, places, sides, options.hermitian === true), batch);
  });
}

/** Which row is exchanged with which, counted from 0, and what each row of D belongs to. */
interface Pivots {
  /** i32 [lines, n]: the row that each changed places with when its turn came. */
  readonly exchanges: Node;
  /** bool [lines, n]: the first, or the second, row of a pivot of two. */
  readonly isFirst: Node;
  readonly isSecond: Node;
}

function pivotsOf(b: GraphBuilder, places: Node): Pivots {
  const shape = dims(places);
  const isDouble = binary(b, 'lt', places, 0);
  // Rows of pivots of two come in pairs: the second is the one that makes their number even.
  const counted = b.add('scan', [cast(b, isDouble, 'i32')], {
    monoid: 'sum',
    axis: 1,
    reverse: false,
    exclusive: false,
  }) as Node;
  const isOdd = binary(b, 'eq', binary(b, 'and', counted, 1), 1);
  const isFirst = binary(b, 'and', isDouble, isOdd);
  const isSecond = binary(b, 'and', isDouble, binary(b, 'ne', isFirst, fullLike(b, isFirst, 1)));
  const named = sub(b, where(b, isDouble, neg(b, places), places), 1);
  return { exchanges: where(b, isFirst, iota(b, shape, 1), named), isFirst, isSecond };
}

/** A column of exchanges as the order of rows after them, i32 [lines, n]. */
function orderOf(b: GraphBuilder, exchanges: Node, dtype: Node['dtype']): Node {
  const [lines, n] = dims(exchanges) as [number, number];
  const column = reshape(b, cast(b, exchanges, partType(dtype)), [lines, n, 1]);
  return integersAt(b, factor(b, 'exchanges', column), 0);
}

/**
 * L with rows where all exchanges leave them: LAPACK's packed columns know only those before their
 * own. Exchanges after a column's pivot are made to it, each column for itself.
 */
function unitLower(b: GraphBuilder, ld: Node, { exchanges, isFirst, isSecond }: Pivots): Node {
  const [lines, n] = sizes(ld);
  const shape = [lines, n, n];
  // Of the matrix of row i and column j; exchange i comes later than column j's pivot.
  const [row, column] = [iota(b, shape, 1), iota(b, shape, 2)];
  const wide = (x: Node, axis: 1 | 2): Node =>
    broadcast(b, reshape(b, x, axis === 1 ? [lines, n, 1] : [lines, 1, n]), shape);
  const last = where(b, wide(isFirst, 2), add(b, column, 1), column);
  const later = where(b, binary(b, 'lt', last, row), wide(exchanges, 1), row);
  const each = reshape(b, transpose(b, later), [lines * n, n]);
  const order = transpose(b, reshape(b, orderOf(b, each, ld.dtype), shape));
  // What stands below a pivot of two rows in its first column is of D.
  const beside = binary(b, 'and', wide(isSecond, 1), binary(b, 'eq', row, add(b, column, 1)));
  const strict = lower(b, ld, -1);
  const packed = where(b, beside, fullLike(b, strict, 0), strict);
  const moved = b.add('gather', [packed, order], { axis: 1 }) as Node;
  return add(b, moved, identity(b, lines, [n, n], ld.dtype));
}

/** Rows one further up (or down), and zeros where there is none. */
function shifted(b: GraphBuilder, x: Node, up: boolean): Node {
  const [lines, n, columns] = sizes(x);
  const zeros = full(b, [lines, 1, columns], 0, x.dtype);
  return joined(b, 1, up ? [rowsOf(b, x, 1, n), zeros] : [zeros, rowsOf(b, x, 0, n - 1)]);
}

/** D⁻¹·Y. Pivots of two rows are divided by the element beside their diagonal first. */
function byDiagonal(
  b: GraphBuilder,
  ld: Node,
  { isFirst, isSecond }: Pivots,
  y: Node,
  hermitian: boolean,
): Node {
  const [lines, n] = sizes(ld);
  const column = (x: Node): Node => reshape(b, x, [lines, n, 1]);
  const own = column(diagonalOf(b, ld));
  const one = fullLike(b, own, 1);
  // The element below the diagonal: that of the row itself, and that of the row above.
  const below = joined(b, 1, [
    reshape(b, diagonalOf(b, rowsOf(b, ld, 1, n)), [lines, n - 1, 1]),
    rowsOf(b, one, 0, 1),
  ]);
  const [first, second] = [column(isFirst), column(isSecond)];
  const side = where(b, first, below, where(b, second, shifted(b, below, false), one));
  const turned = hermitian ? conj(b, side) : side;
  const single = binary(b, 'or', first, second);
  const other = where(b, first, shifted(b, own, true), shifted(b, own, false));
  // With d and e on a pivot's diagonal, s below it: (e/s·y₁/s* − y₂/s)/(d·e/(s·s*) − 1) in its first row.
  const near = where(b, first, turned, side);
  const far = where(b, first, side, turned);
  const scaled = div(b, where(b, single, other, one), far);
  const determinant = sub(b, mul(b, scaled, div(b, own, near)), one);
  const safe = where(b, single, determinant, one);
  const across = (x: Node): Node => broadcast(b, x, dims(y));
  const partner = where(b, across(first), shifted(b, y, true), shifted(b, y, false));
  const inner = sub(b, div(b, mul(b, across(scaled), y), across(near)), div(b, partner, across(far)));
  const double = div(b, inner, across(safe));
  const divisor = where(b, single, one, own);
  return where(b, across(single), double, div(b, y, across(divisor)));
}

function solved(b: GraphBuilder, ld: Node, places: Node, rhs: Node, hermitian: boolean): Node {
  const pivots = pivotsOf(b, places);
  const l = unitLower(b, ld, pivots);
  const order = orderOf(b, pivots.exchanges, ld.dtype);
  const y = solveLower(b, l, rowsAt(b, rhs, order), true);
  const z = byDiagonal(b, ld, pivots, y, hermitian);
  const turned = transpose(b, l);
  const x = solveUpper(b, hermitian ? conj(b, turned) : turned, z, true);
  return rowsAt(b, x, inverseOrder(b, order));
}
