// Cholesky's factorisation and substitution, element by element.

import type { Matrix } from './matrix.ts';

/** The lower triangle of L·Lᵀ = A; NaN from the first column on whose pivot is not positive. */
export function cholesky(a: Matrix, out: Matrix): void {
  const n = a.rows;
  const l = out.data;
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = a.data[i * n + j]!;
      for (let k = 0; k < j; k++) sum -= l[i * n + k]! * l[j * n + k]!;
      if (i === j) l[i * n + i] = sum > 0 ? Math.sqrt(sum) : NaN;
      else l[i * n + j] = sum / l[j * n + j]!;
    }
  }
}

/** X of L·X = B by forward substitution. */
export function triangularSolve(l: Matrix, b: Matrix, out: Matrix, unit: boolean): void {
  const [n, columns, x] = [l.rows, b.columns, out.data];
  for (let i = 0; i < n; i++) {
    for (let c = 0; c < columns; c++) {
      let sum = b.data[i * columns + c]!;
      for (let j = 0; j < i; j++) sum -= l.data[i * n + j]! * x[j * columns + c]!;
      x[i * columns + c] = unit ? sum : sum / l.data[i * n + i]!;
    }
  }
}
