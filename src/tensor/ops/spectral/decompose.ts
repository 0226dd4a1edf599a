// Singular values and vectors, and eigenvalues and eigenvectors of Hermitian matrices, as nodes.
// Both come out of rows that are rotated until they are orthogonal (the primitive `jacobiRows`).
//
// A = U·diag(s)·Vᴴ, with at least as many rows as columns: a unitary J that makes the rows of J·Aᴴ
// orthogonal makes them s·Uᴴ, so that J is Vᴴ; J is what the same rotations make of the identity
// behind the columns that count. A Hermitian H is shifted until it is positive: then the rows of
// J·(H + c) are (w + c)·Vᴴ with V its eigenvectors, and nothing need be turned along.

import {
  add,
  binary,
  broadcast,
  div,
  full,
  fullLike,
  mul,
  reduce,
  reduceKeep,
  reshape,
  unary,
  where,
} from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import * as formula from '../elementwise/formula.ts';
import { concat, padConstant, sliceAxis } from '../shape/layout.ts';
import { adjoint, identity, product, rowsAt, scaledToOne } from './stack.ts';

export interface SingularNodes {
  /** [count, m, k] with k = min(m, n), or with all m columns. */
  readonly u: Node;
  /** [count, k], descending. */
  readonly s: Node;
  /** [count, k, n], or with all n rows. */
  readonly vh: Node;
}

/** Columns up to whole vectors, which a core rotates at a time. */
function rounded(columns: number): number {
  const whole = columns < 32 ? 4 : 16;
  return Math.ceil(columns / whole) * whole;
}

function paddedColumns(b: GraphBuilder, x: Node): Node {
  const columns = dims(x)[2]!;
  return padConstant(b, x, [0, 0, 0], [0, 0, rounded(columns) - columns], 0);
}

/** Rows [count, n, columns], rotated until the parts of `width` columns are orthogonal. */
function rotated(b: GraphBuilder, x: Node, width: number): Node {
  return b.add('jacobiRows', [x], { width, parts: 1 }) as Node;
}

/** √Σ|x|² of each row, [count, n]. */
function lengths(b: GraphBuilder, rows: Node): Node {
  return unary(b, 'sqrt', reduce(b, 'sum', formula.square(b, rows), [2]));
}

/** A row shorter than this, of matrices scaled to 1, is zero but for rounding. */
const shortest: Readonly<Record<string, number>> = { f32: 2e-15, f64: 1e-142 };

/** Every row by its length; rows of none are zeros. */
function normalised(
  b: GraphBuilder,
  rows: Node,
  size: Node,
): { readonly rows: Node; readonly missing: Node } {
  const short = binary(b, 'le', size, shortest[size.dtype]!);
  const divisor = where(b, short, fullLike(b, size, 1), size);
  const shape = dims(rows);
  const spread = (node: Node): Node => broadcast(b, reshape(b, node, [shape[0]!, shape[1]!, 1]), shape);
  const unit = div(b, rows, spread(divisor));
  return { rows: where(b, spread(short), fullLike(b, unit, 0), unit), missing: short };
}

/** Singular values alone, descending: [count, min(m, n)]. */
export function singularValues(b: GraphBuilder, a: Node): Node {
  const [count, m, n] = dims(a) as [number, number, number];
  if (Math.min(m, n) === 0 || count === 0) return full(b, [count, Math.min(m, n)], 0, a.dtype);
  const { x, scale } = scaledToOne(b, m < n ? a : adjoint(b, a));
  const rows = paddedColumns(b, x);
  const found = lengths(b, rotated(b, rows, dims(rows)[2]!));
  const order = formula.orderOf(b, found, 1, true);
  const sorted = b.add('gather', [found, order], { axis: 1 }) as Node;
  return mul(b, sorted, broadcast(b, reshape(b, scale, [count, 1]), dims(sorted)));
}

