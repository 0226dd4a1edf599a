// The Bessel functions of order 0 and 1: polynomials up to 5, then Hankel's phase and amplitude.

import * as fits from './fits/bessel.ts';
import { differentiable, fitted, type Fit, type Real, type RealFormula } from './real.ts';

const LAST = 5;

/** √(1/(πx))·(P·u + Q·v), where u and v are sums of the sine and the cosine of x. */
function wave(x: Real, even: Fit, odd: Fit, sums: (sine: Real, cosine: Real) => readonly [Real, Real]): Real {
  const size = x.max(LAST);
  const inverse = size.recip();
  const z = inverse.square();
  const [u, v] = sums(size.to('sin'), size.to('cos'));
  const value = fitted(even, z).mul(u).add(fitted(odd, z).mul(inverse).mul(v));
  const scaled = inverse
    .mul(1 / Math.PI)
    .to('sqrt')
    .mul(value);
  return x.eq(Infinity).choose(0, scaled);
}

/** J₀ or J₁/x of |x| below LAST. */
function inner(z: Real, near: Fit, middle: Fit): Real {
  return z.lt(4).choose(fitted(near, z), fitted(middle, z));
}

export const j0: RealFormula = /* @__PURE__ */ differentiable(
  (x) => {
    const size = x.abs();
    const far = wave(size, fits.phase0Even, fits.phase0Odd, (s, c) => [c.add(s), c.sub(s)]);
    return size.lt(LAST).choose(inner(size.min(LAST).square(), fits.j0Near, fits.j0Middle), far);
  },
  (x) => j1(x).neg(),
);

export const j1: RealFormula = /* @__PURE__ */ differentiable(
  (x) => {
    const size = x.abs();
    const far = wave(size, fits.phase1Even, fits.phase1Odd, (s, c) => [s.sub(c), s.add(c)]);
    const signed = x.lt(0).choose(far.neg(), far);
    const near = x.mul(inner(size.min(LAST).square(), fits.j1Near, fits.j1Middle));
    return size.lt(LAST).choose(near, signed);
  },
  (x, value) => {
    const isZero = x.eq(0);
    return isZero.choose(0.5, j0(x).sub(value.div(isZero.choose(1, x))));
  },
);

export const y0: RealFormula = /* @__PURE__ */ differentiable(
  (x) => {
    const far = wave(x, fits.phase0Even, fits.phase0Odd, (s, c) => [s.sub(c), s.add(c)]);
    const z = x.min(2).square();
    const log = x
      .mul(0.5)
      .to('log')
      .mul(2 / Math.PI);
    const near = log.mul(fitted(fits.j0Near, z)).add(fitted(fits.y0Near, z));
    const inside = x.lt(2).choose(near, fitted(fits.y0Middle, x));
    return positiveOnly(x, x.lt(LAST).choose(inside, far));
  },
  (x) => y1(x).neg(),
);

export const y1: RealFormula = /* @__PURE__ */ differentiable(
  (x) => {
    const far = wave(x, fits.phase1Even, fits.phase1Odd, (s, c) => [s.add(c).neg(), s.sub(c)]);
    const small = x.min(2);
    const z = small.square();
    const log = x
      .mul(0.5)
      .to('log')
      .mul(fitted(fits.j1Near, z))
      .mul(2 / Math.PI);
    const near = small.mul(log.add(fitted(fits.y1Near, z))).sub(x.recip().mul(2 / Math.PI));
    const inside = x.lt(2).choose(near, fitted(fits.y1Middle, x));
    return positiveOnly(x, x.lt(LAST).choose(inside, far));
  },
  (x, value) => y0(x).sub(value.div(x)),
);

/** Y is −∞ at 0, and NaN below. */
function positiveOnly(x: Real, value: Real): Real {
  return x.eq(0).choose(-Infinity, x.lt(0).choose(NaN, value));
}

/** Below this the derivative of sin x/x is taken from its series: its terms cancel. */
const SERIES = 0.5;

/** sin x/x: 1 at 0, and 0 at ±∞. */
export const sphericalJ0: RealFormula = /* @__PURE__ */ differentiable(
  (x) => {
    const isZero = x.eq(0);
    const size = x.abs();
    const value = size.to('sin').div(isZero.choose(1, size));
    return isZero.choose(1, size.eq(Infinity).choose(0, value));
  },
  (x, value) => {
    const near = x.mul(sphericalSlope(x.square(), 8));
    const far = x.to('cos').sub(value).div(x.eq(0).choose(1, x));
    return x.abs().lt(SERIES).choose(near, far);
  },
);

/** Σ (−1)^k·2k·x^(2k − 2)/(2k + 1)! for k from 1 on: the derivative of sin x/x, over x. */
function sphericalSlope(z: Real, terms: number): Real {
  const coefficients: number[] = [];
  for (let [k, factorial] = [1, 6]; k <= terms; k++) {
    coefficients.push((k % 2 === 0 ? 2 * k : -2 * k) / factorial);
    factorial *= (2 * k + 2) * (2 * k + 3);
  }
  return coefficients.reduceRight<Real>((sum, c) => sum.fma(z, c), z.like(0));
}
