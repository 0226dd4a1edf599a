// A matrix of the reference interpreter.

/** A matrix, row by row. */
export interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly data: Float64Array;
}
