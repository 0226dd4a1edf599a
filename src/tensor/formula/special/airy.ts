// Airy's function: polynomials between −3 and 2; beyond, an exponential and a wave in ζ = ⅔·x^(3/2),
// which has to be known to more digits than a float has.

import * as fits from './fits/airy.ts';
import { decay, nudged } from './exponential.ts';
import { fitted, type Real, type RealFormula } from './real.ts';

interface Phase {
  /** The part of ζ that is exact, up to x = 500 in f32. */
  readonly head: Real;
  readonly rest: Real;
  /** All of ζ. */
  readonly whole: Real;
}

/**
 * ⅔·x·√x: x as a multiple of 3/64 and a rest, √x as one of 1/64 and a rest, which x less the square
 * of that multiple tells.
 */
function phase(x: Real): Phase {
  const root = x.to('sqrt');
  const third = x
    .mul(64 / 3)
    .to('round')
    .mul(1 / 64);
  const step = root
    .mul(64)
    .to('round')
    .mul(1 / 64);
  const rootRest = x.sub(step.square()).div(root.add(step));
  const head = third.mul(2).mul(step);
  const rest = third
    .mul(2)
    .mul(rootRest)
    .add(
      x
        .sub(third.mul(3))
        .mul(root)
        .mul(2 / 3),
    );
  return { head, rest, whole: x.mul(root).mul(2 / 3) };
}

/** x^−¼. */
function fourthRoot(x: Real): Real {
  return x.to('sqrt').to('rsqrt');
}

/** Ai(x) for x ≥ 2. */
function decaying(x: Real): Real {
  const { head, rest, whole } = phase(x);
  const factor = fitted(fits.airyFar, whole.recip()).mul(fourthRoot(x));
  return decay(head, nudged(factor, rest.neg()));
}

/** Ai(−x) for x ≥ 3. */
function waving(x: Real): Real {
  const { head, rest, whole } = phase(x);
  const inverse = whole.recip();
  const z = inverse.square();
  const angle = rest.add(Math.PI / 4);
  const [sineHead, cosineHead] = [head.to('sin'), head.to('cos')];
  const [sineRest, cosineRest] = [angle.to('sin'), angle.to('cos')];
  const sine = sineHead.mul(cosineRest).add(cosineHead.mul(sineRest));
  const cosine = cosineHead.mul(cosineRest).sub(sineHead.mul(sineRest));
  const even = fitted(fits.airyEven, z);
  const odd = fitted(fits.airyOdd, z).mul(inverse);
  return fourthRoot(x).mul(sine.mul(even).add(cosine.mul(odd)));
}

/** Ai(x); NaN at ±∞, as PyTorch. */
export const airyAi: RealFormula = (x) => {
  // From 120 on it is 0 in either dtype. A maximum would halve the derivative where x is 2.
  const far = decaying(x.lt(2).choose(2, x).min(120));
  const wave = waving(x.neg().max(3));
  const middle = x.lt(1).choose(fitted(fits.airyNear, x), fitted(fits.airyMiddle, x));
  const inside = x.lt(-1).choose(fitted(fits.airyWave, x), middle);
  const right = x.lt(2).choose(inside, far);
  const value = x.lt(-3).choose(wave, right);
  return x.abs().eq(Infinity).choose(NaN, value);
};
