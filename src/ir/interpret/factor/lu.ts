// Gaussian elimination with partial pivoting, element by element.

import { MatrixElements, type ScalarField, type Matrix } from './field.ts';

/** L and U in one matrix, the row of A behind each row, and the exchanges. */
export function lu<T>(f: ScalarField<T>, a: Matrix, out: Matrix): void {
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
export function exchanged(a: Matrix, out: Matrix): void {
  const order = out.data;
  order.forEach((_, i) => (order[i] = i));
  for (let i = 0; i < a.rows; i++) {
    const at = Math.min(Math.max(Math.trunc(a.data[i]!) || 0, 0), a.rows - 1);
    const kept = order[i]!;
    order[i] = order[at]!;
    order[at] = kept;
  }
}
