// Householder's reflections: each makes the rest of a column zeros, in LAPACK's convention
// (H = I − τ·v·vᵀ with v₀ = 1; τ = 0 where the rest is zeros already).

import type { Matrix } from './matrix.ts';

/** R, the vectors below it, and the τ in a last row. */
export function householder(a: Matrix, out: Matrix): void {
  const [m, n, x] = [a.rows, a.columns, out.data];
  x.set(a.data);
  for (let j = 0; j < Math.min(m, n); j++) {
    let rest = 0;
    for (let i = j + 1; i < m; i++) rest = Math.hypot(rest, x[i * n + j]!);
    if (rest === 0) continue;
    const alpha = x[j * n + j]!;
    const beta = alpha < 0 ? Math.hypot(alpha, rest) : -Math.hypot(alpha, rest);
    const tau = (beta - alpha) / beta;
    for (let i = j + 1; i < m; i++) x[i * n + j]! /= alpha - beta;
    x[j * n + j] = beta;
    x[m * n + j] = tau;
    for (let c = j + 1; c < n; c++) reflect(x, m, n, j, c, x, n, tau);
  }
}

/** Applies the reflector in column `j` to column `c` of `to`, which is `width` wide. */
function reflect(
  x: Float64Array,
  m: number,
  n: number,
  j: number,
  c: number,
  to: Float64Array,
  width: number,
  tau: number,
): void {
  let sum = to[j * width + c]!;
  for (let i = j + 1; i < m; i++) sum += x[i * n + j]! * to[i * width + c]!;
  sum *= tau;
  to[j * width + c]! -= sum;
  for (let i = j + 1; i < m; i++) to[i * width + c]! -= x[i * n + j]! * sum;
}

/** Q beside R above zeros. */
export function orthogonalAndR(a: Matrix, out: Matrix): void {
  const [m, n] = [a.rows, a.columns];
  const k = Math.min(m, n);
  const packed = { rows: m + 1, columns: n, data: new Float64Array((m + 1) * n) };
  householder(a, packed);
  const width = out.columns;
  for (let j = 0; j < k; j++) out.data[j * width + j] = 1;
  for (let j = k - 1; j >= 0; j--)
    for (let c = j; c < k; c++) reflect(packed.data, m, n, j, c, out.data, width, packed.data[m * n + j]!);
  for (let i = 0; i < k; i++)
    for (let j = i; j < n; j++) out.data[i * width + k + j] = packed.data[i * n + j]!;
}
