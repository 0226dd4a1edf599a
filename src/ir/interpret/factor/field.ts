// The numbers that the algorithms of matrices are written over: real or complex, in double precision.
// Complex ones are pairs of neighbouring doubles, and have LAPACK's measure of a pivot, |re| + |im|.

import { complexScalar, times, type Complex } from '../complex-scalar.ts';

/** A matrix, row by row. */
export interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly data: Float64Array;
}

export interface ScalarField<T> {
  /** Doubles that a number takes. */
  readonly parts: 1 | 2;
  get(data: Float64Array, place: number): T;
  set(data: Float64Array, place: number, value: T): void;
  /** A real number as one of the field. */
  real(value: number): T;
  realPart(x: T): number;
  imaginaryPart(x: T): number;
  conj(x: T): T;
  plus(x: T, y: T): T;
  minus(x: T, y: T): T;
  times(x: T, y: T): T;
  over(x: T, y: T): T;
  /** Divided by a real number. */
  reduced(x: T, by: number): T;
  /** What pivots are chosen by. */
  size(x: T): number;
  /** √(length² + |x|²). */
  longer(length: number, x: T): number;
}

export const reals: ScalarField<number> = {
  parts: 1,
  get: (data, place) => data[place]!,
  set: (data, place, value) => {
    data[place] = value;
  },
  real: (value) => value,
  realPart: (x) => x,
  imaginaryPart: () => 0,
  conj: (x) => x,
  plus: (x, y) => x + y,
  minus: (x, y) => x - y,
  times: (x, y) => x * y,
  over: (x, y) => x / y,
  reduced: (x, by) => x / by,
  size: Math.abs,
  longer: (length, x) => Math.hypot(length, x),
};

const divide = complexScalar('div');

export const complexes: ScalarField<Complex> = {
  parts: 2,
  get: (data, place) => [data[2 * place]!, data[2 * place + 1]!],
  set: (data, place, [re, im]) => {
    data[2 * place] = re;
    data[2 * place + 1] = im;
  },
  real: (value) => [value, 0],
  realPart: ([re]) => re,
  imaginaryPart: ([, im]) => im,
  conj: ([re, im]) => [re, -im],
  plus: ([a, b], [c, d]) => [a + c, b + d],
  minus: ([a, b], [c, d]) => [a - c, b - d],
  times,
  over: (x, y) => divide(x, y, x),
  reduced: ([re, im], by) => [re / by, im / by],
  size: ([re, im]) => Math.abs(re) + Math.abs(im),
  longer: (length, [re, im]) => Math.hypot(length, re, im),
};

/** The numbers of a matrix by row and column. */
export class MatrixElements<T> {
  readonly #field: ScalarField<T>;
  readonly #data: Float64Array;
  readonly #columns: number;

  constructor(field: ScalarField<T>, { data, columns }: Matrix) {
    [this.#field, this.#data, this.#columns] = [field, data, columns];
  }

  at(i: number, j: number): T {
    return this.#field.get(this.#data, i * this.#columns + j);
  }

  put(i: number, j: number, value: T): void {
    this.#field.set(this.#data, i * this.#columns + j, value);
  }
}
