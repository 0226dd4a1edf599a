// The regularised incomplete gamma functions P(a, x) and Q(a, x). The one that is not near 1 is
// xᵃ·e^−x/Γ(a) times an integral of a smooth positive function over u ≥ 0, with s = x·e^−u below
// and s = x·(1 + w) above, which the trapezoidal rule takes after u = c·exp(t − e^−t) (Takahasi and
// Mori, "Double exponential formulas for numerical integration", 1974): terms of one sign along an
// axis of their own, as many for all arguments.

import { times } from '../../../autograd/cotangent.ts';
import type { CustomRule } from '../../../autograd/custom.ts';
import { TensorError } from '../../../errors.ts';
import { expandAxes, reduce } from '../../../ir/build.ts';
import { dims, type Node } from '../../../ir/graph.ts';
import { iota, withRule } from '../elementwise.ts';
import { expRest, logGammaAtOne, logRest, stirlingFactor } from './fits/gamma.ts';
import { lgamma } from './gamma.ts';
import { fitted, fittedFrom, Real } from './real.ts';

/** The trapezoids: from `first`, `count` steps of `step`. */
const RULES = {
  f32: { first: -3.25, step: 0.2, count: 42 },
  f64: { first: -4, step: 0.1, count: 100 },
} as const;

/** xᵃ·e^−x/Γ(a) for a, x > 0. */
function density(a: Real, x: Real): Real {
  const few = a.min(1);
  const gamma = lgamma(few.add(1)).neg().to('exp').mul(few);
  const direct = x.pow(few).mul(x.neg().to('exp')).mul(gamma);
  const many = a.max(1);
  const away = x.sub(many).div(many);
  const isNear = away.gt(-0.5).and(away.lt(0.75));
  const rest = isNear.choose(away.square().mul(fitted(logRest, away)), away.sub(x.div(many).to('log')));
  const scale = many
    .mul(1 / (2 * Math.PI))
    .to('sqrt')
    .mul(fitted(stirlingFactor, many.recip()));
  return a.lt(1).choose(direct, rest.mul(many).neg().to('exp').mul(scale));
}

/**
 * ∫ e^−((a − x)·u + x·(e^−u − 1 + u)) du over u ≥ 0 where x < a, else ∫ e^−((x − a + 1)·w + (a −
 * 1)·(w − log(1 + w))) dw: all terms are positive, but for the last where a < 1.
 */
function integral(a: Real, x: Real, isBelow: Real): Real {
  const { first, step, count } = RULES[x.isDouble ? 'f64' : 'f32'];
  const shape = dims(x.node);
  const axis = shape.length;
  const whole = [...shape, count];
  const spread = (value: Real): Real => new Real(x.b, expandAxes(x.b, value.node, whole, [axis]));
  const lower = isBelow.gt(0);
  const slope = lower.choose(a.sub(x), x.sub(a).add(1));
  const bend = lower.choose(x, a.sub(1));
  const width = slope.add(lower.choose(x.min(x.to('sqrt')), a.to('sqrt'))).recip();
  const t = new Real(x.b, iota(x.b, whole, axis, x.node.dtype)).mul(step).add(first);
  const fall = t.neg().to('exp');
  const unit = t.sub(fall).to('exp');
  const u = unit.mul(spread(width));
  const isLower = spread(isBelow).gt(0);
  const near = isLower.choose(fitted(expRest, u.neg().max(-1)), fitted(logRest, u.min(0.75))).mul(u.square());
  const isNear = u.lt(0.75);
  const far = isLower.choose(u.add(u.neg().to('expm1')), u.sub(u.to('log1p')));
  const rest = isNear.choose(near, far);
  const height = spread(slope).mul(u).add(spread(bend).mul(rest)).neg().to('exp');
  // A u beyond all numbers has no weight: its height is 0.
  const terms = height.gt(0).choose(height.mul(unit).mul(fall.add(1)), 0);
  const sum = new Real(x.b, reduce(x.b, 'sum', terms.node, [axis]));
  return sum.mul(width).mul(step);
}

