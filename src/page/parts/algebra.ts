// Linear algebra, as a page loads them.

import '../methods.ts';

export { cdist, dist, pairwiseDistance, pdist } from '../../tensor/ops/spectral/distance.ts';
export { matrixExp } from '../../tensor/ops/spectral/exponential.ts';
export { norm } from '../../tensor/ops/spectral/norms.ts';
export { pinverse } from '../../tensor/ops/spectral/rank.ts';
export { svdOfTorch as svd } from '../../tensor/ops/spectral/svd.ts';
export { cross, vander } from '../../tensor/ops/spectral/vectors.ts';
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
} from '../../tensor/ops/linalg/linalg.ts';
export { orgqr } from '../../tensor/ops/linalg/qr.ts';
export { inverse } from '../../tensor/ops/linalg/solve.ts';
export * as linalg from '../../tensor/ops/linalg/linalg.ts';
