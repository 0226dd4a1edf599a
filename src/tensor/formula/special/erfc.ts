// 1 − erf with all its digits, by e^(x²)·erfc(x), which is smooth and never small. In a file of its
// own: every page has `erfc`, and few have its relatives (erf.ts).

import { scaledTail } from './fits/erf.ts';
import { decay, nudged, squared } from './exponential.ts';
import { differentiable, fitted, type Real, type RealFormula } from './real.ts';

/** Below this 1 − erf(x) is at least ½, and right to the last digit. */
const NEAR = 0.46875;
/** e^−x² of greater numbers is 0 in either dtype. */
export const FAR = 28;
export const PER_ROOT_PI: number = 1 / Math.sqrt(Math.PI);

/** e^(x²)·erfc(x) for x ≥ 0. */
export function positiveTail(x: Real): Real {
  const q = x.add(2).recip();
  return fitted(scaledTail, q).mul(q);
}

/** e^−x²·factor, with the digits of x² that a float has no place for. */
function gaussian(x: Real, factor: Real): Real {
  if (x.isDouble) return decay(x.square(), factor);
  const { head, rest } = squared(x);
  return decay(head, nudged(factor, rest.neg()));
}

/** d erfc x = −2/√π·e^(−x²)·dx */
export const erfc: RealFormula = /* @__PURE__ */ differentiable(
  (x) => {
    // Where the tail is not taken it is computed at NEAR.
    const beyond = x.max(NEAR).min(FAR);
    return x.lt(NEAR).choose(x.to('erf').from(1), gaussian(beyond, positiveTail(beyond)));
  },
  (x) => bell(x).mul(-2 * PER_ROOT_PI),
);

/** e^−x². */
function bell(x: Real): Real {
  return x.square().neg().to('exp');
}
