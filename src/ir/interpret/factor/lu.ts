// Gaussian elimination with partial pivoting, element by element.

import type { Matrix } from './matrix.ts';

/** L and U in one matrix, the row of A behind each row, and the exchanges. */
export function lu(a: Matrix, out: Matrix): void {
  const [m, n, width, x] = [a.rows, a.columns, out.columns, out.data];
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) x[i * width + j] = a.data[i * n + j]!;
    x[i * width + n] = i;
  }
  for (let j = 0; j < Math.min(m, n); j++) {
    let at = j;
    for (let i = j + 1; i < m; i++) if (Math.abs(x[i * width + j]!) > Math.abs(x[at * width + j]!)) at = i;
    for (let c = 0; c <= n; c++) {
      const kept = x[j * width + c]!;
      x[j * width + c] = x[at * width + c]!;
      x[at * width + c] = kept;
    }
    x[j * width + n + 1] = at;
    const pivot = x[j * width + j]!;
    for (let i = j + 1; i < m; i++) {
      // Without a pivot the column holds zeros, and nothing is eliminated.
      const scale = pivot === 0 ? x[i * width + j]! : x[i * width + j]! / pivot;
      x[i * width + j] = scale;
      for (let c = j + 1; c < n; c++) x[i * width + c]! -= scale * x[j * width + c]!;
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
