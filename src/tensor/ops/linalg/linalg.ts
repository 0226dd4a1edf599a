// The namespace `linalg`: what PyTorch has in torch.linalg, under its names in camelCase.

// Singular values and eigenvalues, norms and vectors
export { eig, eigvals } from '../spectral/eig.ts';
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

// Factors, and what is solved with them
export {
  cholesky,
  choleskyEx,
  choleskyInverse,
  choleskySolve,
  type CholeskyExOptions,
  type CholeskyOptions,
} from './cholesky.ts';
export { det, logdet, slogdet } from './determinant.ts';
export { ldlFactor, ldlFactorEx, ldlSolve, type LdlExOptions, type LdlOptions } from './ldl.ts';
export { lstsq, type LeastSquares, type LstsqOptions } from './lstsq.ts';
export { lu, luFactor, luFactorEx, luSolve, luUnpack, type CheckOptions, type LuSolveOptions } from './lu.ts';
export {
  matrixPower,
  multiDot,
  tensorinv,
  tensorsolve,
  type TensorinvOptions,
  type TensorsolveOptions,
} from './product.ts';
export { geqrf, householderProduct, ormqr, qr, type OrmqrOptions, type QrOptions } from './qr.ts';
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
} from './solve.ts';
