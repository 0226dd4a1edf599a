// Derivatives of ψ: n!·ζ(n + 1, x) up to the sign, by Euler and Maclaurin's summation; for negative
// x by the derivatives of the cotangent.

import { bernoulli } from './zeta.ts';
import { cotPi } from './angle.ts';
import { differentiable, polynomial, type Real, type RealFormula, factorial } from './real.ts';

const made = new Map<number, RealFormula>();

/** The derivative of order n ≥ 1 of ψ. */
export function polygamma(n: number): RealFormula {
  const known = made.get(n);
  if (known !== undefined) return known;
  const formula = differentiable(
    (x) => valueOf(n, x),
    (x) => polygamma(n + 1)(x),
  );
  made.set(n, formula);
  return formula;
}

function valueOf(n: number, x: Real): Real {
  const sign = n % 2 === 0 ? -1 : 1;
  const isReflected = x.lt(0);
  const value = hurwitz(n + 1, isReflected.choose(x.from(1), x)).mul(sign * factorial(n));
  // (−1)ⁿ·ψₙ(1 − x) − ψₙ(x) is π times the derivative of order n of the cotangent of πx.
  const slope = polynomial(cotangentDerivative(n), cotPi(x));
  const mirrored = value.mul(-sign).sub(slope.mul(Math.PI ** (n + 1)));
  const isPole = x.le(0).and(x.isWhole());
  return isPole.choose(sign * Infinity, isReflected.choose(mirrored, value));
}

/** The derivative of order n of the cotangent, as a polynomial of it: highest power first. */
function cotangentDerivative(n: number): readonly number[] {
  let powers = [0, 1];
  for (let order = 0; order < n; order++) {
    const next = new Array<number>(powers.length + 1).fill(0);
    powers.forEach((c, k) => {
      if (k === 0) return;
      next[k - 1]! -= k * c;
      next[k + 1]! -= k * c;
    });
    powers = next;
  }
  return powers.toReversed();
}

/** y^−s for a whole s: products lose less than a logarithm where they are few. */
function inversePower(y: Real, s: number): Real {
  return s > 8 ? y.pow(-s) : wholePower(y, s).recip();
}

function wholePower(y: Real, s: number): Real {
  if (s === 1) return y;
  const half = wholePower(y, Math.floor(s / 2));
  return s % 2 === 0 ? half.square() : half.square().mul(y);
}

/** Σ (y + k)^−s over k ≥ 0, for y > 0. */
function hurwitz(s: number, y: Real): Real {
  const count = s + (y.isDouble ? 9 : 4);
  const terms = y.isDouble ? 8 : 4;
  const isNear = y.lt(count);
  const w = isNear.choose(y.add(count), y);
  const r = w.recip();
  const z = r.square();
  // s·(s + 1)·…·(s + 2j − 2)·B₂ⱼ/(2j)!, highest power first.
  const coefficients: number[] = [];
  for (let [j, rising] = [1, s]; j <= terms; j++) {
    coefficients.unshift(rising * bernoulli[j - 1]!);
    rising *= (s + 2 * j - 1) * (s + 2 * j);
  }
  const tail = polynomial(coefficients, z).mul(r).add(0.5);
  const far = inversePower(w, s - 1).mul(tail.mul(r).add(1 / (s - 1)));
  let sum = y.like(0);
  for (let k = count - 1; k >= 0; k--) sum = sum.add(inversePower(k === 0 ? y : y.add(k), s));
  return isNear.choose(sum.add(far), far);
}
