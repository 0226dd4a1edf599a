// What singular values, eigenvalues, norms and distances take: in `linalg`, and beside it.

import { eye } from '../../../src/index.ts';
import {
  axes,
  axis,
  count,
  dtype,
  flag,
  integer,
  like,
  maybe,
  meaning,
  number,
  options,
  t,
  word,
} from '../kinds.ts';
import type { Rows } from './operation.ts';

const square = like(t(3, 3), () => eye(3));
const matrix = t(2, 3);
const norm = options({ keepdim: flag, dtype: like(dtype, () => 'f32') });
const order = maybe(meaning(() => 2, 'infinity', 'fraction', 'negative', 'large', 'number'));
const triangle = options({ uplo: word('L', 'U') });
const bound = meaning(() => 0.5, 'infinity', 'fraction', 'large', 'number', 'tensor', 'bool', 'integers');
const bounds = options({ atol: bound, rtol: bound, hermitian: flag });
const diagonal = options({ offset: integer, axis1: integer, axis2: like(integer, () => 1) });

/** In `linalg`. */
export const linalgSpectralRows: Rows = {
  cond: [square, order],
  cross: [t(3, 3), t(3, 3), maybe(axis)],
  diagonal: [matrix, diagonal],
  eig: [square],
  eigh: [square, triangle],
  eigvals: [square],
  eigvalsh: [square, triangle],
  matrixExp: [square],
  matrixNorm: [matrix, order, maybe(like(axes, () => [0, 1])), norm],
  matrixRank: [matrix, bounds],
  norm: [matrix, order, axes, norm],
  pinv: [matrix, bounds],
  svd: [matrix, options({ fullMatrices: flag })],
  svdvals: [matrix],
  vander: [t(3), options({ n: like(count, () => 2) })],
  vecdot: [t(2, 3), t(2, 3), maybe(axis)],
  vectorNorm: [matrix, maybe(number), axes, norm],
};

/** Beside it. */
export const spectralRows: Rows = {
  cdist: [matrix, t(4, 3), maybe(number)],
  cross: [t(3, 3), t(3, 3), maybe(axis)],
  dist: [matrix, matrix, maybe(number)],
  matrixExp: [square],
  norm: [matrix, order, axes, norm],
  pairwiseDistance: [matrix, matrix, options({ p: number, eps: number, keepdim: flag })],
  pdist: [matrix, maybe(number)],
  pinverse: [matrix, maybe(bound)],
  svd: [matrix, options({ some: flag, computeUv: flag })],
  vander: [t(3), options({ n: like(count, () => 2), increasing: flag })],
};
