// What the operations of `linalg` take, and those that are exported beside it.

import { eye, ones, zeros } from '../../../src/index.ts';
import { flag, integer, ints, like, meaning, notNegative, options, t, word } from '../kinds.ts';
import type { Rows } from './operation.ts';

const square = like(t(2, 2), () => eye(2));
const sides = t(2, 3);
const vector = t(2);
const pivots = like(ints(2), () => ones([2], { dtype: 'i32' }));
const solve = { left: flag };
const check = { checkErrors: flag };

const shared: Rows = {
  cholesky: [square, options({ upper: flag })],
  choleskyInverse: [square, options({ upper: flag })],
  choleskySolve: [sides, square, options({ upper: flag })],
  det: [square],
  geqrf: [sides],
  logdet: [square],
  luUnpack: [square, pivots],
  matrixPower: [square, integer],
  ormqr: [square, vector, sides, options({ left: flag, transpose: flag })],
  qr: [sides, options({ mode: word('reduced', 'complete', 'r') })],
  slogdet: [square],
  triangularSolve: [sides, square, options({ upper: flag, transpose: flag, unitriangular: flag })],
};

/** Exported beside the namespace. */
export const linalgOperations: Rows = { ...shared, inverse: [square], orgqr: [square, vector] };

/** The namespace. */
export const linalgRows: Rows = {
  ...shared,
  choleskyEx: [square, options({ upper: flag, ...check })],
  householderProduct: [square, vector],
  inv: [square],
  invEx: [square, options(check)],
  ldlFactor: [square, options({ hermitian: flag })],
  ldlFactorEx: [square, options({ hermitian: flag, ...check })],
  ldlSolve: [square, pivots, sides, options({ hermitian: flag })],
  lstsq: [square, sides, options({ driver: word('gels', 'gelsd'), rcond: notNegative })],
  lu: [sides],
  luFactor: [sides],
  luFactorEx: [sides, options(check)],
  luSolve: [square, pivots, sides, options({ left: flag, adjoint: flag })],
  multiDot: [meaning(() => [ones([2, 3]), ones([3, 2])], 'tensors', 'emptyList')],
  solve: [square, sides, options(solve)],
  solveEx: [square, sides, options({ ...solve, ...check })],
  solveTriangular: [square, sides, options({ upper: flag, left: flag, unitriangular: flag })],
  tensorinv: [like(t(2, 1, 2), () => eye(2).reshape([2, 1, 2])), options({ ind: like(integer, () => 1) })],
  tensorsolve: [square, like(vector, () => zeros([2])), options({ axes: meaning(() => [], 'emptyList') })],
};
