// The modified Bessel functions of order 0 and 1, plain and scaled by their exponential.

import * as fits from './fits/modified.ts';
import { decay, growth } from './exponential.ts';
import { differentiable, fitted, type Real, type RealFormula } from './real.ts';

/** e^−|x|·I₀(x). */
function scaled0(x: Real): Real {
  const size = x.abs();
  const inverse = size.max(12).recip();
  const far = inverse.to('sqrt').mul(fitted(fits.i0Far, inverse));
  const middle = size.lt(12).choose(fitted(fits.i0Middle, size), far);
  return size.lt(4).choose(fitted(fits.i0Near, size), middle);
}

/** e^−|x|·I₁(x). */
function scaled1(x: Real): Real {
  const size = x.abs();
  const inverse = size.max(12).recip();
  const far = inverse.to('sqrt').mul(fitted(fits.i1Far, inverse));
  const middle = size.lt(12).choose(fitted(fits.i1Middle, size), far);
  const signed = x.lt(0).choose(middle.neg(), middle);
  return size.lt(4).choose(x.mul(fitted(fits.i1Near, size)), signed);
}

/** y, but ½ at 0. */
const atZero = (x: Real, y: Real): Real => x.eq(0).choose(0.5, y);
/** x, or 1 in place of 0. */
const notZero = (x: Real): Real => x.eq(0).choose(1, x);

/**
 * What the functions of order 1 have more than those of order 0 at x > 0: `near`, or from a bound on,
 * where both agree in most digits, the difference of Hankel's expansions,
 * √(1/x)·Σ (a_k(1) − a_k(0))·u^k with u = 1/x for K, and −1/x for I.
 */
function excess(x: Real, near: Real, sign: 1 | -1, factor: number): Real {
  const [from, terms] = x.isDouble ? [50, 12] : [12, 8];
  const inverse = x.max(from).recip();
  const u = inverse.mul(sign);
  const sum = excessTerms(terms).reduceRight<Real>((rest, c) => rest.fma(u, c), x.like(0));
  return x.lt(from).choose(near, inverse.mul(factor).to('sqrt').mul(u.mul(sum)));
}

/** a_k(1) − a_k(0) for k from 1 on, where a_k(ν) = Π (4ν² − (2j − 1)²)/(8j) over j up to k. */
function excessTerms(terms: number): readonly number[] {
  const differences: number[] = [];
  for (let [k, order0, order1] = [1, 1, 1]; k <= terms; k++) {
    const odd = (2 * k - 1) ** 2;
    order0 *= -odd / (8 * k);
    order1 *= (4 - odd) / (8 * k);
    differences.push(order1 - order0);
  }
  return differences;
}

/** e^−|x|·(I₁ − I₀) of |x|. */
function excessOfI(x: Real): Real {
  const size = x.abs();
  return excess(size, i1e(size).sub(i0e(size)), -1, 1 / (2 * Math.PI));
}

/** e^x·(K₁ − K₀). */
function excessOfK(x: Real): Real {
  return excess(x, k1e(x).sub(k0e(x)), 1, Math.PI / 2);
}

/** Where the exponential overflows, a factor above 0. */
const bounded = (x: Real): Real => x.max(-1000).min(1000);

export const i0: RealFormula = /* @__PURE__ */ differentiable(
  (x) => growth(x.abs(), scaled0(bounded(x))),
  (x) => i1(x),
);

export const i0e: RealFormula = /* @__PURE__ */ differentiable(scaled0, (x) =>
  x.to('sign').mul(excessOfI(x)),
);

export const i1: RealFormula = /* @__PURE__ */ differentiable(
  (x) => growth(x.abs(), scaled1(bounded(x))),
  // Where both grow beyond all numbers, so does the difference.
  (x, value) =>
    atZero(
      x,
      value
        .abs()
        .eq(Infinity)
        .choose(Infinity, i0(x).sub(value.div(notZero(x)))),
    ),
);

export const i1e: RealFormula = /* @__PURE__ */ differentiable(scaled1, (x, value) =>
  // e^−|x|·I₁′ − sign x·value, where I₁′ = I₀ − I₁/x.
  atZero(
    x,
    excessOfI(x)
      .add(value.div(notZero(x)))
      .neg(),
  ),
);

interface Pieces {
  /** Up to 1. */
  readonly near: Real;
  /** From there on, times e^x. */
  readonly far: Real;
}

function pieces0(x: Real): Pieces {
  const z = x.min(1).square();
  const near = fitted(fits.k0Near, z).sub(x.mul(0.5).to('log').mul(fitted(fits.i0Small, z)));
  return { near, far: beyond(x, fits.k0Middle, fits.k0Far) };
}

function pieces1(x: Real): Pieces {
  const small = x.min(1);
  const z = small.square();
  const log = x.mul(0.5).to('log').mul(fitted(fits.i1Small, z)).add(fitted(fits.k1Near, z));
  // x·log(x/2) is 0 at 0.
  const rest = x.eq(0).choose(0, small.mul(log));
  return { near: x.recip().add(rest), far: beyond(x, fits.k1Middle, fits.k1Far) };
}

function beyond(x: Real, middle: typeof fits.k0Middle, far: typeof fits.k0Far): Real {
  const inverse = x.max(3).recip();
  return x.lt(3).choose(fitted(middle, x), inverse.to('sqrt').mul(fitted(far, inverse)));
}

/** K of x > 0: ∞ at 0, NaN below. */
function plain(pieces: (x: Real) => Pieces): RealFormula {
  return (x) => {
    const { near, far } = pieces(x);
    return x.le(1).choose(positiveOnly(x, near), decay(x, far));
  };
}

function scaled(pieces: (x: Real) => Pieces): RealFormula {
  return (x) => {
    const { near, far } = pieces(x);
    return x.le(1).choose(positiveOnly(x, near).mul(x.min(1).to('exp')), far);
  };
}

function positiveOnly(x: Real, value: Real): Real {
  return x.eq(0).choose(Infinity, x.lt(0).choose(NaN, value));
}

export const k0: RealFormula = /* @__PURE__ */ differentiable(plain(pieces0), (x) => k1(x).neg());

export const k1: RealFormula = /* @__PURE__ */ differentiable(plain(pieces1), (x, value) =>
  k0(x).add(value.div(x)).neg(),
);

export const k0e: RealFormula = /* @__PURE__ */ differentiable(scaled(pieces0), (x) => excessOfK(x).neg());

export const k1e: RealFormula = /* @__PURE__ */ differentiable(scaled(pieces1), (x, value) =>
  excessOfK(x).sub(value.div(x)),
);
