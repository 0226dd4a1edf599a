// The Schur form of a complex matrix, and the eigenvectors of its triangle: to Hessenberg form by
// rotations, then by steps of the QR algorithm with single shifts (J. Francis, 1961; J. Wilkinson,
// "The Algebraic Eigenvalue Problem", 1965).

import type { Complex } from '../complex-scalar.ts';
import { complexes, type Matrix } from './field.ts';

const { minus, plus, times } = complexes;
const over = ([a, b]: Complex, [c, d]: Complex): Complex => {
  const size = Math.hypot(c, d);
  const [u, v] = [c / size, d / size];
  return [(a * u + b * v) / size, (b * u - a * v) / size];
};
const size = ([a, b]: Complex): number => Math.hypot(a, b);

function root([x, y]: Complex): Complex {
  const t = Math.sqrt((Math.abs(x) + Math.hypot(x, y)) / 2);
  if (t === 0) return [0, 0];
  return x >= 0 ? [t, y / (2 * t)] : [Math.abs(y) / (2 * t), y < 0 ? -t : t];
}

/** Steps to one eigenvalue at most; two or three do. */
export const stepsPerValue = 30;

/** T and Qᴴ beside each other, real parts of each before imaginary ones. */
class Schur {
  readonly n: number;
  readonly #data: Float64Array;

  constructor(a: Matrix, out: Matrix) {
    this.n = a.rows;
    this.#data = out.data;
    for (let i = 0; i < this.n; i++) {
      for (let j = 0; j < 2 * this.n; j++) this.#data[4 * this.n * i + j] = a.data[2 * this.n * i + j]!;
      this.#data[4 * this.n * i + 2 * this.n + i] = 1;
    }
  }

  at(i: number, j: number): Complex {
    const place = 4 * this.n * i + j;
    return [this.#data[place]!, this.#data[place + this.n]!];
  }

  put(i: number, j: number, [re, im]: Complex): void {
    const place = 4 * this.n * i + j;
    this.#data[place] = re;
    this.#data[place + this.n] = im;
  }

  /** Turns rows i and i + 1 from column `from` on, and columns down to row `to`: what a and b are becomes (r, 0). */
  turn(i: number, a: Complex, b: Complex, from: number, to: number): void {
    const [sizeA, r] = [size(a), Math.hypot(size(a), size(b))];
    if (r === 0) return;
    const c = sizeA / r;
    const s: Complex = sizeA === 0 ? [1, 0] : times([a[0] / sizeA, a[1] / sizeA], [b[0] / r, -b[1] / r]);
    const own = sizeA === 0 ? 0 : c;
    const { n } = this;
    const pair = (x: Complex, y: Complex, t: Complex): readonly [Complex, Complex] => [
      plus([own * x[0], own * x[1]], times(t, y)),
      minus([own * y[0], own * y[1]], times([t[0], -t[1]], x)),
    ];
    for (let j = from; j < 3 * n; j++) {
      if (j === n) j = 2 * n;
      const [x, y] = pair(this.at(i, j), this.at(i + 1, j), s);
      this.put(i, j, x);
      this.put(i + 1, j, y);
    }
    for (let k = 0; k <= to; k++) {
      const [x, y] = pair(this.at(k, i), this.at(k, i + 1), [s[0], -s[1]]);
      this.put(k, i, x);
      this.put(k, i + 1, y);
    }
  }

  hessenberg(): void {
    for (let k = 0; k < this.n - 2; k++)
      for (let i = this.n - 2; i > k; i--) {
        if (size(this.at(i + 1, k)) === 0) continue;
        this.turn(i, this.at(i, k), this.at(i + 1, k), k, this.n - 1);
        this.put(i + 1, k, [0, 0]);
      }
  }

  /** Of the last two rows the eigenvalue that is nearer to the last element. */
  shift(last: number): Complex {
    const [a, b, c, d] = [
      this.at(last - 1, last - 1),
      this.at(last - 1, last),
      this.at(last, last - 1),
      this.at(last, last),
    ];
    const half: Complex = [(a[0] - d[0]) / 2, (a[1] - d[1]) / 2];
    const product = times(b, c);
    const radical = root(plus(times(half, half), product));
    const [sum, difference] = [plus(half, radical), minus(half, radical)];
    const divisor = size(sum) < size(difference) ? difference : sum;
    return size(divisor) === 0 ? d : minus(d, over(product, divisor));
  }

  /** Whether all below the diagonal vanishes. */
  triangular(): boolean {
    let [last, steps] = [this.n - 1, 0];
    for (let turn = 0; turn < stepsPerValue * this.n && last > 0; turn++) {
      let first = 0;
      for (let l = 1; l <= last; l++) {
        const beside = size(this.at(l - 1, l - 1)) + size(this.at(l, l));
        if (size(this.at(l, l - 1)) <= 2 ** -52 * (beside === 0 ? 1 : beside)) first = l;
      }
      if (first > 0) this.put(first, first - 1, [0, 0]);
      if (first === last) {
        last--;
        steps = 0;
        continue;
      }
      steps++;
      // Now and then a shift of another kind, where the usual one goes in circles.
      const strange = steps % 10 === 0;
      const shift = strange
        ? plus(this.at(last, last), [size(this.at(last, last - 1)), 0])
        : this.shift(last);
      this.turn(
        first,
        minus(this.at(first, first), shift),
        this.at(first + 1, first),
        first,
        Math.min(first + 2, last),
      );
      for (let k = first + 1; k < last; k++) {
        this.turn(k, this.at(k, k - 1), this.at(k + 1, k - 1), k - 1, Math.min(k + 2, last));
        this.put(k + 1, k - 1, [0, 0]);
      }
    }
    return last <= 0;
  }

  /**
   * Above the diagonal the eigenvectors of the triangle, column by column; what stands on their
   * diagonal in the first column.
   */
  vectors(): void {
    for (let j = this.n - 1; j > 0; j--) {
      let one = 1;
      const value = this.at(j, j);
      for (let i = j - 1; i >= 0; i--) {
        const own = this.at(i, j);
        let sum: Complex = [one * own[0], one * own[1]];
        for (let k = i + 1; k < j; k++) sum = plus(sum, times(this.at(i, k), this.at(k, j)));
        let gap = minus(value, this.at(i, i));
        const least = 2 ** -52 * Math.max(size(value), 2 ** -52);
        if (size(gap) < least) gap = [least, 0];
        const found = over(sum, gap);
        this.put(i, j, found);
        const large = size(found);
        if (large > 1e12) {
          one /= large;
          for (let k = i; k < j; k++) this.put(k, j, over(this.at(k, j), [large, 0]));
        }
      }
      this.put(j, 0, [one, 0]);
    }
  }
}

/** [n, 2n] of a complex matrix becomes [n, 4n]: see `schur` in factor.ts. NaN where no end is found. */
export function schur(a: Matrix, out: Matrix): void {
  const form = new Schur(a, out);
  form.hessenberg();
  const isDone = form.triangular();
  form.vectors();
  if (!isDone) for (let i = 0; i < form.n; i++) form.put(i, i, [NaN, NaN]);
}
