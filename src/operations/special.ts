// `sn.special`. Special functions, as in torch.special.
// Made by `npm run operations` of the comments in src/tensor/ops.

// Functions of one number
export { erf, exp2, expm1, log1p, round } from '../tensor/ops/elementwise/elementwise.ts';
export { erfc } from '../tensor/ops/elementwise/erfc.ts';

// Activations
export { sigmoid as expit } from '../tensor/ops/elementwise/activation.ts';

// Reductions and scans
export { logsumexp } from '../tensor/ops/reduce/reduce.ts';

// Softmax and norms
export { logSoftmax, softmax } from '../tensor/ops/reduce/softmax.ts';

// Special functions
export {
  airyAi,
  besselJ0,
  besselJ1,
  besselY0,
  besselY1,
  digamma,
  digamma as psi,
  entr,
  erfcx,
  erfinv,
  i0,
  i0e,
  i1,
  i1e,
  lgamma as gammaln,
  logNdtr,
  modifiedBesselI0,
  modifiedBesselI1,
  modifiedBesselK0,
  modifiedBesselK1,
  ndtr,
  ndtri,
  scaledModifiedBesselK0,
  scaledModifiedBesselK1,
  sinc,
  sphericalBesselJ0,
} from '../tensor/ops/special/functions.ts';
export {
  igamma as gammainc,
  igammac as gammaincc,
  logit,
  mvlgamma as multigammaln,
  polygamma,
  xlog1py,
  xlogy,
  zeta,
} from '../tensor/ops/special/pairs.ts';
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
} from '../tensor/ops/special/polynomials.ts';
