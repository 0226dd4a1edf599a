// The inverses of the error function and of the normal distribution, by the logarithm of the tail.

import { inverseFar, inverseLast, inverseNear, normalFar, normalLast, normalNear } from './fits/erf.ts';
import { differentiable } from './function.ts';
import { fitted } from './polynomial.ts';
import type { RealFormula } from './real.ts';

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
