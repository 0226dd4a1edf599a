// Namespaces of operations, for pages: their code comes when one of them is first called.

import {
  algebra,
  distributions as distributing,
  functions,
  masks,
  sparse as matrices,
  sparse24 as structured,
  transforms,
} from './families.ts';
import { space, type Space } from './later.ts';

export const linalg: Space = /* @__PURE__ */ space(
  algebra,
  (from) => from.linalg,
  'cholesky choleskyInverse choleskySolve cond cross det diagonal eigvals eigvalsh householderProduct inv ldlSolve logdet luSolve matrixExp matrixNorm matrixPower matrixRank multiDot norm ormqr pinv solve solveTriangular svdvals tensorinv tensorsolve vander vecdot vectorNorm',
  {
    choleskyEx: { gives: 2 },
    slogdet: { gives: 2 },
    invEx: { gives: 2 },
    eigh: { gives: 2 },
    eig: { gives: 2 },
    qr: { gives: 2 },
    lu: { gives: 3 },
    luFactor: { gives: 2 },
    luFactorEx: { gives: 3 },
    geqrf: { gives: 2 },
    svd: { gives: 3 },
    ldlFactor: { gives: 2 },
    ldlFactorEx: { gives: 3 },
    luUnpack: { gives: 3 },
    solveEx: { gives: 2 },
    triangularSolve: { gives: 2 },
    lstsq: { gives: ['solution', 'residuals', 'rank', 'singularValues'] },
  },
);

export const fft: Space = /* @__PURE__ */ space(
  transforms,
  (from) => from.fft,
  'convolve correlate fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftfreq rfftn',
);

export const special: Space = /* @__PURE__ */ space(
  functions,
  (from) => from.special,
  'airyAi besselJ0 besselJ1 besselY0 besselY1 chebyshevPolynomialT chebyshevPolynomialU chebyshevPolynomialV chebyshevPolynomialW digamma entr erf erfc erfcx erfinv exp2 expit expm1 gammainc gammaincc gammaln hermitePolynomialH hermitePolynomialHe i0 i0e i1 i1e laguerrePolynomialL legendrePolynomialP log1p logNdtr logSoftmax logit logsumexp modifiedBesselI0 modifiedBesselI1 modifiedBesselK0 modifiedBesselK1 multigammaln ndtr ndtri polygamma psi round scaledModifiedBesselK0 scaledModifiedBesselK1 shiftedChebyshevPolynomialT shiftedChebyshevPolynomialU shiftedChebyshevPolynomialV shiftedChebyshevPolynomialW sinc softmax sphericalBesselJ0 xlog1py xlogy zeta',
);

export const masked: Space = /* @__PURE__ */ space(
  masks,
  (from) => from,
  'amax amin argmax argmin cumprod cumsum logSoftmax logaddexp logsumexp mean median norm normalize prod softmax softmin std sum var',
);

export const distributions: Space = /* @__PURE__ */ space(distributing, (from) => from, '', {
  bernoulli: { gives: 'untold' },
  beta: { gives: 'untold' },
  categorical: { gives: 'untold' },
  cauchy: { gives: 'untold' },
  chi2: { gives: 'untold' },
  exponential: { gives: 'untold' },
  gamma: { gives: 'untold' },
  geometric: { gives: 'untold' },
  gumbel: { gives: 'untold' },
  laplace: { gives: 'untold' },
  logNormal: { gives: 'untold' },
  logistic: { gives: 'untold' },
  normal: { gives: 'untold' },
  poisson: { gives: 'untold' },
  studentT: { gives: 'untold' },
  uniform: { gives: 'untold' },
});

export const sparse: Space = /* @__PURE__ */ space(
  matrices,
  (from) => from,
  'spmm spmv toDense',
  {
    coalesce: { gives: 'untold' },
    coo: { gives: 'untold' },
    csc: { gives: 'untold' },
    csr: { gives: 'untold' },
    fromDense: { gives: 'untold' },
    scale: { gives: 'untold' },
    toCoo: { gives: 'untold' },
    toCsc: { gives: 'untold' },
    toCsr: { gives: 'untold' },
    transpose: { gives: 'untold' },
  },
  ['CooMatrix', 'CscMatrix', 'CsrMatrix'],
);

export const sparse24: Space = /* @__PURE__ */ space(
  structured,
  (from) => from,
  'decompress matmul',
  { compress: { gives: 'untold' } },
  ['Packed24'],
);
