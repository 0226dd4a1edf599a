// What matrix algorithms mean: the textbook's algorithms, line by line in double precision, rounded
// once at the end.

import { factorRow, type FactorKind, type Size } from '../../factor.ts';
import { emptyData, type HostArray } from '../../value.ts';
import { cholesky, triangularSolve } from './cholesky.ts';
import { householder, orthogonalAndR } from './householder.ts';
import { exchanged, lu } from './lu.ts';
import type { Matrix } from './matrix.ts';
import { schur } from './schur.ts';

/** Fills `out`, which starts as zeros. */
export type Algorithm = (operands: readonly Matrix[], out: Matrix) => void;

const algorithms: { readonly [K in FactorKind]: Algorithm } = {
  schur: ([a], out) => schur(a!, out),
  cholesky: ([a], out) => cholesky(a!, out),
  lowerSolve: ([l, b], out) => triangularSolve(l!, b!, out, false),
  unitLowerSolve: ([l, b], out) => triangularSolve(l!, b!, out, true),
  lu: ([a], out) => lu(a!, out),
  householder: ([a], out) => householder(a!, out),
  qr: ([a], out) => orthogonalAndR(a!, out),
  exchanges: ([a], out) => exchanged(a!, out),
};

/** The packed result of a matrix algorithm on every matrix of a stack. */
export function factor(inputs: readonly HostArray[], kind: FactorKind): HostArray {
  const [lines] = inputs[0]!.shape as [number, number, number];
  const sizes = inputs.map(({ shape }): Size => [shape[1]!, shape[2]!]);
  const [rows, columns] = factorRow(kind).result(...sizes);
  const { dtype } = inputs[0]!;
  const data = emptyData(dtype, lines * rows * columns);
  for (let line = 0; line < lines; line++) {
    const operands = inputs.map(({ data: from }, i): Matrix => {
      const [m, n] = sizes[i]!;
      const part = from.slice(line * m * n, (line + 1) * m * n);
      return { rows: m, columns: n, data: Float64Array.from(part as ArrayLike<number>) };
    });
    const out = { rows, columns, data: new Float64Array(rows * columns) };
    algorithms[kind](operands, out);
    (data as Float64Array).set(out.data, line * rows * columns);
  }
  return { dtype, shape: [lines, rows, columns], data };
}
