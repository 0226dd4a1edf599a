// Logarithms of densities whose parameters are large. Differences of log Γ have no digits left there: at
// 20,000 a float of 32 bits leaves an error of 0.01. By Stirling's formula the large terms cancel before
// they are computed (Loader, "Fast and accurate computation of binomial probabilities", 2000).

import { stirling } from '../../formula/special/fits/gamma.ts';
import { fitted } from '../../formula/special/real.ts';
import type { Tensor } from '../../tensor.ts';
import { add, div, mul, sub } from '../elementwise/arithmetic.ts';
import { le, logicalAnd, lt, where } from '../elementwise/compare.ts';
import { abs, log, log1p, neg } from '../elementwise/elementwise.ts';
import { of } from '../special/functions.ts';

/** From here on Stirling's series is used. */
const LARGE = 8;

/** What Stirling's formula leaves of log Γ(x): log Γ(x) − (x − ½)·log x + x − ½·log 2π, for x ≥ 8. */
const rest = /* @__PURE__ */ of('lgamma', (x) => {
  const inverse = x.recip();
  return inverse.mul(fitted(stirling, inverse.square()));
});

/** Where Stirling's formula holds. @internal */
export function isLarge(x: Tensor): Tensor {
  return le(LARGE, x);
}

/**
 * Where Stirling's formula holds and y is near n, so that large terms cancel. Farther away the result is as
 * large as they are. @internal
 */
export function isNear(n: Tensor, y: Tensor): Tensor {
  return logicalAnd(isLarge(n), lt(abs(sub(y, n)), mul(n, 0.5)));
}

/** The parts where a formula of them counts, else numbers at which it is smooth. @internal */
export function kept(counts: Tensor, ...parts: readonly Tensor[]): Tensor[] {
  return parts.map((part) => where(counts, part, LARGE));
}

/** log Γ(x + ½) − log Γ(x) − ½·log x, for x ≥ 8. @internal */
export function halfStep(x: Tensor): Tensor {
  const grown = sub(mul(x, log1p(div(0.5, x))), 0.5);
  return add(grown, sub(rest(add(x, 0.5)), rest(x)));
}

/** y/n − 1 less its logarithm, times n: how improbable a share is that differs by this much. */
function excess(n: Tensor, y: Tensor): Tensor {
  const u = div(sub(y, n), n);
  return mul(n, sub(u, log1p(u)));
}

/** log of yⁿ·e^−y/Γ(n + 1), for n ≥ 8. @internal */
export function logPoisson(n: Tensor, y: Tensor): Tensor {
  return neg(add(excess(n, y), add(mul(log(mul(n, 2 * Math.PI)), 0.5), rest(n))));
}

/**
 * log of xᵖ·(1 − x)^q·Γ(p + q + 1)/Γ(p + 1)/Γ(q + 1), for p, q ≥ 8; y and z are (p + q)·x and
 * (p + q)·(1 − x). @internal
 */
export function logBinomial(p: Tensor, q: Tensor, y: Tensor, z: Tensor): Tensor {
  const m = add(p, q);
  const off = add(excess(p, y), excess(q, z));
  const width = mul(log(mul(mul(div(p, m), q), 2 * Math.PI)), 0.5);
  return sub(sub(rest(m), add(rest(p), rest(q))), add(off, width));
}
