// One-sided Jacobi rotations in the reference interpreter, in double precision (M. Hestenes,
// "Inversion of matrices by biorthogonalization and related results", 1958): pairs of rows are
// rotated until all are orthogonal, the longer row of a pair first.

import type { Attrs } from '../ops.ts';
import { emptyData, type HostArray } from '../value.ts';

/** Sweeps over all pairs after which the rows are left as they are; six to ten do. */
const sweeps = 40;

export function jacobiRows(x: HostArray, { width, parts }: Attrs<'jacobiRows'>): HostArray {
  const [batch, n, columns] = x.shape as [number, number, number];
  const data = emptyData(x.dtype, x.data.length);
  for (let matrix = 0; matrix < batch; matrix++) {
    const start = matrix * n * columns;
    const rows = Float64Array.from({ length: n * columns }, (_, i) => Number(x.data[start + i]));
    orthogonalise(new Rows(rows, columns, columns / parts, width, parts === 2), n);
    for (let i = 0; i < rows.length; i++) data[start + i] = rows[i]!;
  }
  return { dtype: x.dtype, shape: x.shape, data };
}

function orthogonalise(rows: Rows, n: number): void {
  for (let sweep = 0, turned = true; turned && sweep < sweeps; sweep++) {
    turned = false;
    for (let p = 0; p < n; p++) for (let q = p + 1; q < n; q++) turned = rows.turn(p, q) || turned;
  }
}

/** A row whose square is below this counts for nothing: it is zero but for rounding. */
const least = 1e-285;

/** The rows of one matrix; those that are not complex have imaginary parts of no columns. */
class Rows {
  readonly #rows: Float64Array;
  readonly #columns: number;
  readonly #half: number;
  readonly #width: number;
  readonly #complex: boolean;

  constructor(rows: Float64Array, columns: number, half: number, width: number, complex: boolean) {
    this.#rows = rows;
    this.#columns = columns;
    this.#half = half;
    this.#width = width;
    this.#complex = complex;
  }

  /** Makes rows p and q orthogonal; whether they were not. */
  turn(p: number, q: number): boolean {
    const [x, y, half] = [p * this.#columns, q * this.#columns, this.#half];
    const rows = this.#rows;
    const [alpha, beta] = [this.#product(x, x), this.#product(y, y)];
    const real = this.#product(x, y);
    const imaginary = this.#complex ? this.#part(x + half, y) - this.#part(x, y + half) : 0;
    const gamma = Math.hypot(real, imaginary);
    const tolerance = 2 ** -52 * Math.max(2, Math.sqrt(this.#width));
    if (!(gamma > tolerance * Math.sqrt(alpha) * Math.sqrt(beta)) || Math.min(alpha, beta) < least)
      return false;
    const zeta = (beta - alpha) / (2 * gamma);
    const t = (zeta < 0 ? -1 : 1) / (Math.abs(zeta) + Math.hypot(1, zeta));
    const cosine = 1 / Math.hypot(1, t);
    const sine = cosine * t;
    // The row that comes out longer goes first.
    const swap = alpha < beta;
    const [re, im] = [real / gamma, imaginary / gamma];
    for (let k = 0; k < half; k++) {
      // y turned to where its product with x is real and positive.
      const [v, w] = [rows[y + k]!, this.#complex ? rows[y + half + k]! : 0];
      this.#rotate(x + k, y + k, re * v - im * w, cosine, sine, swap);
      if (this.#complex) this.#rotate(x + half + k, y + half + k, re * w + im * v, cosine, sine, swap);
    }
    return true;
  }

  #rotate(x: number, y: number, turned: number, cosine: number, sine: number, swap: boolean): void {
    const u = this.#rows[x]!;
    const [one, two] = [cosine * u - sine * turned, sine * u + cosine * turned];
    this.#rows[x] = swap ? two : one;
    this.#rows[y] = swap ? one : two;
  }

  /** Σ over the columns that count of products, and of those of the imaginary parts behind them. */
  #product(x: number, y: number): number {
    let sum = this.#part(x, y);
    if (this.#complex) sum += this.#part(x + this.#half, y + this.#half);
    return sum;
  }

  #part(x: number, y: number): number {
    let sum = 0;
    for (let k = 0; k < this.#width; k++) sum += this.#rows[x + k]! * this.#rows[y + k]!;
    return sum;
  }
}

/**
 * Rows that make what is there orthonormal: each is the unit vector of which the others hold the
 * least, without what they hold of it.
 */
export function completeRows(x: HostArray, missing: HostArray, { parts }: Attrs<'completeRows'>): HostArray {
  const [batch, n, columns] = x.shape as [number, number, number];
  const data = emptyData(x.dtype, x.data.length);
  const half = columns / parts;
  for (let matrix = 0; matrix < batch; matrix++) {
    const start = matrix * n * columns;
    const rows: Float64Array[] = Array.from({ length: n }, (_, i) =>
      Float64Array.from({ length: columns }, (__, k) => Number(x.data[start + i * columns + k])),
    );
    rows.forEach((_, i) => {
      if (Number(missing.data[matrix * n + i]) === 0) return;
      rows[i]!.fill(0);
      rows[i] = another(rows, half);
    });
    rows.forEach((row, i) => row.forEach((value, k) => (data[start + i * columns + k] = value)));
  }
  return { dtype: x.dtype, shape: x.shape, data };
}

function another(rows: readonly Float64Array[], half: number): Float64Array {
  const held = Array.from({ length: half }, (_, k) =>
    rows.reduce((sum, row) => sum + row[k]! ** 2 + (row[half + k] ?? 0) ** 2, 0),
  );
  const at = held.indexOf(Math.min(...held));
  const made = new Float64Array(rows[0]!.length);
  made[at] = 1;
  for (const row of rows) {
    const [re, im] = [row[at]!, row[half + at] ?? 0];
    for (let k = 0; k < half; k++) {
      made[k] = made[k]! - re * row[k]! - im * (row[half + k] ?? 0);
      if (made.length > half) made[half + k] = made[half + k]! - re * row[half + k]! + im * row[k]!;
    }
  }
  const size = Math.sqrt(made.reduce((sum, value) => sum + value * value, 0));
  return made.map((value) => value / size);
}
