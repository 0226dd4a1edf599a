// The logarithm of the gamma function, and its first derivative.

import {
  digammaFar,
  digammaMiddle,
  digammaNear,
  digammaRoot,
  logGammaAtOne,
  logGammaAtTwo,
  logGammaMiddle,
  stirling,
} from './fits/gamma.ts';
import { angleOf, cotPi } from './angle.ts';
import { polygamma } from './polygamma.ts';
import { differentiable, fitted, fittedFrom, type RealFormula } from './real.ts';

/**
 * log |Γ(x)|. Near 1 and 2, where it is 0, the distance to them times a polynomial; from 8 on
 * Stirling's series; below ½ by log Γ(1 + x) − log |x|, and below −½ by reflection.
 */
export const lgamma: RealFormula = /* @__PURE__ */ differentiable(
  (x) => {
    const isReflected = x.lt(-0.5);
    const y = isReflected.choose(x.neg(), x);
    const isSmall = y.lt(0.5);
    const one = isSmall.choose(y, y.sub(1));
    const log = y
      .lt(8)
      .choose(y.abs(), y.mul(1 / Math.E))
      .to('log');
    const atOne = one.mul(fittedFrom(logGammaAtOne, one)).sub(isSmall.choose(log, 0));
    const two = y.sub(2);
    const near = y.lt(3).choose(fitted(logGammaAtTwo, y), fitted(logGammaMiddle, y)).mul(two);
    const inverse = y.recip();
    const rest = inverse.mul(fitted(stirling, inverse.square())).add(Math.log(2 * Math.PI) / 2 - 0.5);
    const far = y.sub(0.5).mul(log).add(rest);
    const value = y.lt(1.5).choose(atOne, y.lt(8).choose(near, far));
    const sine = angleOf(x).to('sin').mul(x).abs();
    const mirrored = sine.recip().mul(Math.PI).to('log').sub(value);
    const isPole = isReflected.and(x.isWhole());
    return isPole.choose(Infinity, isReflected.choose(mirrored, value));
  },
  (x) => digamma(x),
);

/**
 * ψ(x). Between 1 and 2 the distance to its zero times a polynomial; below by ψ(x + 1) − 1/x, and
 * for negative x by reflection.
 */
export const digamma: RealFormula = /* @__PURE__ */ differentiable(
  (x) => {
    const isReflected = x.lt(0);
    const y = isReflected.choose(x.from(1), x);
    const isSmall = y.lt(1);
    // y − 1, exactly.
    const one = isSmall.choose(y, isReflected.choose(x.neg(), x.sub(1)));
    const [high, low] = digammaRoot;
    const near = fittedFrom(digammaNear, one.sub(0.5)).mul(one.sub(high - 1).sub(low));
    const inverse = y.recip();
    const z = inverse.square();
    const far = y
      .to('log')
      .sub(inverse.mul(0.5))
      .sub(z.mul(fitted(digammaFar, z)));
    const lower = y.lt(2).choose(near, fitted(digammaMiddle, y));
    const value = y.lt(4).choose(lower, far).sub(isSmall.choose(inverse, 0));
    const mirrored = value.sub(cotPi(x).mul(Math.PI));
    const isPole = isReflected.and(x.isWhole());
    return isPole.choose(NaN, isReflected.choose(mirrored, value));
  },
  (x) => polygamma(1)(x),
);

/** log of the multivariate gamma function: p(p − 1)/4·log π + Σ log Γ(x − j/2). */
export function multivariate(p: number): RealFormula {
  return (x) => {
    const first = lgamma(x).add(((p * (p - 1)) / 4) * Math.log(Math.PI));
    const others = Array.from({ length: p - 1 }, (_, j) => lgamma(x.sub((j + 1) / 2)));
    return others.reduce((sum, one) => sum.add(one), first);
  };
}
