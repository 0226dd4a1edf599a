// `sn.linalg`. Linear algebra, as in torch.linalg.
// Made by `npm run operations` of the comments in src/tensor/ops.

// Reductions and scans
export {
  linalgNorm as norm,
  matrixNorm,
  vectorNorm,
  type MatrixOrder,
  type VectorNormOptions,
} from '../tensor/ops/spectral/norms.ts';

// Products
export {
  linalgCross as cross,
  linalgDiagonal as diagonal,
  linalgVander as vander,
  vecdot,
  type LinalgVanderOptions,
} from '../tensor/ops/spectral/vectors.ts';

// Linear algebra
export {
  cholesky,
  choleskyEx,
  choleskyInverse,
  choleskySolve,
  type CholeskyExOptions,
  type CholeskyOptions,
} from '../tensor/ops/linalg/cholesky.ts';
export { det, logdet, slogdet } from '../tensor/ops/linalg/determinant.ts';
export {
  inv,
  invEx,
  solve,
  solveEx,
  solveTriangular,
  triangularSolve,
  type SolveExOptions,
  type SolveOptions,
  type SolveTriangularOptions,
  type TriangularSolveOptions,
} from '../tensor/ops/linalg/solve.ts';
export { matrixExp } from '../tensor/ops/spectral/exponential.ts';
export {
  geqrf,
  householderProduct,
  ormqr,
  qr,
  type OrmqrOptions,
  type QrOptions,
} from '../tensor/ops/linalg/qr.ts';
export { svd, svdvals, type LinalgSvdOptions } from '../tensor/ops/spectral/svd.ts';
export { cond, matrixRank, pinv, type RankOptions } from '../tensor/ops/spectral/rank.ts';
export {
  lu,
  luFactor,
  luFactorEx,
  luSolve,
  luUnpack,
  type CheckOptions,
  type LuSolveOptions,
} from '../tensor/ops/linalg/lu.ts';
export {
  matrixPower,
  multiDot,
  tensorinv,
  tensorsolve,
  type TensorinvOptions,
  type TensorsolveOptions,
} from '../tensor/ops/linalg/product.ts';
export { eigh, eigvalsh, type EighOptions } from '../tensor/ops/spectral/eigh.ts';
export { eig, eigvals } from '../tensor/ops/spectral/eig.ts';
export {
  ldlFactor,
  ldlFactorEx,
  ldlSolve,
  type LdlExOptions,
  type LdlOptions,
} from '../tensor/ops/linalg/ldl.ts';
export { lstsq, type LeastSquares, type LstsqOptions } from '../tensor/ops/linalg/lstsq.ts';
