// The error function's relatives. All tails come from one function, e^(x²)·erfc(x), which is smooth
// and never small, so that none of them loses digits.

import { FAR, PER_ROOT_PI, positiveTail } from './erfc.ts';
import { decay, nudged, squared } from './exponential.ts';
import { differentiable, type RealFormula, fitted } from './real.ts';
import { inverseFar, inverseLast, inverseNear, normalFar, normalLast, normalNear } from './fits/erf.ts';

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

// The inverses of the error function and of the normal distribution, by the logarithm of the tail.

/** dy = √π/2·e^(y²)·dx; ±∞ at ±1, NaN beyond. */
export const erfinv: RealFormula = /* @__PURE__ */ differentiable(
  (x) => {
    const size = x.abs();
    const log = size.from(1).mul(size.add(1)).to('log').neg();
    const root = log.max(4).to('sqrt');
    const far = fitted(inverseFar, root);
    const beyond = x.isDouble ? root.lt(4.25).choose(far, fitted(inverseLast, root)) : far;
    const inside = log.lt(5).choose(fitted(inverseNear, log), beyond).mul(x);
    return size.lt(1).choose(inside, size.eq(1).choose(x.mul(Infinity), x.mul(NaN)));
  },
  (_x, value) =>
    value
      .square()
      .to('exp')
      .mul(Math.sqrt(Math.PI) / 2),
);

/** dy = √2π·e^(y²/2)·dp; −∞ at 0, ∞ at 1, NaN outside. */
export const ndtri: RealFormula = /* @__PURE__ */ differentiable(
  (p) => {
    const middle = p.sub(0.5);
    const rest = p.min(p.from(1));
    const s = rest.to('log').mul(-2).to('sqrt');
    const far = s.lt(5).choose(fitted(normalFar, s), fitted(normalLast, s.recip())).mul(s);
    const tail = p.lt(0.5).choose(far.neg(), far);
    const inside = middle.abs().lt(0.4).choose(fitted(normalNear, middle.square()).mul(middle), tail);
    // Not of NaN either.
    const isInside = p.le(1).and(p.neg().le(0));
    return isInside.choose(inside, p.mul(NaN));
  },
  (_p, value) =>
    value
      .square()
      .mul(0.5)
      .to('exp')
      .mul(Math.sqrt(2 * Math.PI)),
);
