// Cholesky's factorisation and substitution, element by element.

import { MatrixElements, type ScalarField, type Matrix } from './field.ts';

/**
 * The lower triangle of L·Lᴴ = A; NaN from the first column on whose pivot is not positive. Of the
 * diagonal of A the real parts are read.
 */
export function cholesky<T>(f: ScalarField<T>, a: Matrix, out: Matrix): void {
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
export function triangularSolve<T>(
  f: ScalarField<T>,
  l: Matrix,
  b: Matrix,
  out: Matrix,
  unit: boolean,
): void {
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
