// What matrix algorithms mean: the textbook's algorithms, line by line in double precision, rounded
// once at the end.

import { CompilerBug } from '../../../errors.ts';
import { isComplex } from '../../dtype.ts';
import { factorRow, type FactorKind, type Size } from '../../factor.ts';
import { emptyData, partCount, type HostArray } from '../../value.ts';
import { cholesky, triangularSolve } from './cholesky.ts';
import { complexes, reals, type ScalarField, type Matrix } from './field.ts';
import { householder, orthogonalAndR } from './householder.ts';
import { ldl } from './ldl.ts';
import { exchanged, lu } from './lu.ts';
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
