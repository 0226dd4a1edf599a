// The namespace `special`, with PyTorch's names: the functions of this folder, and others under the
// names they have in mathematics.

// The error function and the normal distribution
export { erf } from '../elementwise/elementwise.ts';
export { erfc } from '../elementwise/erfc.ts';
export { entr, erfcx, erfinv, logNdtr, ndtr, ndtri } from './functions.ts';

// The gamma function and what comes of it
export { digamma, digamma as psi, lgamma as gammaln } from './functions.ts';
export {
  igamma as gammainc,
  igammac as gammaincc,
  mvlgamma as multigammaln,
  polygamma,
  zeta,
} from './pairs.ts';

// Bessel functions
export {
  airyAi,
  besselJ0,
  besselJ1,
  besselY0,
  besselY1,
  i0,
  i0e,
  i1,
  i1e,
  modifiedBesselI0,
  modifiedBesselI1,
  modifiedBesselK0,
  modifiedBesselK1,
  scaledModifiedBesselK0,
  scaledModifiedBesselK1,
  sphericalBesselJ0,
} from './functions.ts';

// Orthogonal polynomials
export {
  chebyshevPolynomialT,
  chebyshevPolynomialU,
  chebyshevPolynomialV,
  chebyshevPolynomialW,
  hermitePolynomialH,
  hermitePolynomialHe,
  laguerrePolynomialL,
  legendrePolynomialP,
  shiftedChebyshevPolynomialT,
  shiftedChebyshevPolynomialU,
  shiftedChebyshevPolynomialV,
  shiftedChebyshevPolynomialW,
} from './polynomials.ts';

// Exponentials and logarithms
export { exp2, expm1, log1p, round } from '../elementwise/elementwise.ts';
export { sinc } from './functions.ts';
export { logit, xlog1py, xlogy } from './pairs.ts';
export { sigmoid as expit } from '../elementwise/activation.ts';
export { logSoftmax, softmax } from '../reduce/softmax.ts';
export { logsumexp } from '../reduce/reduce.ts';
