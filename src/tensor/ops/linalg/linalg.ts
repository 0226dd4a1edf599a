// The namespace `linalg`: what PyTorch has in torch.linalg, under its names in camelCase.

// Singular values and eigenvalues, norms and vectors
export { eigh, eigvalsh, type EighOptions } from '../spectral/eigh.ts';
export { matrixExp } from '../spectral/exponential.ts';
export {
  linalgNorm as norm,
  matrixNorm,
  vectorNorm,
  type MatrixOrder,
  type VectorNormOptions,
} from '../spectral/norms.ts';
export { cond, matrixRank, pinv, type RankOptions } from '../spectral/rank.ts';
export { svd, svdvals, type LinalgSvdOptions } from '../spectral/svd.ts';
export {
  linalgCross as cross,
  linalgDiagonal as diagonal,
  linalgVander as vander,
  vecdot,
  type LinalgVanderOptions,
} from '../spectral/vectors.ts';
