// Sines of multiples of π.

import type { Real } from './real.ts';

/**
 * π times the distance of x to the nearest whole number: sines and cosines of it keep the digits
 * that those of π·x lose.
 */
export function angleOf(x: Real): Real {
  return x.sub(x.to('round')).mul(Math.PI);
}

/** sin(πx): the sine of the distance, with the sign of the whole number. */
export function sinPi(x: Real): Real {
  const half = x.to('round').mul(0.5);
  const sine = angleOf(x).to('sin');
  return half.isWhole().choose(sine, sine.neg());
}

/** cos(πx). */
export function cosPi(x: Real): Real {
  const half = x.to('round').mul(0.5);
  const cosine = angleOf(x).to('cos');
  return half.isWhole().choose(cosine, cosine.neg());
}

/**
 * The cotangent of πx: from a quarter of a turn on by the distance to the half, where it is 0 and
 * has all its digits.
 */
export function cotPi(x: Real): Real {
  const turn = x.sub(x.to('round'));
  const size = turn.abs();
  const isFar = size.gt(0.25);
  const angle = isFar.choose(size.from(0.5), size).mul(Math.PI);
  const [sine, cosine] = [angle.to('sin'), angle.to('cos')];
  const value = isFar.choose(sine, cosine).div(isFar.choose(cosine, sine));
  return turn.lt(0).choose(value.neg(), value);
}
