// Short functions that need care at single points, with the derivatives that PyTorch gives there.

import { times } from '../../../autograd/cotangent.ts';
import type { CustomRule } from '../../../autograd/custom.ts';
import { withRule } from '../elementwise.ts';
import { sinPi, cosPi } from './angle.ts';
import { differentiable, Real, type RealFormula, type Truth, factorial } from './real.ts';

/** −x·log x; 0 at 0, −∞ below. */
export const entr: RealFormula = /* @__PURE__ */ differentiable(
  (x) => {
    const inside = x.gt(0).choose(x.to('log').mul(x).neg(), x);
    return x.lt(0).choose(-Infinity, x.eq(0).choose(0, inside));
  },
  (x) => x.to('log').add(1).neg(),
);

/**
 * log(x/(1 − x)); near ½, where it is 0, by the distance to it. dx/(x·(1 − x)), NaN outside of [0,
 * 1].
 */
export const logit: RealFormula = /* @__PURE__ */ differentiable(
  (x) => {
    const rest = x.from(1);
    const near = x.mul(2).sub(1).div(rest).to('log1p');
    const far = x.to('log').sub(x.neg().to('log1p'));
    return x.gt(0.25).and(x.lt(0.75)).choose(near, far);
  },
  (x) =>
    x
      .lt(0)
      .or(x.gt(1))
      .choose(NaN, x.mul(x.from(1)).recip()),
);

/** sin(πx)/(πx); 1 at 0. */
export const sinc: RealFormula = /* @__PURE__ */ differentiable(
  (x) => {
    const isZero = x.eq(0);
    const angle = isZero.choose(1, x).mul(Math.PI);
    return isZero.choose(1, sinPi(x).div(angle));
  },
  (x, value) => {
    const isNear = x.abs().lt(0.125);
    const z = x.mul(Math.PI).square();
    const series = sincSeries.reduce<Real>((sum, c) => sum.fma(z, c), x.like(0));
    const far = cosPi(x).sub(value).div(isNear.choose(1, x));
    return isNear.choose(x.mul(series), far);
  },
);

/** The derivative of sin(πx)/(πx), over x, at (πx)²: highest power first. */
const sincSeries: readonly number[] = [7, 6, 5, 4, 3, 2, 1].map(
  (k) => ((k % 2 === 0 ? 2 * k : -2 * k) / factorial(2 * k + 1)) * Math.PI ** 2,
);

/** x·f(y), 0 where x is 0 and y is a number. */
function product(x: Real, y: Real, log: Real): Real {
  const isNan = y.eq(y).not();
  return isNan.choose(NaN, x.eq(0).choose(0, x.mul(log)));
}

/** x takes f(y), but 0 where x is 0 and y ≤ the pole; y takes x/(y − pole). */
function ruleAt(pole: number, log: (y: Real) => Real): CustomRule {
  return (b, [first, second], _value, g) => {
    const [x, y] = [new Real(b, first!), new Real(b, second!)];
    const isEdge: Truth = x.eq(0).and(y.le(pole));
    const slope = isEdge.choose(0, log(y));
    const other = x.div(pole === 0 ? y : y.sub(pole));
    return [times(b, g, slope.node), times(b, g, other.node)];
  };
}

const natural = (y: Real): Real => y.to('log');
const shifted = (y: Real): Real => y.to('log1p');
const naturalRule = /* @__PURE__ */ ruleAt(0, natural);
const shiftedRule = /* @__PURE__ */ ruleAt(-1, shifted);

/** x·log y. */
export function xlogy(x: Real, y: Real): Real {
  return new Real(x.b, withRule(x.b, product(x, y, natural(y)).node, [x.node, y.node], naturalRule));
}

/** x·log(1 + y). */
export function xlog1py(x: Real, y: Real): Real {
  return new Real(x.b, withRule(x.b, product(x, y, shifted(y)).node, [x.node, y.node], shiftedRule));
}
