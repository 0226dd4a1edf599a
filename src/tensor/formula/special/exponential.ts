// Exponentials whose argument is known to more digits than one float holds, and that go on below
// the least normal number.

import type { Real } from './real.ts';

/**
 * Exponents at which the exponential is split: all are multiples of a quarter whose exponential is
 * very near a float of 24 digits.
 */
const SPLIT = { down: { f32: 61, f64: 512 }, up: { f32: 21.5, f64: 128 } } as const;

/**
 * e^−y·factor for y ≥ 0, right also where e^−y alone would have too few digits, being below the
 * normal numbers.
 */
export function decay(y: Real, factor: Real): Real {
  const split = SPLIT.down[y.isDouble ? 'f64' : 'f32'];
  const isFar = y.gt(split);
  const power = isFar.choose(y.from(split), y.neg()).to('exp');
  return power.mul(factor).mul(isFar.choose(y.like(Math.exp(-split)), 1));
}

/** e^y·factor for y ≥ 0 and a factor below 1, where e^y alone may overflow. */
export function growth(y: Real, factor: Real): Real {
  const split = SPLIT.up[y.isDouble ? 'f64' : 'f32'];
  const isFar = y.gt(4 * split);
  const power = isFar.choose(y.sub(split), y).to('exp');
  return power.mul(factor).mul(isFar.choose(y.like(Math.exp(split)), 1));
}

/** x² as `head` with an exact square, and what is left of it; |x| below 32 in f32. */
export interface Squared {
  readonly head: Real;
  readonly rest: Real;
}

/**
 * x in steps of 1/128, of which f32 holds the squares, and (x − step)·(x + step): x² alone would
 * put an exponential off by up to x²·2⁻²⁴.
 */
export function squared(x: Real): Squared {
  const head = x
    .mul(128)
    .to('round')
    .mul(1 / 128);
  return { head: head.square(), rest: x.sub(head).mul(x.add(head)) };
}

/** factor·e^rest, for a small rest. */
export function nudged(factor: Real, rest: Real): Real {
  return rest.to('expm1').fma(factor, factor);
}
