// The error function's relatives. All tails come from one function, e^(x²)·erfc(x), which is smooth
// and never small, so that none of them loses digits.

import { FAR, PER_ROOT_PI, positiveTail } from './erfc.ts';
import { decay, nudged, squared } from './exponential.ts';
import { differentiable } from './function.ts';
import type { RealFormula } from './real.ts';

/** Twice e^x² of greater numbers is no f32. */
const OVERFLOW = 9.41;

/** e^(x²)·erfc(x): 2e^(x²) less that of −x where x is negative. */
export const erfcx: RealFormula = /* @__PURE__ */ differentiable(
  (x) => {
    const size = x.abs();
    const tail = positiveTail(size);
    const bounded = size.min(FAR);
    const { head, rest } = squared(bounded);
    const square = x.isDouble
      ? bounded.square().to('exp')
      : size.lt(OVERFLOW).choose(nudged(head.to('exp'), rest), Infinity);
    return x.lt(0).choose(square.mul(2).sub(tail), tail);
  },
  (x, value) => {
    // 2x·erfcx(x) − 2/√π, whose terms cancel for large x: from there on by the asymptotic series.
    const far = x.isDouble ? 60 : 7;
    const z = x.max(far).square().mul(2).recip();
    const series = z.mul(-7).add(1).mul(z).mul(-5).add(1).mul(z).mul(-3).add(1).mul(z);
    const near = x
      .mul(value)
      .mul(2)
      .sub(2 * PER_ROOT_PI);
    return x.lt(far).choose(near, series.mul(-2 * PER_ROOT_PI));
  },
);

/** The share of a normal distribution below x. */
export const ndtr: RealFormula = /* @__PURE__ */ differentiable(
  (x) => {
    const tail = x.neg().max(0.5).min(40);
    const scaled = positiveTail(tail.mul(Math.SQRT1_2)).mul(0.5);
    const { head, rest } = squared(x.isDouble ? tail : tail.min(16));
    const below = x.isDouble
      ? decay(tail.square().mul(0.5), scaled)
      : decay(head.mul(0.5), nudged(scaled, rest.mul(-0.5)));
    return x.lt(-0.66).choose(below, x.mul(Math.SQRT1_2).to('erf').fma(0.5, x.like(0.5)));
  },
  (x) =>
    x
      .square()
      .mul(-0.5)
      .to('exp')
      .mul(1 / Math.sqrt(2 * Math.PI)),
);

/** Its logarithm: −x²/2 and the logarithm of the scaled tail below 0, log(1 − Φ(−x)) above. */
export const logNdtr: RealFormula = /* @__PURE__ */ differentiable(
  (x) => {
    const tail = positiveTail(x.neg().max(0).mul(Math.SQRT1_2)).mul(0.5);
    const below = tail.to('log').sub(x.square().mul(0.5));
    return x.lt(0).choose(below, ndtr(x.neg()).neg().to('log1p'));
  },
  (x) =>
    erfcx(x.mul(-Math.SQRT1_2))
      .recip()
      .mul(Math.sqrt(2 / Math.PI)),
);
