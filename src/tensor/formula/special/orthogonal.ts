// Orthogonal polynomials by their three-term recurrences. An order is a number, or differs between
// elements: then the polynomials of all orders up to a greatest one are computed, and each element
// takes its own.

import type { Real } from './real.ts';

/** A family: that of order 0 is 1. */
export interface PolynomialFamily {
  readonly first: (x: Real) => Real;
  /** The next of x, after those of order n and n − 1. */
  readonly next: (x: Real, n: number, last: Real, before: Real) => Real;
}

const chebyshev = (first: (x: Real) => Real): PolynomialFamily => ({
  first,
  next: (x, _n, last, before) => x.mul(2).mul(last).sub(before),
});

type FamilyName = `chebyshev${'T' | 'U' | 'V' | 'W'}` | 'hermiteH' | 'hermiteHe' | 'laguerreL' | 'legendreP';

export const families: Readonly<Record<FamilyName, PolynomialFamily>> = {
  chebyshevT: chebyshev((x) => x),
  chebyshevU: chebyshev((x) => x.mul(2)),
  chebyshevV: chebyshev((x) => x.mul(2).sub(1)),
  chebyshevW: chebyshev((x) => x.mul(2).add(1)),
  hermiteH: {
    first: (x) => x.mul(2),
    next: (x, n, last, before) =>
      x
        .mul(2)
        .mul(last)
        .sub(before.mul(2 * n)),
  },
  hermiteHe: {
    first: (x) => x,
    next: (x, n, last, before) => x.mul(last).sub(before.mul(n)),
  },
  laguerreL: {
    first: (x) => x.from(1),
    next: (x, n, last, before) =>
      x
        .from(2 * n + 1)
        .mul(last)
        .sub(before.mul(n))
        .div(n + 1),
  },
  legendreP: {
    first: (x) => x,
    next: (x, n, last, before) =>
      x
        .mul(2 * n + 1)
        .mul(last)
        .sub(before.mul(n))
        .div(n + 1),
  },
};

/** The polynomials of orders 0 to `most`. */
function upTo(family: PolynomialFamily, x: Real, most: number): readonly Real[] {
  const all = [x.like(1), family.first(x)];
  for (let n = 1; n < most; n++) all.push(family.next(x, n, all[n]!, all[n - 1]!));
  return all.slice(0, most + 1);
}

/** That of one order; 0 below order 0. */
export function ofOrder(family: PolynomialFamily, x: Real, order: number): Real {
  return order < 0 ? x.like(0) : upTo(family, x, order).at(-1)!;
}

/** That of each element's order, fractions cut off; 0 below order 0, NaN above `most`. */
export function ofOrders(family: PolynomialFamily, x: Real, orders: Real, most: number): Real {
  const whole = orders.to('trunc');
  const none = whole.lt(0).choose(x.like(0), NaN);
  return upTo(family, x, most).reduce<Real>((value, one, n) => whole.eq(n).choose(one, value), none);
}
