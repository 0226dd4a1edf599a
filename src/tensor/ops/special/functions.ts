// Special functions of one tensor: elementwise, in floats (integers and bool are taken as f32,
// 16-bit floats are computed in f32). docs/functions/special.md says how far off they are at most.

import { isComplex } from '../../../ir/dtype.ts';
import { airyAi as airyAiOf } from '../../formula/special/airy.ts';
import * as bessel from '../../formula/special/bessel.ts';
import * as elementary from '../../formula/special/elementary.ts';
import * as error from '../../formula/special/erf.ts';
import { ofNode, type RealFormula } from '../../formula/special/real.ts';
import * as gamma from '../../formula/special/gamma.ts';
import * as inverse from '../../formula/special/erf.ts';
import * as modified from '../../formula/special/modified.ts';
import { div, mul } from '../elementwise/arithmetic.ts';
import { eq, where } from '../elementwise/compare.ts';
import { sin } from '../elementwise/elementwise.ts';
import type { Tensor } from '../../tensor.ts';
import { realFormula, takesOne, type FloatUnary } from '../operand.ts';

/** An operation of a formula of real numbers. @internal */
export function of(name: string, formula: RealFormula): FloatUnary {
  return realFormula(name, ofNode(formula));
}

/**
 * log |Γ(x)|; ∞ at 0 and the negative whole numbers.
 *
 * @names lgamma, special.gammaln
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.lgamma(x);
 */
export const lgamma: FloatUnary = /* @__PURE__ */ of('lgamma', gamma.lgamma);
/**
 * ψ(x), the derivative of log Γ(x); NaN at the negative whole numbers.
 *
 * @names digamma, special.digamma, special.psi
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.digamma(x);
 */
export const digamma: FloatUnary = /* @__PURE__ */ of('digamma', gamma.digamma);

/**
 * The inverse of erf: ±∞ at ±1, NaN beyond.
 *
 * @names erfinv, special.erfinv
 * @example
 * const u = sn.tensor([0.25, 0.5, 0.75]);
 * sn.erfinv(u);
 */
export const erfinv: FloatUnary = /* @__PURE__ */ of('erfinv', inverse.erfinv);
/**
 * e^(x²)·erfc(x), which neither vanishes nor overflows for x > 0.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.erfcx(x);
 */
export const erfcx: FloatUnary = /* @__PURE__ */ of('erfcx', error.erfcx);
/**
 * The normal distribution's share below x: ½·erfc(−x/√2).
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.ndtr(x);
 */
export const ndtr: FloatUnary = /* @__PURE__ */ of('ndtr', error.ndtr);
/**
 * The inverse of `ndtr`: −∞ at 0, ∞ at 1, NaN outside.
 *
 * @example
 * const u = sn.tensor([0.25, 0.5, 0.75]);
 * sn.special.ndtri(u);
 */
export const ndtri: FloatUnary = /* @__PURE__ */ of('ndtri', inverse.ndtri);
/**
 * The logarithm of `ndtr`, right far down the tail: −x²/2 and less.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.logNdtr(x);
 */
export const logNdtr: FloatUnary = /* @__PURE__ */ of('logNdtr', error.logNdtr);

/**
 * −x·log x; 0 at 0, −∞ below.
 *
 * @example
 * const u = sn.tensor([0.25, 0.5, 0.75]);
 * sn.special.entr(u);
 */
export const entr: FloatUnary = /* @__PURE__ */ of('entr', elementary.entr);
const realSinc = /* @__PURE__ */ of('sinc', elementary.sinc);

/**
 * sin(πx)/(πx), 1 at 0; of complex numbers too.
 *
 * @names sinc, special.sinc
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.sinc(x);
 */
export const sinc: FloatUnary = (x: Tensor): Tensor => {
  takesOne('sinc', x);
  if (!isComplex(x.dtype)) return realSinc(x);
  const isZero = eq(x, 0);
  const angle = mul(where(isZero, 1, x), Math.PI);
  return where(isZero, 1, div(sin(angle), angle));
};

/**
 * The modified Bessel function I₀.
 *
 * @names i0, special.i0
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.i0(x);
 */
export const i0: FloatUnary = /* @__PURE__ */ of('i0', modified.i0);
/**
 * e^−|x|·I₀(x).
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.i0e(x);
 */
export const i0e: FloatUnary = /* @__PURE__ */ of('i0e', modified.i0e);
/**
 * The modified Bessel function I₁.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.i1(x);
 */
export const i1: FloatUnary = /* @__PURE__ */ of('i1', modified.i1);
/**
 * e^−|x|·I₁(x).
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.i1e(x);
 */
export const i1e: FloatUnary = /* @__PURE__ */ of('i1e', modified.i1e);
/**
 * The modified Bessel function I₀, as `i0`.
 *
 * @jax jax.scipy.special.i0
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.modifiedBesselI0(x);
 */
export const modifiedBesselI0: FloatUnary = /* @__PURE__ */ of('modifiedBesselI0', modified.i0);
/**
 * The modified Bessel function I₁, as `i1`.
 *
 * @jax jax.scipy.special.i1
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.modifiedBesselI1(x);
 */
export const modifiedBesselI1: FloatUnary = /* @__PURE__ */ of('modifiedBesselI1', modified.i1);
/**
 * The modified Bessel function K₀: ∞ at 0, NaN below.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.modifiedBesselK0(x);
 */
export const modifiedBesselK0: FloatUnary = /* @__PURE__ */ of('modifiedBesselK0', modified.k0);
/**
 * The modified Bessel function K₁: ∞ at 0, NaN below.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.modifiedBesselK1(x);
 */
export const modifiedBesselK1: FloatUnary = /* @__PURE__ */ of('modifiedBesselK1', modified.k1);
/**
 * eˣ·K₀(x).
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.scaledModifiedBesselK0(x);
 */
export const scaledModifiedBesselK0: FloatUnary = /* @__PURE__ */ of('scaledModifiedBesselK0', modified.k0e);
/**
 * eˣ·K₁(x).
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.scaledModifiedBesselK1(x);
 */
export const scaledModifiedBesselK1: FloatUnary = /* @__PURE__ */ of('scaledModifiedBesselK1', modified.k1e);

/**
 * The Bessel function J₀.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.besselJ0(x);
 */
export const besselJ0: FloatUnary = /* @__PURE__ */ of('besselJ0', bessel.j0);
/**
 * The Bessel function J₁.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.besselJ1(x);
 */
export const besselJ1: FloatUnary = /* @__PURE__ */ of('besselJ1', bessel.j1);
/**
 * The Bessel function Y₀: −∞ at 0, NaN below.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.besselY0(x);
 */
export const besselY0: FloatUnary = /* @__PURE__ */ of('besselY0', bessel.y0);
/**
 * The Bessel function Y₁: −∞ at 0, NaN below.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.besselY1(x);
 */
export const besselY1: FloatUnary = /* @__PURE__ */ of('besselY1', bessel.y1);
/**
 * The spherical Bessel function j₀: sin x/x, 1 at 0.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.sphericalBesselJ0(x);
 */
export const sphericalBesselJ0: FloatUnary = /* @__PURE__ */ of('sphericalBesselJ0', bessel.sphericalJ0);
/**
 * Airy's function Ai; NaN at ±∞.
 *
 * @example
 * const x = sn.tensor([0.5, 1.5, 4]);
 * sn.special.airyAi(x);
 */
export const airyAi: FloatUnary = /* @__PURE__ */ of('airyAi', airyAiOf);
