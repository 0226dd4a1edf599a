// Hurwitz's zeta function ζ(s, q) = Σ (q + k)^−s, by Euler and Maclaurin's summation.

import { times } from '../../../autograd/cotangent.ts';
import type { CustomRule } from '../../../autograd/custom.ts';
import { TensorError } from '../../../errors.ts';
import { withRule } from '../elementwise.ts';
import { Real, factorial } from './real.ts';

/** Numerators and denominators of the Bernoulli numbers B₂ⱼ, for j from 1 on. */
const numbers: readonly (readonly [number, number])[] = [
  [1, 6],
  [-1, 30],
  [1, 42],
  [-1, 30],
  [5, 66],
  [-691, 2730],
  [7, 6],
  [-3617, 510],
  [43867, 798],
  [-174611, 330],
  [854513, 138],
  [-236364091, 2730],
];

/** B₂ⱼ/(2j)! for j from 1 on. */
export const bernoulli: readonly number[] = numbers.map(
  ([above, below], j) => above / below / factorial(2 * j + 2),
);

/** ζ(s, q) of s > 1 and q > 0. */
function positive(s: Real, q: Real): Real {
  const [count, terms] = q.isDouble ? [12, 12] : [9, 7];
  const power = s.neg();
  let sum = q.pow(power);
  for (let k = 1; k < count; k++) sum = sum.add(q.add(k).pow(power));
  const w = q.add(count);
  // Where s is greater, the terms that this is a factor of count for nothing, and it must be finite.
  const bounded = s.min(q.isDouble ? 700 : 64);
  const z = w.square().recip();
  let series = s.like(bernoulli[terms - 1]!);
  for (let j = terms - 2; j >= 0; j--) {
    const rising = bounded.add(2 * j + 1).mul(bounded.add(2 * j + 2));
    series = series.mul(rising.mul(z)).add(bernoulli[j]!);
  }
  const tail = series.mul(bounded.div(w)).add(0.5);
  // The integral from w on, a power of its own: w^−s is 0 long before w^(1 − s) is.
  const integral = w.pow(s.from(1)).div(s.sub(1));
  return sum.add(w.pow(power).mul(tail)).add(integral);
}

/**
 * The terms of negative q + k are (−1)^s times those of its distance: a sum from the fraction up to
 * |q|, the difference of two zeta functions. Defined there for whole s alone.
 */
function value(s: Real, q: Real): Real {
  const isNegative = q.lt(0);
  const floor = q.to('floor');
  const fraction = q.sub(floor);
  const above = positive(s, isNegative.choose(fraction, q));
  // The distance to the next whole number, of which 1 − fraction keeps no digits where it is small.
  const low = isNegative.choose(floor.add(1).sub(q), 1);
  const below = positive(s, low).sub(positive(s, isNegative.choose(q.neg().add(1), 1)));
  const half = s.mul(0.5);
  const signed = half.eq(half.to('floor')).choose(below, below.neg());
  const inside = isNegative.choose(above.add(signed), above);
  const isPole = q.le(0).and(q.isWhole());
  const isUndefined = q.lt(0).and(s.isWhole().not());
  const defined = isPole.choose(Infinity, isUndefined.choose(NaN, inside));
  return s.eq(1).choose(Infinity, s.lt(1).choose(NaN, defined));
}

/** dζ = −s·ζ(s + 1, q)·dq; none by s, as PyTorch. */
const rule: CustomRule = (b, [s, q], _value, g, wanted) => {
  if (wanted[0] === true)
    throw new TensorError('E_GRAD', 'zeta', 'has no derivative by its first argument', 'x.detach()');
  const order = new Real(b, s!);
  const slope = zeta(order.add(1), new Real(b, q!)).mul(order).neg();
  return [undefined, times(b, g, slope.node)];
};

export function zeta(s: Real, q: Real): Real {
  return new Real(s.b, withRule(s.b, value(s, q).node, [s.node, q.node], rule));
}
