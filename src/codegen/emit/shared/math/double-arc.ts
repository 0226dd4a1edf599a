// Inverses of the sine, cosine and tangent of doubles, by the algorithms and with the coefficients
// of fdlibm, which are public.

import type { Value } from '../../../loop/loop.ts';
import type { Terms } from './terms.ts';

const halfPi = 1.5707963267948966;
const halfPiLow = 6.123233995736766e-17;
const piLow = 1.2246467991473532e-16;

/** 1 − atan t / t, of t², for t up to 7/16. */
const atanTail = [
  0.3333333333333293, -0.19999999999876483, 0.14285714272503466, -0.11111110405462356, 0.09090887133436507,
  -0.0769187620504483, 0.06661073137387531, -0.058335701337905735, 0.049768779946159324,
  -0.036531572744216916, 0.016285820115365782,
];

/** Angles from which others are measured, in two parts: those of ½, 1, 1½ and ∞. */
const anglesHigh = [0.4636476090008061, 0.7853981633974483, 0.982793723247329, halfPi];
const anglesLow = [2.2698777452961687e-17, 3.061616997868383e-17, 1.3903311031230998e-17, halfPiLow];
const bounds = [7 / 16, 11 / 16, 19 / 16, 39 / 16];

/** atan of x ≥ 0: the angle to the nearest of some, by what their tangents' quotient is. */
function atanCore(m: Terms, x: Value): Value {
  const isBelow = bounds.map((bound) => m.lt(x, bound));
  /** What stands for x, from 0, ½, 1, 1½ or ∞ on. */
  const chosen = (choices: readonly (Value | number)[]): Value =>
    choices
      .slice(0, -1)
      .reduceRight<Value | number>(
        (rest, choice, i) => m.where(isBelow[i]!, choice, rest),
        choices.at(-1)!,
      ) as Value;
  const over = chosen([x, m.sub(m.mul(x, 2), 1), m.sub(x, 1), m.sub(x, 1.5), -1]);
  const under = chosen([1, m.add(x, 2), m.add(x, 1), m.add(m.mul(x, 1.5), 1), x]);
  const t = m.div(over, under);
  const z = m.mul(t, t);
  const bent = m.mul(t, m.mul(z, m.polynomial(z, atanTail)));
  return m.sub(chosen([0, ...anglesHigh]), m.sub(m.sub(bent, chosen([0, ...anglesLow])), t));
}

export function atan(m: Terms, x: Value): Value {
  return m.withSign(atanCore(m, m.abs(x)), x);
}

/** The angle of (x, y), where 0/0 counts as 0 and ∞/∞ as 1. */
export function atan2(m: Terms, y: Value, x: Value): Value {
  const [ax, ay] = [m.abs(x), m.abs(y)];
  const equal = m.where(m.eq(ax, 0), 0, 1);
  const right = atanCore(m, m.where(m.eq(ax, ay), equal, m.div(ay, ax)));
  const left = m.sub(Math.PI, m.sub(right, piLow));
  return m.withSign(m.where(m.lt(m.bits(x), 0), left, right), y);
}

/** (asin √z / √z − 1) / z on 0 ≤ z ≤ ¼, as a quotient. */
const asinOver = [
  0.16666666666666666, -0.3255658186224009, 0.20121253213486293, -0.04005553450067941, 0.0007915349942898145,
  3.479331075960212e-5,
];
const asinUnder = [1, -2.403394911734414, 2.0209457602335057, -0.6882839716054533, 0.07703815055590194];

interface Arc {
  /** Whether |x| > ½, where the angle is measured from that of 1. */
  readonly isOuter: Value;
  /** |x|, or √((1 − |x|) / 2); beyond 1, NaN. */
  readonly t: Value;
  /** What the root lost. */
  readonly lost: Value;
  /** asin t is t + t·bend. */
  readonly bend: Value;
}

function arc(m: Terms, x: Value): Arc {
  const size = m.abs(x);
  const isOuter = m.lt(0.5, size);
  const z = m.where(isOuter, m.mul(m.sub(1, size), 0.5), m.mul(size, size));
  const t = m.where(isOuter, m.sqrt(z), size);
  const bend = m.div(m.mul(z, m.polynomial(z, asinOver)), m.polynomial(z, asinUnder));
  const lost = m.where(isOuter, rootError(m, z, t), 0);
  return { isOuter, t, lost, bend };
}

/** √z less its nearest double: (z − t²) / 2t. */
function rootError(m: Terms, z: Value, t: Value): Value {
  const high = m.high(t);
  const low = m.sub(t, high);
  const square = m.add(
    m.sub(m.sub(z, m.mul(high, high)), m.mul(m.mul(high, low), 2)),
    m.neg(m.mul(low, low)),
  );
  return m.div(square, m.pmax(m.mul(t, 2), 1e-300));
}

export function asin(m: Terms, x: Value): Value {
  const { isOuter, t, lost, bend } = arc(m, x);
  const bent = m.mul(t, bend);
  // π/2 − 2·asin t, from π/4 less t.
  const outer = m.add(m.sub(halfPi, m.mul(t, 2)), m.sub(halfPiLow, m.mul(m.add(bent, lost), 2)));
  return m.withSign(m.where(isOuter, outer, m.add(t, bent)), x);
}

export function acos(m: Terms, x: Value): Value {
  const { isOuter, t, lost, bend } = arc(m, x);
  const bent = m.mul(t, bend);
  const twice = m.mul(m.add(t, m.add(bent, lost)), 2);
  const left = m.sub(Math.PI, m.mul(m.add(t, m.sub(m.add(bent, lost), halfPiLow)), 2));
  const outer = m.where(m.lt(x, 0), left, twice);
  const inner = m.sub(halfPi, m.sub(x, m.sub(halfPiLow, m.withSign(bent, x))));
  return m.where(isOuter, outer, inner);
}
