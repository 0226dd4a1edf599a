// The factorisation L·D·Lᵀ (or L·D·Lᴴ) of an indefinite matrix with diagonal pivots of one or two
// rows, as LAPACK's sytf2 and hetf2 do it. (J. R. Bunch and L. Kaufman, "Some stable methods for
// calculating inertia and solving symmetric linear systems", 1977.)

import type { Complex } from '../complex-scalar.ts';
import { complexes, type Matrix } from './field.ts';

const { minus, over: quotient, size, times } = complexes;

/** Growth is least where a pivot of one row has this share of what stands beside it. */
const share = (1 + Math.sqrt(17)) / 8;

/** The work on one matrix, whose real parts stand before its imaginary ones. */
class Ldl {
  readonly #n: number;
  readonly #out: Matrix;
  readonly #conj: (z: Complex) => Complex;
  readonly #isHermitian: boolean;

  constructor(a: Matrix, out: Matrix, isHermitian: boolean) {
    [this.#n, this.#out, this.#isHermitian] = [a.rows, out, isHermitian];
    this.#conj = isHermitian ? ([re, im]): Complex => [re, -im] : (z): Complex => z;
    for (let i = 0; i < a.rows; i++)
      for (let j = 0; j <= i; j++) {
        const place = i * a.columns + j;
        this.#put(i, j, [a.data[place]!, a.data[place + a.rows]!]);
      }
  }

  #at(i: number, j: number): Complex {
    const place = i * this.#out.columns + j;
    return [this.#out.data[place]!, this.#out.data[place + this.#n]!];
  }

  #put(i: number, j: number, [re, im]: Complex): void {
    const place = i * this.#out.columns + j;
    this.#out.data[place] = re;
    this.#out.data[place + this.#n] = i === j && this.#isHermitian ? 0 : im;
  }

  whole(): void {
    const pivots = 2 * this.#n;
    for (let k = 0; k < this.#n;) {
      const [at, step] = this.#pivot(k);
      this.#exchange(k, k + step - 1, at);
      if (step === 1) this.#eliminate(k);
      else this.#eliminateTwo(k);
      for (let i = k; i < k + step; i++)
        this.#out.data[i * this.#out.columns + pivots] = step === 1 ? at + 1 : -(at + 1);
      k += step;
    }
  }

  /** The row that comes to the pivot's place, and of how many rows the pivot is. */
  #pivot(k: number): [at: number, step: number] {
    const own = size(this.#at(k, k));
    let [greatest, at] = [0, k];
    for (let i = k + 1; i < this.#n; i++) {
      const here = size(this.#at(i, k));
      if (here > greatest) [greatest, at] = [here, i];
    }
    if (!(own < share * greatest)) return [k, 1];
    let beside = 0;
    for (let j = k; j < at; j++) beside = Math.max(beside, size(this.#at(at, j)));
    for (let i = at + 1; i < this.#n; i++) beside = Math.max(beside, size(this.#at(i, at)));
    if (!(own < share * greatest * (greatest / beside))) return [k, 1];
    return [at, size(this.#at(at, at)) < share * beside ? 2 : 1];
  }

  #swap(i: number, j: number, p: number, q: number, both: (z: Complex) => Complex = (z): Complex => z): void {
    const kept = this.#at(i, j);
    this.#put(i, j, both(this.#at(p, q)));
    this.#put(p, q, both(kept));
  }

  /** Rows and columns of what is left change places. */
  #exchange(k: number, last: number, at: number): void {
    if (at === last) return;
    for (let i = at + 1; i < this.#n; i++) this.#swap(i, last, i, at);
    for (let j = last + 1; j < at; j++) this.#swap(j, last, at, j, this.#conj);
    this.#put(at, last, this.#conj(this.#at(at, last)));
    this.#swap(last, last, at, at);
    if (last > k) this.#swap(last, k, at, k);
  }

  #eliminate(k: number): void {
    const pivot = this.#at(k, k);
    if (size(pivot) === 0) return;
    for (let j = k + 1; j < this.#n; j++) {
      const weight = this.#conj(quotient(this.#at(j, k), pivot));
      for (let i = j; i < this.#n; i++) this.#put(i, j, minus(this.#at(i, j), times(this.#at(i, k), weight)));
    }
    for (let i = k + 1; i < this.#n; i++) this.#put(i, k, quotient(this.#at(i, k), pivot));
  }

  /** The pivot's rows are brought to about 1 by the element below the diagonal. */
  #eliminateTwo(k: number): void {
    const below = this.#at(k + 1, k);
    const [one, two] = [quotient(this.#at(k + 1, k + 1), below), quotient(this.#at(k, k), this.#conj(below))];
    const determinant = minus(times(one, two), [1, 0]);
    for (let j = k + 2; j < this.#n; j++) {
      const [first, second] = [this.#at(j, k), this.#at(j, k + 1)];
      const [side, turned] = [below, this.#conj(below)];
      const inner = minus(times(one, quotient(first, turned)), quotient(second, turned));
      const outer = minus(times(two, quotient(second, side)), quotient(first, side));
      const [left, right] = [quotient(inner, determinant), quotient(outer, determinant)];
      const weights = [this.#conj(left), this.#conj(right)] as const;
      for (let i = j; i < this.#n; i++) {
        const lost = times(this.#at(i, k), weights[0]);
        const more = times(this.#at(i, k + 1), weights[1]);
        this.#put(i, j, minus(minus(this.#at(i, j), lost), more));
      }
      this.#put(j, k, left);
      this.#put(j, k + 1, right);
    }
  }
}

/** L below the diagonal, D on it and beside it, zeros above; and the pivots, as LAPACK tells them. */
export function ldl(a: Matrix, out: Matrix, isHermitian: boolean): void {
  new Ldl(a, out, isHermitian).whole();
}
