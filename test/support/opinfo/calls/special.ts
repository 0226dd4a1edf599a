// Calls of PyTorch's operators as ours: special functions.

import { erf } from '../../../../src/tensor/ops/elementwise/elementwise.ts';
import { erfc } from '../../../../src/tensor/ops/elementwise/erfc.ts';
import * as one from '../../../../src/tensor/ops/special/functions.ts';
import * as two from '../../../../src/tensor/ops/special/pairs.ts';
import * as polynomials from '../../../../src/tensor/ops/special/polynomials.ts';
import { binary, signature, unary, type Call, type Calls } from '../args.ts';

const ofOrder = (f: polynomials.Polynomial): Call =>
  signature('input, n')((a) => f(a.operand('input'), a.operand('n')));
const polygamma = signature('input, n')((a) => two.polygamma(a.number('n'), a.tensor('input')));
const mvlgamma = signature('input, p')((a) => two.mvlgamma(a.tensor('input'), a.number('p')));

export const special: Calls = {
  digamma: unary(one.digamma),
  erf: unary(erf),
  erfc: unary(erfc),
  erfinv: unary(one.erfinv),
  i0: unary(one.i0),
  igamma: binary(two.igamma),
  igammac: binary(two.igammac),
  lgamma: unary(one.lgamma),
  logit: signature('input, eps=None')((a) => two.logit(a.tensor('input'), a.options('eps'))),
  'mvlgamma.mvlgamma_p_1': mvlgamma,
  'mvlgamma.mvlgamma_p_3': mvlgamma,
  'mvlgamma.mvlgamma_p_5': mvlgamma,
  'polygamma.polygamma_n_0': polygamma,
  'polygamma.polygamma_n_1': polygamma,
  'polygamma.polygamma_n_2': polygamma,
  'polygamma.polygamma_n_3': polygamma,
  'polygamma.polygamma_n_4': polygamma,
  sinc: unary(one.sinc),
  xlogy: binary(two.xlogy),
  'special.airy_ai': unary(one.airyAi),
  'special.bessel_j0': unary(one.besselJ0),
  'special.bessel_j1': unary(one.besselJ1),
  'special.bessel_y0': unary(one.besselY0),
  'special.bessel_y1': unary(one.besselY1),
  'special.chebyshev_polynomial_t': ofOrder(polynomials.chebyshevPolynomialT),
  'special.chebyshev_polynomial_u': ofOrder(polynomials.chebyshevPolynomialU),
  'special.chebyshev_polynomial_v': ofOrder(polynomials.chebyshevPolynomialV),
  'special.chebyshev_polynomial_w': ofOrder(polynomials.chebyshevPolynomialW),
  'special.entr': unary(one.entr),
  'special.erfcx': unary(one.erfcx),
  'special.hermite_polynomial_h': ofOrder(polynomials.hermitePolynomialH),
  'special.hermite_polynomial_he': ofOrder(polynomials.hermitePolynomialHe),
  'special.i0e': unary(one.i0e),
  'special.i1': unary(one.i1),
  'special.i1e': unary(one.i1e),
  'special.laguerre_polynomial_l': ofOrder(polynomials.laguerrePolynomialL),
  'special.legendre_polynomial_p': ofOrder(polynomials.legendrePolynomialP),
  'special.log_ndtr': unary(one.logNdtr),
  'special.modified_bessel_i0': unary(one.modifiedBesselI0),
  'special.modified_bessel_i1': unary(one.modifiedBesselI1),
  'special.modified_bessel_k0': unary(one.modifiedBesselK0),
  'special.modified_bessel_k1': unary(one.modifiedBesselK1),
  'special.ndtr': unary(one.ndtr),
  'special.ndtri': unary(one.ndtri),
  'special.polygamma.special_polygamma_n_0': polygamma,
  'special.scaled_modified_bessel_k0': unary(one.scaledModifiedBesselK0),
  'special.scaled_modified_bessel_k1': unary(one.scaledModifiedBesselK1),
  'special.shifted_chebyshev_polynomial_t': ofOrder(polynomials.shiftedChebyshevPolynomialT),
  'special.shifted_chebyshev_polynomial_u': ofOrder(polynomials.shiftedChebyshevPolynomialU),
  'special.shifted_chebyshev_polynomial_v': ofOrder(polynomials.shiftedChebyshevPolynomialV),
  'special.shifted_chebyshev_polynomial_w': ofOrder(polynomials.shiftedChebyshevPolynomialW),
  'special.spherical_bessel_j0': unary(one.sphericalBesselJ0),
  'special.xlog1py': binary(two.xlog1py),
  'special.zeta': binary(two.zeta),
};
