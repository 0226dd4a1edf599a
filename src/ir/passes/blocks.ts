// Matrix algorithms in blocks, so that the bulk of their arithmetic is in products: a matrix is
// halved until what has to go step by step fits a panel. Of real and of complex matrices. (F. G.
// Gustavson, "Recursion leads to automatic variable blocking for dense linear-algebra algorithms",
// 1997; E. Elmroth and F. G. Gustavson, "Applying recursion to serial and parallel QR
// factorization", 2000.)

import { add, conj, full, mul, reshape, sub } from '../build.ts';
import type { FactorKind } from '../factor.ts';
import type { GraphBuilder, Node } from '../graph.ts';
import {
  adjoint,
  adjointProduct,
  block,
  columnsOf,
  factor,
  identity,
  integersAt,
  joined,
  lower,
  product,
  productByAdjoint,
  rowsAt,
  rowsOf,
  sizes,
  solveLower,
  spread,
  upper,
} from '../matrix.ts';

/** The largest problems that stay whole. */
export interface Panels {
  /** Rows of a matrix that Cholesky's factorisation takes in one go. */
  readonly cholesky: number;
  /** Rows of a triangle that is solved with in one go. */
  readonly triangle: number;
  /** Columns of a panel that is eliminated, or reflected, column by column. */
  readonly columns: number;
}

/** An algorithm on matrices with elements as smaller ones and products; undefined where it fits a panel. */
export function inBlocks(
  b: GraphBuilder,
  kind: FactorKind,
  [x, y]: readonly Node[],
  panels: Panels,
): Node | undefined {
  const [, rows, columns] = sizes(x!);
  switch (kind) {
    case 'cholesky':
      return rows <= panels.cholesky ? undefined : new Cholesky(b, x!, panels).whole();
    case 'lowerSolve':
    case 'unitLowerSolve':
      return rows <= panels.triangle ? undefined : solved(b, x!, y!, kind === 'unitLowerSolve', panels);
    case 'lu':
      return Math.min(rows, columns) <= panels.columns && columns <= rows
        ? undefined
        : packedLu(b, x!, panels);
    case 'householder':
      return columns <= panels.columns ? undefined : packedReflectors(b, x!, panels);
    case 'qr':
      return orthogonalAndR(b, x!, panels);
    case 'schur':
    case 'ldlSymmetric':
    case 'ldlHermitian':
    case 'exchanges':
    case 'luOfPairs':
    case 'householderOfPairs':
      return undefined;
    default:
      return kind satisfies never;
  }
}

/** About half, a whole number of panels. */
function halfOf(size: number, panel: number): number {
  return panel * Math.ceil(Math.ceil(size / panel) / 2);
}

/** A = L·Lᴴ by blocks: each is what is left of A after the blocks of L on its left. */
class Cholesky {
  readonly #b: GraphBuilder;
  readonly #a: Node;
  readonly #panels: Panels;

