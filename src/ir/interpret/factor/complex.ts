// The algorithms on complex matrices, in LAPACK's conventions: pivots by |re| + |im|, reflectors
// whose R has a real diagonal. Elements are pairs of doubles, row by row.

import { complexScalar, times, type Complex } from '../complex-scalar.ts';
import type { Matrix } from './matrix.ts';

const over = complexScalar('div');
const minus = ([a, b]: Complex, [c, d]: Complex): Complex => [a - c, b - d];
const conj = ([a, b]: Complex): Complex => [a, -b];
const size = ([a, b]: Complex): number => Math.abs(a) + Math.abs(b);

/** Elements of a complex matrix by row and column. */
class Elements {
  readonly #data: Float64Array;
  readonly #columns: number;

  constructor({ data, columns }: Matrix) {
    [this.#data, this.#columns] = [data, columns];
  }

  at(i: number, j: number): Complex {
    const place = 2 * (i * this.#columns + j);
    return [this.#data[place]!, this.#data[place + 1]!];
  }

  put(i: number, j: number, [re, im]: Complex): void {
    const place = 2 * (i * this.#columns + j);
    this.#data[place] = re;
    this.#data[place + 1] = im;
  }
}

/** L of A = L·Lᴴ; of the diagonal of A the real parts are read. */
export function complexCholesky(a: Matrix, out: Matrix): void {
  const [from, l] = [new Elements(a), new Elements(out)];
  for (let i = 0; i < a.rows; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = from.at(i, j);
      for (let k = 0; k < j; k++) sum = minus(sum, times(l.at(i, k), conj(l.at(j, k))));
      if (i === j) l.put(i, i, [sum[0] > 0 ? Math.sqrt(sum[0]) : NaN, 0]);
      else {
        const [root] = l.at(j, j);
        l.put(i, j, [sum[0] / root, sum[1] / root]);
      }
    }
  }
}

/** X of L·X = B by forward substitution. */
export function complexTriangularSolve(l: Matrix, b: Matrix, out: Matrix, unit: boolean): void {
  const [triangle, sides, x] = [new Elements(l), new Elements(b), new Elements(out)];
  for (let i = 0; i < l.rows; i++) {
    for (let c = 0; c < b.columns; c++) {
      let sum = sides.at(i, c);
      for (let j = 0; j < i; j++) sum = minus(sum, times(triangle.at(i, j), x.at(j, c)));
      x.put(i, c, unit ? sum : over(sum, triangle.at(i, i), sum));
    }
  }
}

/** L and U in one matrix, the row of A behind each row, and the exchanges. */
export function complexLu(a: Matrix, out: Matrix): void {
  const [m, n] = [a.rows, a.columns];
  const [from, x] = [new Elements(a), new Elements(out)];
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) x.put(i, j, from.at(i, j));
    x.put(i, n, [i, 0]);
  }
  for (let j = 0; j < Math.min(m, n); j++) {
    let at = j;
    for (let i = j + 1; i < m; i++) if (size(x.at(i, j)) > size(x.at(at, j))) at = i;
    for (let c = 0; c <= n; c++) {
      const kept = x.at(j, c);
      x.put(j, c, x.at(at, c));
      x.put(at, c, kept);
    }
    x.put(j, n + 1, [at, 0]);
    const pivot = x.at(j, j);
    for (let i = j + 1; i < m; i++) {
      // Without a pivot the column holds zeros, and nothing is eliminated.
      const scale = size(pivot) === 0 ? x.at(i, j) : over(x.at(i, j), pivot, pivot);
      x.put(i, j, scale);
      for (let c = j + 1; c < n; c++) x.put(i, c, minus(x.at(i, c), times(scale, x.at(j, c))));
    }
  }
}

/** R with a real diagonal, the vectors below it, and the τ of H = I − τ·v·vᴴ in a last row. */
export function complexHouseholder(a: Matrix, out: Matrix): void {
  const [m, n] = [a.rows, a.columns];
  const x = new Elements(out);
  out.data.set(a.data);
  for (let j = 0; j < Math.min(m, n); j++) {
    let rest = 0;
    for (let i = j + 1; i < m; i++) rest = Math.hypot(rest, ...x.at(i, j));
    const alpha = x.at(j, j);
    if (rest === 0 && alpha[1] === 0) continue;
    const length = Math.hypot(rest, ...alpha);
    const beta = alpha[0] < 0 ? length : -length;
    const divisor: Complex = [alpha[0] - beta, alpha[1]];
    for (let i = j + 1; i < m; i++) x.put(i, j, over(x.at(i, j), divisor, divisor));
    const tau: Complex = [(beta - alpha[0]) / beta, -alpha[1] / beta];
    x.put(j, j, [beta, 0]);
    x.put(m, j, tau);
    for (let c = j + 1; c < n; c++) reflect(x, m, j, c, x, conj(tau));
  }
}

/** Applies I − τ·v·vᴴ with the vector in column `j` to column `c` of `to`. */
function reflect(x: Elements, m: number, j: number, c: number, to: Elements, tau: Complex): void {
  let [re, im] = to.at(j, c);
  for (let i = j + 1; i < m; i++) {
    const term = times(conj(x.at(i, j)), to.at(i, c));
    re += term[0];
    im += term[1];
  }
  const share = times(tau, [re, im]);
  to.put(j, c, minus(to.at(j, c), share));
  for (let i = j + 1; i < m; i++) to.put(i, c, minus(to.at(i, c), times(x.at(i, j), share)));
}

/** Q beside R above zeros. */
export function complexOrthogonalAndR(a: Matrix, out: Matrix): void {
  const [m, n] = [a.rows, a.columns];
  const k = Math.min(m, n);
  const packed: Matrix = { rows: m + 1, columns: n, data: new Float64Array(2 * (m + 1) * n) };
  complexHouseholder(a, packed);
  const [x, q] = [new Elements(packed), new Elements(out)];
  for (let j = 0; j < k; j++) q.put(j, j, [1, 0]);
  for (let j = k - 1; j >= 0; j--) for (let c = j; c < k; c++) reflect(x, m, j, c, q, x.at(m, j));
  for (let i = 0; i < k; i++) for (let j = i; j < n; j++) q.put(i, k + j, x.at(i, j));
}

type Algorithm = (a: Matrix, out: Matrix) => void;

/**
 * An algorithm on a matrix whose real parts stand before its imaginary ones. What it gives has
 * `marks` columns of whole numbers, which stand behind both.
 */
export function ofParts(algorithm: Algorithm, marks = 0): Algorithm {
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
