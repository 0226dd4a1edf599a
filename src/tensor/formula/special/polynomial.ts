// Polynomials that stand for a function on an interval.

import type { Real } from './real.ts';

/** A polynomial in the distance from `center`, highest power first, with the terms that a dtype needs. */
export interface Fit {
  readonly center: number;
  readonly f32: readonly number[];
  readonly f64: readonly number[];
}

/** The fit at u. */
export function fitted(fit: Fit, u: Real): Real {
  return fittedFrom(fit, fit.center === 0 ? u : u.sub(fit.center));
}

/** The fit at a distance from its centre. */
export function fittedFrom(fit: Fit, distance: Real): Real {
  return polynomial(distance.isDouble ? fit.f64 : fit.f32, distance);
}

/** The polynomial with these coefficients, highest power first, by Horner's rule. */
export function polynomial(coefficients: readonly number[], x: Real): Real {
  const [first = 0, ...rest] = coefficients;
  return rest.reduce<Real>((sum, c) => sum.fma(x, c), x.like(first));
}
