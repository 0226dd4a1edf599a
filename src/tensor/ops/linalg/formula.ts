// Formulas of linear algebra on stacks of matrices [lines, rows, columns].

import {
  add,
  binary,
  broadcast,
  cast,
  conj,
  full,
  mul,
  neg,
  reduce,
  reduceKeep,
  reshape,
  sub,
  where,
} from '../../../ir/build.ts';
import { partType, type DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import {
  adjoint,
  adjointProduct,
  block,
  columnsOf,
  diagonalOf,
  identity,
  integersAt,
  inverseOrder,
  lower,
  onDiagonal,
  product,
  productByAdjoint,
  rowsAt,
  rowsOf,
  sizes,
  spread,
  upper,
  joined,
} from '../../../ir/matrix.ts';
import { factor, solveLower, solveUpper } from '../../formula/matrix.ts';
import type { CustomRule } from '../../../autograd/custom.ts';
import { iota, withRule } from '../../formula/elementwise.ts';
import { concat, sliceAxis } from '../../formula/layout.ts';

/** L and U in one matrix, with which row of A each row was, and the exchanges; of empty ones too. @internal */
export function packedLu(b: GraphBuilder, a: Node): Node {
  const [lines, m, n] = sizes(a);
  if (m > 0 && n > 0) return factor(b, 'lu', a);
  const order = cast(b, iota(b, [lines, m, 1], 1), a.dtype);
  return joined(b, 2, [a, order, full(b, [lines, m, 1], 0, a.dtype)]);
}

/** @internal */
export interface LuParts {
  /** L below the diagonal and U, [lines, m, n]. */
  readonly factors: Node;
  /** Which row of A stands in each row, i32 [lines, m]. */
  readonly order: Node;
  /** The row that each was exchanged with, counted from 0: i32 [lines, min(m, n)]. */
  readonly exchanges: Node;
}

/** @internal */
export function luParts(b: GraphBuilder, a: Node): LuParts {
  const [, m, n] = sizes(a);
  const packed = packedLu(b, a);
  const exchanged = rowsOf(b, columnsOf(b, packed, n + 1, n + 2), 0, Math.min(m, n));
  return {
    factors: columnsOf(b, packed, 0, n),
    order: integersAt(b, packed, n),
    exchanges: integersAt(b, exchanged, 0),
  };
}

/** L of packed factors, with its ones: [lines, m, k]. @internal */
export function unitLower(b: GraphBuilder, factors: Node): Node {
  const [lines, m, n] = sizes(factors);
  const k = Math.min(m, n);
  const below = lower(b, columnsOf(b, factors, 0, k), -1);
  return add(b, below, identity(b, lines, [m, k], factors.dtype));
}

/** U of packed factors: [lines, k, n]. @internal */
export function upperOf(b: GraphBuilder, factors: Node): Node {
  const [, m, n] = sizes(factors);
  return upper(b, rowsOf(b, factors, 0, Math.min(m, n)));
}

/** The order of rows after exchanges i32 [lines, k] counted from 0, of `rows` rows. @internal */
export function orderAfter(b: GraphBuilder, exchanges: Node, rows: number, dtype: DType): Node {
  const [lines, k] = dims(exchanges) as [number, number];
  const kept = iota(b, [lines, rows], 1);
  if (k === 0 || rows === 0 || lines === 0) return kept;
  const own = b.add('slice', [kept], { start: [0, k], size: [lines, rows - k], step: [1, 1] }) as Node;
  const all = rows === k ? exchanges : (b.add('concat', [exchanges, own], { axis: 1 }) as Node);
  const column = reshape(b, cast(b, all, partType(dtype)), [lines, rows, 1]);
  return integersAt(b, factor(b, 'exchanges', column), 0);
}

/** P with ones where row `order[i]` of P·(L·U) is row i of L·U. @internal */
export function permutationMatrix(b: GraphBuilder, order: Node, like: Node): Node {
  const [lines, m] = dims(order) as [number, number];
  const rows = iota(b, [lines, m, m], 1);
  const wanted = broadcast(b, reshape(b, order, [lines, 1, m]), [lines, m, m]);
  return cast(b, binary(b, 'eq', rows, wanted), like.dtype);
}

/** X of A·X = B (or Aᴴ·X = B) from the factors of A. @internal */
export function solvedByLu(b: GraphBuilder, factors: Node, order: Node, rhs: Node, ofAdjoint: boolean): Node {
  if (sizes(factors)[1] === 0 || sizes(rhs)[2] === 0) return rhs;
  if (!ofAdjoint) return solveUpper(b, factors, solveLower(b, factors, rowsAt(b, rhs, order), true));
  const turned = adjoint(b, factors);
  const inner = solveUpper(b, turned, solveLower(b, turned, rhs), true);
  return rowsAt(b, inner, inverseOrder(b, order));
}

/** X of A·X = B, or of Aᴴ·X = B, by elimination; its derivative solves with the same factors. @internal */
export function solvedSystem(b: GraphBuilder, a: Node, rhs: Node, ofAdjoint = false): Node {
  const { factors, order } = luParts(b, a);
  const x = solvedByLu(b, factors, order, rhs, ofAdjoint);
  return withRule(b, x, [a, rhs], ofAdjoint ? turnedRule : straightRule);
}

/** A·X = B: B gets A⁻ᴴ·G, and A what B gets, times −Xᴴ. */
const straightRule: CustomRule = (b, [a], x, g) => {
  const sides = solvedSystem(b, a!, g, true);
  return [neg(b, productByAdjoint(b, sides, x)), sides];
};

const turnedRule: CustomRule = (b, [a], x, g) => {
  const sides = solvedSystem(b, a!, g);
  return [neg(b, productByAdjoint(b, x, sides)), sides];
};

/** A⁻¹. @internal */
export function inverseOf(b: GraphBuilder, a: Node): Node {
  const [lines, n] = sizes(a);
  return solvedSystem(b, a, identity(b, lines, [n, n], a.dtype));
}

/** i32 [lines]: one more than the first place along the rows where `fails` holds, or 0. @internal */
export function firstFailure(b: GraphBuilder, fails: Node): Node {
  const [lines, n] = dims(fails) as [number, number];
  if (n === 0) return full(b, [lines], 0, 'i32');
  const none = full(b, [lines, n], n, 'i32');
  const first = reduce(b, 'min', where(b, fails, iota(b, [lines, n], 1), none), [1]);
  const failed = binary(b, 'lt', first, n);
  return where(b, failed, binary(b, 'add', first, 1), full(b, [lines], 0, 'i32'));
}

/** i32 [lines]: as `singularAt`, of the matrix itself. @internal */
export function singularPivot(b: GraphBuilder, a: Node): Node {
  return singularAt(b, luParts(b, a).factors);
}

/** i32 [lines]: the first pivot of U that is 0, counted from 1; 0 where none is. @internal */
export function singularAt(b: GraphBuilder, factors: Node): Node {
  return firstFailure(b, binary(b, 'eq', diagonalOf(b, factors), 0));
}

/** [lines]: 1, or −1 where an odd number of rows was exchanged. @internal */
export function signOf(b: GraphBuilder, exchanges: Node, dtype: DType): Node {
  const moved = binary(b, 'ne', exchanges, iota(b, dims(exchanges), 1));
  const count = reduce(b, 'sum', cast(b, moved, 'i32'), [1]);
  const odd = cast(b, binary(b, 'and', count, 1), dtype);
  return sub(b, 1, mul(b, odd, 2));
}

/** [lines]: the determinant. @internal */
export function determinant(b: GraphBuilder, a: Node): Node {
  const { factors, exchanges } = luParts(b, a);
  const [lines] = sizes(a);
  const diagonal = diagonalOf(b, factors);
  const value = dims(diagonal)[1] === 0 ? full(b, [lines], 1, a.dtype) : reduce(b, 'prod', diagonal, [1]);
  return withRule(b, mul(b, value, signOf(b, exchanges, a.dtype)), [a], determinantRule);
}

/**
 * d det A = tr(adj(A)·dA), and adj(A)ᴴ = det A* · A⁻ᴴ. Pivots that are 0 count as tiny: what they
 * make of the determinant they make good in the inverse, and two of them make 0 of the adjugate.
 */
const determinantRule: CustomRule = (b, [a], _value, g) => {
  const [lines, n] = sizes(a!);
  if (n <= 3) {
    const spread = broadcast(b, reshape(b, g, [lines, 1, 1]), [lines, n, n]);
    return [mul(b, spread, conj(b, cofactors(b, a!)))];
  }
  const { factors, order, exchanges } = luParts(b, a!);
  const diagonal = diagonalOf(b, factors);
  const { dtype } = a!;
  const part = partType(dtype);
  const greatest = reduceKeep(b, 'max', b.add('abs', [diagonal], {}) as Node, [1]);
  const positive = where(b, binary(b, 'eq', greatest, 0), full(b, [lines, 1], 1, part), greatest);
  const least = mul(b, positive, part === 'f32' ? 2 ** -24 : 2 ** -53);
  const tiny = broadcast(b, cast(b, least, dtype), [lines, n]);
  const pivots = where(b, binary(b, 'eq', diagonal, 0), tiny, diagonal);
  const ones = identity(b, lines, [n, n], dtype);
  const strict = sub(b, factors, mul(b, ones, factors));
  const mended = add(b, strict, mul(b, ones, spread(b, pivots, factors, 1)));
  const value = mul(b, reduce(b, 'prod', pivots, [1]), signOf(b, exchanges, dtype));
  const turned = solvedByLu(b, mended, order, ones, true);
  return [mul(b, turned, broadcast(b, reshape(b, mul(b, g, conj(b, value)), [lines, 1, 1]), [lines, n, n]))];
};

/**
 * The cofactors of matrices of up to three rows, as polynomials: unlike det A · A⁻ᵀ they have
 * derivatives of every order where A is singular, too.
 */
function cofactors(b: GraphBuilder, a: Node): Node {
  const [lines, n] = sizes(a);
  /** Element (i + row, j + column) of A, around its ends, at (i, j). */
  const turned = (row: number, column: number): Node =>
    [row, column].reduce((x, by, i) => {
      const parts = [sliceAxis(b, x, i + 1, by, n - by), sliceAxis(b, x, i + 1, 0, by)];
      return concat(b, parts, i + 1);
    }, a);
  if (n < 2) return full(b, [lines, n, n], 1, a.dtype);
  if (n === 3) return sub(b, mul(b, turned(1, 1), turned(2, 2)), mul(b, turned(1, 2), turned(2, 1)));
  const opposite = turned(1, 1);
  return where(b, onDiagonal(b, [lines, n, n]), opposite, neg(b, opposite));
}

/** Q and R of A with k = min(m, n) columns and rows; of empty ones too. @internal */
export function orthogonal(b: GraphBuilder, a: Node): readonly [q: Node, r: Node] {
  const [lines, m, n] = sizes(a);
  const k = Math.min(m, n);
  if (k === 0) return [full(b, [lines, m, 0], 0, a.dtype), full(b, [lines, 0, n], 0, a.dtype)];
  const packed = factor(b, 'qr', a);
  return [columnsOf(b, packed, 0, k), block(b, packed, [0, k], [k, n])];
}

/**
 * What a product of reflectors H₁⋯H_k (or its adjoint) makes of Y: Y − V·T·Vᴴ·Y with T⁻¹ the τ⁻¹
 * on the diagonal and VᴴV above it (C. Puglisi, 1992).
 *
 * @internal
 */
export function reflected(b: GraphBuilder, vectors: Node, tau: Node, y: Node, ofAdjoint: boolean): Node {
  const [lines, m] = sizes(vectors);
  const k = dims(tau)[1]!;
  if (k === 0 || m === 0 || sizes(y)[2] === 0) return y;
  const below = lower(b, columnsOf(b, vectors, 0, k), -1);
  const v = add(b, below, identity(b, lines, [m, k], vectors.dtype));
  const inner = adjointProduct(b, v, v);
  const seen = adjointProduct(b, v, y);
  const turned = conj(b, tau);
  const weights = ofAdjoint
    ? mul(
        b,
        solveLower(b, mul(b, lower(b, inner, -1), spread(b, turned, inner, 2)), seen, true),
        spread(b, turned, seen, 1),
      )
    : solveUpper(
        b,
        mul(b, upper(b, inner, 1), spread(b, tau, inner, 1)),
        mul(b, seen, spread(b, tau, seen, 1)),
        true,
      );
  return sub(b, y, product(b, v, weights));
}