/** U, s and Vᴴ. `full`: U and V with all columns, an orthonormal basis each. */
export function singularParts(b: GraphBuilder, a: Node, isFull: boolean): SingularNodes {
  const [count, m, n] = dims(a) as [number, number, number];
  if (m < n) {
    const { u, s, vh } = singularParts(b, adjoint(b, a), isFull);
    return { u: adjoint(b, vh), s, vh: adjoint(b, u) };
  }
  if (n === 0 || count === 0) {
    const u = isFull ? identity(b, count, m, a) : full(b, [count, m, n], 0, a.dtype);
    return { u, s: full(b, [count, n], 0, a.dtype), vh: full(b, [count, n, n], 0, a.dtype) };
  }
  const { x, scale } = scaledToOne(b, adjoint(b, a));
  const rows = paddedColumns(b, x);
  const width = dims(rows)[2]!;
  // 1, or NaN where the scale is: then nothing is told of V either.
  const one = identity(b, count, n, x);
  const beside = mul(b, one, broadcast(b, div(b, scale, scale), dims(one)));
  const turned = rotated(b, concat(b, [rows, paddedColumns(b, beside)], 2), width);
  const found = lengths(b, sliceAxis(b, turned, 2, 0, width));
  const order = formula.orderOf(b, found, 1, true);
  const sorted = rowsAt(b, turned, order);
  const size = b.add('gather', [found, order], { axis: 1 }) as Node;
  const unit = normalised(b, sliceAxis(b, sorted, 2, 0, m), size);
  const whole = isFull ? padConstant(b, unit.rows, [0, 0, 0], [0, m - n, 0], 0) : unit.rows;
  const missing = isFull ? padMissing(b, unit.missing, m) : unit.missing;
  const s = mul(b, size, broadcast(b, reshape(b, scale, [count, 1]), dims(size)));
  return {
    u: adjoint(b, b.add('completeRows', [whole, missing], { parts: 1 }) as Node),
    s,
    vh: sliceAxis(b, sorted, 2, width, n),
  };
}

function padMissing(b: GraphBuilder, missing: Node, rows: number): Node {
  const [count, n] = dims(missing) as [number, number];
  if (rows === n) return missing;
  return concat(b, [missing, full(b, [count, rows - n], 1, 'bool')], 1);
}

/** The Hermitian matrix that a triangle stands for. */
export function fromTriangle(b: GraphBuilder, a: Node, uplo: 'L' | 'U'): Node {
  const shape = dims(a);
  const [row, column] = [formula.iota(b, shape, 1), formula.iota(b, shape, 2)];
  const kept = uplo === 'L' ? binary(b, 'le', column, row) : binary(b, 'le', row, column);
  return where(b, kept, a, adjoint(b, a));
}

/** Eigenvalues [count, n], ascending, and eigenvectors as columns [count, n, n]. */
export function eigenParts(b: GraphBuilder, h: Node): { readonly w: Node; readonly v: Node } {
  const [count, n] = dims(h) as [number, number, number];
  if (n === 0 || count === 0)
    return { w: full(b, [count, n], 0, h.dtype), v: full(b, [count, n, n], 0, h.dtype) };
  const { x, scale } = scaledToOne(b, h);
  const { rows, size } = shiftedRows(b, x);
  const vectors = normalised(b, rows, size).rows;
  // Quotients v·H·vᴴ are off by the square of what the vectors are off by.
  const image = product(b, vectors, x);
  const found = reduce(b, 'sum', mul(b, image, vectors), [2]);
  const order = formula.orderOf(b, found, 1, false);
  const sorted = b.add('gather', [found, order], { axis: 1 }) as Node;
  const w = mul(b, sorted, broadcast(b, reshape(b, scale, [count, 1]), dims(sorted)));
  return { w, v: adjoint(b, rowsAt(b, vectors, order)) };
}

/** The rows of J·(H + c), orthogonal, and their lengths: c is well beyond any eigenvalue of −H. */
function shiftedRows(b: GraphBuilder, h: Node): { readonly rows: Node; readonly size: Node } {
  const [count, n] = dims(h) as [number, number, number];
  const sums = reduceKeep(b, 'sum', unary(b, 'abs', h), [2]);
  const bySums = reduceKeep(b, 'max', sums, [1]);
  const bySquares = unary(b, 'sqrt', reduceKeep(b, 'sum', formula.square(b, h), [1, 2]));
  const bound = binary(b, 'min', bySums, bySquares);
  const safe = where(b, binary(b, 'eq', bound, 0), fullLike(b, bound, 1), bound);
  const shift = broadcast(b, mul(b, safe, 1.25), dims(h));
  const shifted = add(b, h, mul(b, shift, identity(b, count, n, h)));
  const wide = paddedColumns(b, shifted);
  const turned = rotated(b, wide, dims(wide)[2]!);
  return { rows: sliceAxis(b, turned, 2, 0, n), size: lengths(b, turned) };
}

/** Eigenvalues alone, ascending. */
export function eigenvalues(b: GraphBuilder, h: Node): Node {
  return eigenParts(b, h).w;
}