/** Σ (−1)ⁿ⁺¹·xⁿ/((a + n)·n!) over n ≥ 1, for x ≤ 1. */
function alternating(a: Real, x: Real): Real {
  const count = x.isDouble ? 17 : 10;
  let sum = x.like(0);
  for (let n = count; n >= 1; n--) {
    const term = a.add(n).recip();
    sum = x.mul(term.sub(sum)).mul(1 / n);
  }
  return sum;
}

/** P and Q of a < 1 and x ≤ 1: xᵃ/Γ(1 + a)·(1 − a·Σ …), and 1 less that without its cancellation. */
function small(a: Real, x: Real, isUpper: boolean): Real {
  // Γ(1 + a) by a itself, which 1 + a may have lost: where a is tiny, so is Q.
  const gamma = a.lt(0.5).choose(a.mul(fittedFrom(logGammaAtOne, a)), lgamma(a.add(1)));
  const log = a.mul(x.to('log')).sub(gamma);
  const series = a.mul(alternating(a, x));
  if (!isUpper) return series.from(1).mul(log.to('exp'));
  return log.to('exp').mul(series).sub(log.to('expm1'));
}

function valueOf(a: Real, x: Real, isUpper: boolean): Real {
  const isPlain = a.gt(0).and(x.gt(0)).and(a.lt(Infinity)).and(x.lt(Infinity));
  const [order, bound] = [isPlain.choose(a, 1), isPlain.choose(x, 1)];
  const isBelow = bound.lt(order);
  const part = density(order, bound).mul(integral(order, bound, isBelow.choose(bound.like(1), 0)));
  const rest = part.from(1);
  const large = isUpper ? isBelow.choose(rest, part) : isBelow.choose(part, rest);
  const isSmall = order.lt(1).and(bound.le(1));
  const inside = isSmall.choose(small(order.min(1), bound.min(1), isUpper), large);
  const [none, all] = isUpper ? [1, 0] : [0, 1];
  // At the edges P is 0 where x = 0 or a = ∞, and 1 where a = 0 or x = ∞; NaN where both are, and
  // below 0.
  const isNone = x.eq(0).or(a.eq(Infinity));
  const isAll = a.eq(0).or(x.eq(Infinity));
  const edge = isNone.choose(isAll.choose(inside.like(NaN), none), isAll.choose(inside.like(all), NaN));
  // A NaN is not at least 0 either.
  const isDefined = a.like(0).le(a).and(a.like(0).le(x));
  return isDefined.choose(isPlain.choose(inside, edge), NaN);
}

/** dP = xᵃ⁻¹·e^−x/Γ(a)·dx, dQ = −dP; none by a, as PyTorch. */
const ruleOf =
  (name: string, sign: number): CustomRule =>
  (b, [a, x], _value, g, wanted) => {
    if (wanted[0] === true)
      throw new TensorError('E_GRAD', name, 'has no derivative by its first argument', 'a.detach()');
    const bound = new Real(b, x!);
    const slope = density(new Real(b, a!), bound).div(bound).mul(sign);
    return [undefined, times(b, g, slope.node)];
  };

const lowerRule = /* @__PURE__ */ ruleOf('igamma', 1);
const upperRule = /* @__PURE__ */ ruleOf('igammac', -1);

/** P(a, x). */
export function lowerGamma(a: Real, x: Real): Real {
  return withDerivative(valueOf(a, x, false), a, x, lowerRule);
}

/** Q(a, x) = 1 − P(a, x). */
export function upperGamma(a: Real, x: Real): Real {
  return withDerivative(valueOf(a, x, true), a, x, upperRule);
}

function withDerivative(value: Real, a: Real, x: Real, rule: CustomRule): Real {
  const node: Node = withRule(x.b, value.node, [a.node, x.node], rule);
  return new Real(x.b, node);
}
