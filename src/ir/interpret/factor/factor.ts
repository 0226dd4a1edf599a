// What matrix algorithms mean: the textbook's algorithms, line by line in double precision, rounded
// once at the end.

import { CompilerBug } from '../../../errors.ts';
import { isComplex } from '../../dtype.ts';
import { factorRow, type FactorKind, type Size } from '../../factor.ts';
import { emptyData, partCount, type HostArray } from '../../value.ts';
import { complexes, MatrixElements, reals, type Matrix, type ScalarField } from './field.ts';
import { ldl } from './ldl.ts';
import { schur } from './schur.ts';

/** Fills `out`, which starts as zeros. */
export type Algorithm = (operands: readonly Matrix[], out: Matrix) => void;

/** What has a meaning on real and on complex matrices. */
const over = <T>(f: ScalarField<T>) =>
  ({
    cholesky: ([a], out) => cholesky(f, a!, out),
    lowerSolve: ([l, b], out) => triangularSolve(f, l!, b!, out, false),
    unitLowerSolve: ([l, b], out) => triangularSolve(f, l!, b!, out, true),
    lu: ([a], out) => lu(f, a!, out),
    householder: ([a], out) => householder(f, a!, out),
    qr: ([a], out) => orthogonalAndR(f, a!, out),
  }) satisfies { readonly [K in FactorKind]?: Algorithm };

const ofReal: { readonly [K in FactorKind]: Algorithm } = {
  ...over(reals),
  schur: ([a], out) => schur(a!, out),
  exchanges: ([a], out) => exchanged(a!, out),
  ldlSymmetric: ([a], out) => ldl(a!, out, false),
  ldlHermitian: ([a], out) => ldl(a!, out, true),
  luOfPairs: ([a], out) => ofParts((pairs, found) => lu(complexes, pairs, found), 2)(a!, out),
  householderOfPairs: ([a], out) => ofParts((pairs, found) => householder(complexes, pairs, found))(a!, out),
};

/** Those of complex matrices, whose elements are pairs. */
const ofComplex: { readonly [K in FactorKind]?: Algorithm } = over(complexes);

/**
 * An algorithm on a matrix whose real parts stand before its imaginary ones. What it gives has
 * `marks` columns of whole numbers, which stand behind both.
 */
function ofParts(algorithm: (a: Matrix, out: Matrix) => void, marks = 0): (a: Matrix, out: Matrix) => void {
  return (a, out) => {
    const n = a.columns / 2;
    const data = new Float64Array(a.data.length);
    const place = (i: number, j: number): number => 2 * (i * n + j);
    for (let i = 0; i < a.rows; i++)
      for (let j = 0; j < n; j++) {
        data[place(i, j)] = a.data[i * a.columns + j]!;
        data[place(i, j) + 1] = a.data[i * a.columns + n + j]!;
      }
    const columns = (out.columns - marks) / 2;
    const found: Matrix = {
      rows: out.rows,
      columns: columns + marks,
      data: new Float64Array(2 * out.rows * (columns + marks)),
    };
    algorithm({ rows: a.rows, columns: n, data }, found);
    for (let i = 0; i < out.rows; i++) {
      for (let j = 0; j < columns + marks; j++) {
        const from = 2 * (i * found.columns + j);
        const isMark = j >= columns;
        out.data[i * out.columns + (isMark ? columns + j : j)] = found.data[from]!;
        if (!isMark) out.data[i * out.columns + columns + j] = found.data[from + 1]!;
      }
    }
  };
}

/** The packed result of a matrix algorithm on every matrix of a stack. */
export function factor(inputs: readonly HostArray[], kind: FactorKind): HostArray {
  const [lines] = inputs[0]!.shape as [number, number, number];
  const sizes = inputs.map(({ shape }): Size => [shape[1]!, shape[2]!]);
  const [rows, columns] = factorRow(kind).result(...sizes);
  const { dtype } = inputs[0]!;
  const parts = partCount(dtype);
  const algorithm = isComplex(dtype) ? ofComplex[kind] : ofReal[kind];
  if (algorithm === undefined)
    throw new CompilerBug('interpret', `${kind} has no meaning on complex numbers`);
  const data = emptyData(dtype, lines * rows * columns);
  for (let line = 0; line < lines; line++) {
    const operands = inputs.map(({ data: from }, i): Matrix => {
      const [m, n] = sizes[i]!;
      const part = from.slice(line * m * n * parts, (line + 1) * m * n * parts);
      return { rows: m, columns: n, data: Float64Array.from(part as ArrayLike<number>) };
    });
    const out = { rows, columns, data: new Float64Array(rows * columns * parts) };
    algorithm(operands, out);
    (data as Float64Array).set(out.data, line * rows * columns * parts);
  }
  return { dtype, shape: [lines, rows, columns], data };
}

// Cholesky's factorisation and substitution, element by element.

/**
 * The lower triangle of L·Lᴴ = A; NaN from the first column on whose pivot is not positive. Of the
 * diagonal of A the real parts are read.
 */
function cholesky<T>(f: ScalarField<T>, a: Matrix, out: Matrix): void {
  const [from, l] = [new MatrixElements(f, a), new MatrixElements(f, out)];
  for (let i = 0; i < a.rows; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = from.at(i, j);
      for (let k = 0; k < j; k++) sum = f.minus(sum, f.times(l.at(i, k), f.conj(l.at(j, k))));
      if (i === j) l.put(i, i, f.real(f.realPart(sum) > 0 ? Math.sqrt(f.realPart(sum)) : NaN));
      else l.put(i, j, f.reduced(sum, f.realPart(l.at(j, j))));
    }
  }
}

