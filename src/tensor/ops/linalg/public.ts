// What PyTorch has of linear algebra beside its namespace too.

// Linear algebra
export {
  cholesky,
  choleskyInverse,
  choleskySolve,
  det,
  geqrf,
  logdet,
  luUnpack,
  matrixPower,
  ormqr,
  qr,
  slogdet,
  triangularSolve,
  type CheckOptions,
  type CholeskyExOptions,
  type CholeskyOptions,
  type LdlExOptions,
  type LdlOptions,
  type LeastSquares,
  type LstsqOptions,
  type LuSolveOptions,
  type OrmqrOptions,
  type QrOptions,
  type SolveExOptions,
  type SolveOptions,
  type SolveTriangularOptions,
  type TensorinvOptions,
  type TensorsolveOptions,
  type TriangularSolveOptions,
} from './linalg.ts';
export { orgqr } from './qr.ts';
export { inverse } from './solve.ts';
