// What is refused, and why: the documented list. A cell that is refused must be in it, and what a row of the catalogue asks for and
// recording refuses must be in it by name.

import type { DType } from '../../../src/ir/dtype.ts';
import type { Mode } from './cells.ts';

/** Dtypes that a target has no numbers for; it may still move, cast or compare them. */
export const lacking: Readonly<Record<string, readonly DType[]>> = {
  interpreter: [],
  wasm: [],
  native: [],
  cuda: [],
  'webgpu:software': ['f64', 'c128'],
};

export interface Deviation {
  /** Rows by name. */
  readonly rows: readonly string[];
  readonly dtypes: readonly DType[];
  readonly reason: string;
}

/** Dtypes that the catalogue asks for and recording refuses. */
export const deviations: readonly Deviation[] = [];

/** Rows that a way of running refuses whatever the dtype, and why. */
export interface RefusedMode {
  readonly mode: Mode;
  readonly rows: RegExp;
  readonly reason: string;
}

const factored =
  'cholesky|choleskyEx|det|logdet|slogdet|inverse|inv|invEx|choleskyInverse|choleskySolve|qr|geqrf|lu|luFactor|luFactorEx|luUnpack|' +
  'ldlFactor|ldlFactorEx|ldlSolve|orgqr|ormqr|householderProduct|triangularSolve|solve|solveEx|solveTriangular|luSolve|lstsq|matrixPower|tensorinv|tensorsolve';

export const refusedModes: readonly RefusedMode[] = [
  {
    mode: 'differentiated',
    rows: /^(?:linalg\.)?geqrf$/,
    reason: 'reflectors have no derivative here: `qr` has one',
  },
  {
    mode: 'differentiated',
    rows: /^linalg\.ldlFactor(?:Ex)?$/,
    reason: 'its factors have no derivative: `solve` has one',
  },
  {
    mode: 'differentiated',
    rows: /^(?:igammac?|special\.(?:gammaincc?|zeta))$/,
    reason: 'there is none by the first argument',
  },
  {
    mode: 'exported',
    rows: new RegExp(`^(?:linalg\\.)?(?:${factored})$`),
    reason: 'which has no factorizations',
  },
  {
    mode: 'exported',
    rows: /^(?:linalg\.)?(?:svd|svdvals|eigh?|eigvalsh?|cond|matrixRank|pinv|pinverse)$/,
    reason: 'which has no singular values and no eigenvalues',
  },
  {
    mode: 'exported',
    rows: /^(?:segmentReduce|sparse\.(?:spmm|spmv|coalesce))$/,
    reason: 'which folds no segments of neighbours',
  },
  {
    mode: 'exported',
    rows: /^dropout\/seed$/,
    reason: 'which has no random numbers that are the same everywhere',
  },
];

/** Why a way of running refuses an operation; undefined where it does not. */
export function refusedIn(mode: Mode, name: string): string | undefined {
  return refusedModes.find((one) => one.mode === mode && one.rows.test(name))?.reason;
}
