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
  cast,
  complex,
  conj,
  div,
  full,
  fullLike,
  imag,
  mul,
  real,
  reduce,
  reduceKeep,
  reshape,
  unary,
  where,
} from '../../../ir/build.ts';
import { isComplex, partType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import * as formula from '../../formula/elementwise.ts';
import { concat, padConstant, sliceAxis } from '../../formula/layout.ts';
import { adjoint, identity, rowsAt } from '../../../ir/matrix.ts';
import { eachPart, product, scaledToOne } from './stack.ts';

/** @internal */
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

/** Rows as the primitives take them: of complex ones the real parts stand before the imaginary ones. */
class Planes {
  readonly rows: Node;
  readonly parts: number;

  constructor(rows: Node, parts: number) {
    this.rows = rows;
    this.parts = parts;
  }

  /** Matrices beside each other, each filled up to whole vectors. */
  static of(b: GraphBuilder, ...matrices: readonly Node[]): Planes {
    const isPair = isComplex(matrices[0]!.dtype);
    const padded = (part: (b: GraphBuilder, x: Node) => Node): Node[] =>
      matrices.map((x) => paddedColumns(b, part(b, x)));
    const rows = concat(b, [...padded(real), ...(isPair ? padded(imag) : [])], 2);
    return new Planes(rows, isPair ? 2 : 1);
  }

  /** `columns` of every row, from the one numbered `start`. */
  columns(b: GraphBuilder, start: number, columns: number): Node {
    const half = dims(this.rows)[2]! / this.parts;
    const part = (at: number): Node => sliceAxis(b, this.rows, 2, at * half + start, columns);
    return this.parts === 1 ? part(0) : complex(b, part(0), part(1));
  }

  /** Rotated until the first `width` columns of any two rows are orthogonal. */
  rotated(b: GraphBuilder, width: number): Planes {
    const rows = b.add('jacobiRows', [this.rows], { width, parts: this.parts }) as Node;
    return new Planes(rows, this.parts);
  }

  sorted(b: GraphBuilder, order: Node): Planes {
    return new Planes(rowsAt(b, this.rows, order), this.parts);
  }
}

/** Orthonormal rows, those that are missing made anew. */
function completed(b: GraphBuilder, rows: Node, missing: Node): Node {
  const columns = dims(rows)[2]!;
  const isPair = isComplex(rows.dtype);
  const planes = isPair ? concat(b, [real(b, rows), imag(b, rows)], 2) : rows;
  const parts = isPair ? 2 : 1;
  const whole = b.add('completeRows', [planes, missing], { parts }) as Node;
  return new Planes(whole, parts).columns(b, 0, columns);
}

/** √Σ|x|² of each row, [count, n]. */
function lengths(b: GraphBuilder, rows: Node): Node {
  return unary(b, 'sqrt', reduce(b, 'sum', formula.squaredSize(b, rows), [2]));
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
  const unit = eachPart(b, rows, (part) => div(b, part, spread(divisor)));
  return { rows: where(b, spread(short), fullLike(b, unit, 0), unit), missing: short };
}

/** Singular values alone, descending: [count, min(m, n)]. @internal */
export function singularValues(b: GraphBuilder, a: Node): Node {
  const [count, m, n] = dims(a) as [number, number, number];
  if (Math.min(m, n) === 0 || count === 0) return full(b, [count, Math.min(m, n)], 0, partType(a.dtype));
  const { x, scale } = scaledToOne(b, m < n ? a : adjoint(b, a));
  const width = dims(x)[2]!;
  const found = lengths(b, Planes.of(b, x).rotated(b, rounded(width)).columns(b, 0, width));
  const order = formula.orderOf(b, found, 1, true);
  const sorted = b.add('gather', [found, order], { axis: 1 }) as Node;
  return mul(b, sorted, broadcast(b, reshape(b, scale, [count, 1]), dims(sorted)));
}

/** U, s and Vᴴ. `full`: U and V with all columns, an orthonormal basis each. @internal */
export function singularParts(b: GraphBuilder, a: Node, isFull: boolean): SingularNodes {
  const [count, m, n] = dims(a) as [number, number, number];
  if (m < n) {
    const { u, s, vh } = singularParts(b, adjoint(b, a), isFull);
    return { u: adjoint(b, vh), s, vh: adjoint(b, u) };
  }
  if (n === 0 || count === 0) {
    const u = isFull ? identity(b, count, [m, m], a.dtype) : full(b, [count, m, n], 0, a.dtype);
    return { u, s: full(b, [count, n], 0, partType(a.dtype)), vh: full(b, [count, n, n], 0, a.dtype) };
  }
  const { x, scale } = scaledToOne(b, adjoint(b, a));
  const width = rounded(m);
  // 1, or NaN where the scale is: then nothing is told of V either.
  const one = identity(b, count, [n, n], x.dtype);
  const certain = broadcast(b, div(b, scale, scale), dims(one));
  const beside = eachPart(b, one, (part) => mul(b, part, certain));
  const turned = Planes.of(b, x, beside).rotated(b, width);
  const found = lengths(b, turned.columns(b, 0, m));
  const order = formula.orderOf(b, found, 1, true);
  const sorted = turned.sorted(b, order);
  const size = b.add('gather', [found, order], { axis: 1 }) as Node;
  const unit = normalised(b, sorted.columns(b, 0, m), size);
  const whole = isFull ? padConstant(b, unit.rows, [0, 0, 0], [0, m - n, 0], 0) : unit.rows;
  const missing = isFull ? padMissing(b, unit.missing, m) : unit.missing;
  const s = mul(b, size, broadcast(b, reshape(b, scale, [count, 1]), dims(size)));
  return { u: adjoint(b, completed(b, whole, missing)), s, vh: sorted.columns(b, width, n) };
}

function padMissing(b: GraphBuilder, missing: Node, rows: number): Node {
  const [count, n] = dims(missing) as [number, number];
  if (rows === n) return missing;
  return concat(b, [missing, full(b, [count, rows - n], 1, 'bool')], 1);
}

/** The Hermitian matrix that a triangle stands for. @internal */
export function fromTriangle(b: GraphBuilder, a: Node, uplo: 'L' | 'U'): Node {
  const shape = dims(a);
  const [row, column] = [formula.iota(b, shape, 1), formula.iota(b, shape, 2)];
  const kept = uplo === 'L' ? binary(b, 'le', column, row) : binary(b, 'le', row, column);
  // What is imaginary on the diagonal is not looked at.
  const own = where(b, binary(b, 'eq', row, column), cast(b, real(b, a), a.dtype), a);
  return where(b, kept, own, adjoint(b, own));
}

/** Eigenvalues [count, n], ascending, and eigenvectors as columns [count, n, n]. @internal */
export function eigenParts(b: GraphBuilder, h: Node): { readonly w: Node; readonly v: Node } {
  const [count, n] = dims(h) as [number, number, number];
  if (n === 0 || count === 0)
    return { w: full(b, [count, n], 0, partType(h.dtype)), v: full(b, [count, n, n], 0, h.dtype) };
  const { x, scale } = scaledToOne(b, h);
  const { rows, size } = shiftedRows(b, x);
  const vectors = normalised(b, rows, size).rows;
  // Quotients v·H·vᴴ are off by the square of what the vectors are off by.
  const image = product(b, vectors, x);
  const found = reduce(b, 'sum', real(b, mul(b, image, conj(b, vectors))), [2]);
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
  const bySquares = unary(b, 'sqrt', reduceKeep(b, 'sum', formula.squaredSize(b, h), [1, 2]));
  const bound = binary(b, 'min', bySums, bySquares);
  const safe = where(b, binary(b, 'eq', bound, 0), fullLike(b, bound, 1), bound);
  const shift = mul(b, broadcast(b, mul(b, safe, 1.25), dims(h)), identity(b, count, [n, n], safe.dtype));
  const turned = Planes.of(b, add(b, h, cast(b, shift, h.dtype))).rotated(b, rounded(n));
  const rows = turned.columns(b, 0, n);
  return { rows, size: lengths(b, rows) };
}

/** Eigenvalues alone, ascending. @internal */
export function eigenvalues(b: GraphBuilder, h: Node): Node {
  return eigenParts(b, h).w;
}