  constructor(b: GraphBuilder, a: Node, panels: Panels) {
    [this.#b, this.#a, this.#panels] = [b, a, panels];
  }

  whole(): Node {
    const n = sizes(this.#a)[1];
    const take = (at: readonly [number, number], size: readonly [number, number]): Node =>
      block(this.#b, this.#a, at, size);
    return this.#factored(n, take);
  }

  #factored(n: number, take: (at: readonly [number, number], size: readonly [number, number]) => Node): Node {
    const [b, panels] = [this.#b, this.#panels];
    if (n <= panels.cholesky) return factor(b, 'cholesky', take([0, 0], [n, n]));
    const half = halfOf(n, panels.cholesky);
    const first = this.#factored(half, take);
    const below = adjoint(b, solved(b, first, adjoint(b, take([half, 0], [n - half, half])), false, panels));
    const rest = this.#factored(n - half, ([row, column], [rows, columns]) => {
      const left = rowsOf(b, below, row, row + rows);
      const right = rowsOf(b, below, column, column + columns);
      const share = productByAdjoint(b, left, right);
      return sub(b, take([half + row, half + column], [rows, columns]), share);
    });
    const [lines] = sizes(first);
    const zeros = full(b, [lines, half, n - half], 0, first.dtype);
    return joined(b, 1, [joined(b, 2, [first, zeros]), joined(b, 2, [below, rest])]);
  }
}

/** L·X = B: the upper half of X, and the lower half from what is left of B. */
function solved(b: GraphBuilder, l: Node, rhs: Node, unit: boolean, panels: Panels): Node {
  const n = sizes(l)[1];
  if (n <= panels.triangle) return solveLower(b, l, rhs, unit);
  const half = halfOf(n, panels.triangle);
  const top = solved(b, block(b, l, [0, 0], [half, half]), rowsOf(b, rhs, 0, half), unit, panels);
  const share = product(b, block(b, l, [half, 0], [n - half, half]), top);
  const left = sub(b, rowsOf(b, rhs, half, n), share);
  const corner = block(b, l, [half, half], [n - half, n - half]);
  return joined(b, 1, [top, solved(b, corner, left, unit, panels)]);
}

/** P·A = L·U: the left columns, then what they leave of the right ones. */
function packedLu(b: GraphBuilder, a: Node, panels: Panels): Node {
  const [, m, n] = sizes(a);
  const k = Math.min(m, n);
  if (n <= panels.columns && n <= m) return factor(b, 'lu', a);
  const left = n > m && k <= panels.columns ? k : Math.min(k, halfOf(k, panels.columns));
  const first = packedLu(b, columnsOf(b, a, 0, left), panels);
  const order = integersAt(b, first, left);
  const right = rowsAt(b, columnsOf(b, a, left, n), order);
  const corner = block(b, first, [0, 0], [left, left]);
  const above = solved(b, corner, rowsOf(b, right, 0, left), true, panels);
  const marks = (packed: Node, columns: number): Node => columnsOf(b, packed, columns, columns + 2);
  const top = joined(b, 2, [block(b, first, [0, 0], [left, left]), above]);
  if (m === left) return joined(b, 2, [top, marks(first, left)]);
  const below = block(b, first, [left, 0], [m - left, left]);
  const rest = sub(b, rowsOf(b, right, left, m), product(b, below, above));
  const second = packedLu(b, rest, panels);
  const width = n - left;
  const again = integersAt(b, second, width);
  const bottom = joined(b, 2, [rowsAt(b, below, again), columnsOf(b, second, 0, width)]);
  // The rows behind the lower rows, and exchanges counted from the top of the whole.
  const behind = rowsAt(b, block(b, first, [left, left], [m - left, 1]), again);
  const exchanged = columnsOf(b, second, width + 1, width + 2);
  const counted = add(b, exchanged, shiftOfExchanges(b, exchanged, k - left, left));
  const firstMarks = rowsOf(b, marks(first, left), 0, left);
  const allMarks = joined(b, 1, [firstMarks, joined(b, 2, [behind, counted])]);
  return joined(b, 2, [joined(b, 1, [top, bottom]), allMarks]);
}

/** `by` in the first `count` rows, which were exchanged; 0 in others. */
function shiftOfExchanges(b: GraphBuilder, like: Node, count: number, by: number): Node {
  const [lines, rows] = sizes(like);
  const shifted = full(b, [lines, count, 1], by, like.dtype);
  return joined(b, 1, [shifted, full(b, [lines, rows - count, 1], 0, like.dtype)]);
}

/** The vectors of packed reflectors, with their leading ones; and their τ. */
function reflectorsOf(b: GraphBuilder, packed: Node, k: number): { readonly v: Node; readonly tau: Node } {
  const [lines, rows] = sizes(packed);
  const below = lower(b, block(b, packed, [0, 0], [rows - 1, k]), -1);
  const v = add(b, below, identity(b, lines, [rows - 1, k], packed.dtype));
  return { v, tau: reshape(b, block(b, packed, [rows - 1, 0], [1, k]), [lines, k]) };
}

/**
 * Tᴴ·Y, where H₁⋯H_k = I − V·T·Vᴴ: T⁻¹ has the τ⁻¹ on its diagonal and VᴴV above it (C. Puglisi,
 * 1992), so that Tᴴ = D·(I + below(VᴴV)·D)⁻¹ with D the diagonal of τ*, which may be 0.
 */
function appliedT(b: GraphBuilder, v: Node, tau: Node, y: Node, panels: Panels): Node {
  const inner = lower(b, adjointProduct(b, v, v), -1);
  const turned = conj(b, tau);
  const system = mul(b, inner, spread(b, turned, inner, 2));
  return mul(b, solved(b, system, y, true, panels), spread(b, turned, y, 1));
}

/** Reflectors of the left columns, applied to the right ones, and those of what is left of these. */
function packedReflectors(b: GraphBuilder, a: Node, panels: Panels): Node {
  const [lines, m, n] = sizes(a);
  if (n <= panels.columns) return factor(b, 'householder', a);
  const left = Math.min(m, halfOf(n, panels.columns));
  const first = packedReflectors(b, columnsOf(b, a, 0, left), panels);
  const { v, tau } = reflectorsOf(b, first, left);
  const right = columnsOf(b, a, left, n);
  const share = product(b, v, appliedT(b, v, tau, adjointProduct(b, v, right), panels));
  const turned = sub(b, right, share);
  const taus = rowsOf(b, first, m, m + 1);
  if (m === left) {
    const none = full(b, [lines, 1, n - left], 0, a.dtype);
    return joined(b, 2, [first, joined(b, 1, [turned, none])]);
  }
  const second = packedReflectors(b, rowsOf(b, turned, left, m), panels);
  const top = joined(b, 2, [rowsOf(b, first, 0, left), rowsOf(b, turned, 0, left)]);
  const bottom = joined(b, 2, [rowsOf(b, first, left, m), rowsOf(b, second, 0, m - left)]);
  const last = joined(b, 2, [taus, rowsOf(b, second, m - left, m - left + 1)]);
  return joined(b, 1, [top, bottom, last]);
}

/** Q beside R above zeros: Qᴴ = (I − V·Tᴴ·Vᴴ)'s first rows. */
function orthogonalAndR(b: GraphBuilder, a: Node, panels: Panels): Node {
  const [lines, m, n] = sizes(a);
  const k = Math.min(m, n);
  const packed = packedReflectors(b, a, panels);
  const { v, tau } = reflectorsOf(b, packed, k);
  const weights = appliedT(b, v, tau, adjoint(b, v), panels);
  const turned = product(b, conj(b, weights), conj(b, rowsOf(b, v, 0, k)), { ofX: true, ofY: true });
  const q = sub(b, identity(b, lines, [m, k], a.dtype), turned);
  const r = upper(b, rowsOf(b, packed, 0, k));
  const zeros = full(b, [lines, m - k, n], 0, a.dtype);
  return joined(b, 2, [q, joined(b, 1, [r, zeros])]);
}
