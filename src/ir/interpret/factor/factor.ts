// What matrix algorithms mean: the textbook's algorithms, line by line in double precision, rounded
// once at the end.

import { CompilerBug } from '../../../errors.ts';
import { isComplex } from '../../dtype.ts';
import { factorRow, type FactorKind, type Size } from '../../factor.ts';
import { emptyData, partCount, type HostArray } from '../../value.ts';
import {
  complexCholesky,
  complexHouseholder,
  complexLu,
  complexOrthogonalAndR,
  complexTriangularSolve,
  ofParts,
} from './complex.ts';
import { cholesky, triangularSolve } from './cholesky.ts';
import { householder, orthogonalAndR } from './householder.ts';
import { ldl } from './ldl.ts';
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
  ldlSymmetric: ([a], out) => ldl(a!, out, false),
  ldlHermitian: ([a], out) => ldl(a!, out, true),
  luOfPairs: ([a], out) => ofParts(complexLu, 2)(a!, out),
  householderOfPairs: ([a], out) => ofParts(complexHouseholder)(a!, out),
};

/** Those of complex matrices, whose elements are pairs. */
const ofComplex: { readonly [K in FactorKind]?: Algorithm } = {
  cholesky: ([a], out) => complexCholesky(a!, out),
  lowerSolve: ([l, b], out) => complexTriangularSolve(l!, b!, out, false),
  unitLowerSolve: ([l, b], out) => complexTriangularSolve(l!, b!, out, true),
  lu: ([a], out) => complexLu(a!, out),
  householder: ([a], out) => complexHouseholder(a!, out),
  qr: ([a], out) => complexOrthogonalAndR(a!, out),
};

/** The packed result of a matrix algorithm on every matrix of a stack. */
export function factor(inputs: readonly HostArray[], kind: FactorKind): HostArray {
  const [lines] = inputs[0]!.shape as [number, number, number];
  const sizes = inputs.map(({ shape }): Size => [shape[1]!, shape[2]!]);
  const [rows, columns] = factorRow(kind).result(...sizes);
  const { dtype } = inputs[0]!;
  const parts = partCount(dtype);
  const algorithm = isComplex(dtype) ? ofComplex[kind] : algorithms[kind];
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