/** X of L·X = B by forward substitution. */
function triangularSolve<T>(f: ScalarField<T>, l: Matrix, b: Matrix, out: Matrix, unit: boolean): void {
  const [triangle, sides, x] = [
    new MatrixElements(f, l),
    new MatrixElements(f, b),
    new MatrixElements(f, out),
  ];
  for (let i = 0; i < l.rows; i++) {
    for (let c = 0; c < b.columns; c++) {
      let sum = sides.at(i, c);
      for (let j = 0; j < i; j++) sum = f.minus(sum, f.times(triangle.at(i, j), x.at(j, c)));
      x.put(i, c, unit ? sum : f.over(sum, triangle.at(i, i)));
    }
  }
}

// Householder's reflections: each makes the rest of a column zeros, in LAPACK's convention
// (H = I − τ·v·vᴴ with v₀ = 1, and R has a real diagonal; τ = 0 where the column is so already).

/** R, the vectors below it, and the τ in a last row. */
function householder<T>(f: ScalarField<T>, a: Matrix, out: Matrix): void {
  const [m, n] = [a.rows, a.columns];
  const x = new MatrixElements(f, out);
  out.data.set(a.data);
  for (let j = 0; j < Math.min(m, n); j++) {
    let rest = 0;
    for (let i = j + 1; i < m; i++) rest = f.longer(rest, x.at(i, j));
    const alpha = x.at(j, j);
    if (rest === 0 && f.imaginaryPart(alpha) === 0) continue;
    const length = f.longer(rest, alpha);
    const beta = f.realPart(alpha) < 0 ? length : -length;
    const divisor = f.minus(alpha, f.real(beta));
    const tau = f.reduced(divisor, -beta);
    for (let i = j + 1; i < m; i++) x.put(i, j, f.over(x.at(i, j), divisor));
    x.put(j, j, f.real(beta));
    x.put(m, j, tau);
    for (let c = j + 1; c < n; c++) reflect(f, x, m, j, c, x, f.conj(tau));
  }
}

/** Applies I − τ·v·vᴴ with the vector in column `j` to column `c` of `to`. */
function reflect<T>(
  f: ScalarField<T>,
  x: MatrixElements<T>,
  m: number,
  j: number,
  c: number,
  to: MatrixElements<T>,
  tau: T,
): void {
  let sum = to.at(j, c);
  for (let i = j + 1; i < m; i++) sum = f.plus(sum, f.times(f.conj(x.at(i, j)), to.at(i, c)));
  const share = f.times(tau, sum);
  to.put(j, c, f.minus(to.at(j, c), share));
  for (let i = j + 1; i < m; i++) to.put(i, c, f.minus(to.at(i, c), f.times(x.at(i, j), share)));
}

/** Q beside R above zeros. */
function orthogonalAndR<T>(f: ScalarField<T>, a: Matrix, out: Matrix): void {
  const [m, n] = [a.rows, a.columns];
  const k = Math.min(m, n);
  const packed: Matrix = { rows: m + 1, columns: n, data: new Float64Array(f.parts * (m + 1) * n) };
  householder(f, a, packed);
  const [x, q] = [new MatrixElements(f, packed), new MatrixElements(f, out)];
  for (let j = 0; j < k; j++) q.put(j, j, f.real(1));
  for (let j = k - 1; j >= 0; j--) for (let c = j; c < k; c++) reflect(f, x, m, j, c, q, x.at(m, j));
  for (let i = 0; i < k; i++) for (let j = i; j < n; j++) q.put(i, k + j, x.at(i, j));
}

// Gaussian elimination with partial pivoting, element by element.

/** L and U in one matrix, the row of A behind each row, and the exchanges. */
function lu<T>(f: ScalarField<T>, a: Matrix, out: Matrix): void {
  const [m, n] = [a.rows, a.columns];
  const [from, x] = [new MatrixElements(f, a), new MatrixElements(f, out)];
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) x.put(i, j, from.at(i, j));
    x.put(i, n, f.real(i));
  }
  for (let j = 0; j < Math.min(m, n); j++) {
    let at = j;
    for (let i = j + 1; i < m; i++) if (f.size(x.at(i, j)) > f.size(x.at(at, j))) at = i;
    for (let c = 0; c <= n; c++) {
      const kept = x.at(j, c);
      x.put(j, c, x.at(at, c));
      x.put(at, c, kept);
    }
    x.put(j, n + 1, f.real(at));
    const pivot = x.at(j, j);
    for (let i = j + 1; i < m; i++) {
      // Without a pivot the column holds zeros, and nothing is eliminated.
      const scale = f.size(pivot) === 0 ? x.at(i, j) : f.over(x.at(i, j), pivot);
      x.put(i, j, scale);
      for (let c = j + 1; c < n; c++) x.put(i, c, f.minus(x.at(i, c), f.times(scale, x.at(j, c))));
    }
  }
}

/** The order of rows after the exchanges; those with rows that there are not leave it. */
function exchanged(a: Matrix, out: Matrix): void {
  const order = out.data;
  order.forEach((_, i) => (order[i] = i));
  for (let i = 0; i < a.rows; i++) {
    const at = Math.min(Math.max(Math.trunc(a.data[i]!) || 0, 0), a.rows - 1);
    const kept = order[i]!;
    order[i] = order[at]!;
    order[at] = kept;
  }
}
