// Householder's reflections: each makes the rest of a column zeros, in LAPACK's convention
// (H = I − τ·v·vᴴ with v₀ = 1, and R has a real diagonal; τ = 0 where the column is so already).

import { MatrixElements, type ScalarField, type Matrix } from './field.ts';

/** R, the vectors below it, and the τ in a last row. */
export function householder<T>(f: ScalarField<T>, a: Matrix, out: Matrix): void {
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
export function orthogonalAndR<T>(f: ScalarField<T>, a: Matrix, out: Matrix): void {
  const [m, n] = [a.rows, a.columns];
  const k = Math.min(m, n);
  const packed: Matrix = { rows: m + 1, columns: n, data: new Float64Array(f.parts * (m + 1) * n) };
  householder(f, a, packed);
  const [x, q] = [new MatrixElements(f, packed), new MatrixElements(f, out)];
  for (let j = 0; j < k; j++) q.put(j, j, f.real(1));
  for (let j = k - 1; j >= 0; j--) for (let c = j; c < k; c++) reflect(f, x, m, j, c, q, x.at(m, j));
  for (let i = 0; i < k; i++) for (let j = i; j < n; j++) q.put(i, k + j, x.at(i, j));
}
