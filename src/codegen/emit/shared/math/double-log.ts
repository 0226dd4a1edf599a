// Logarithms and powers of doubles, by the algorithms and with the coefficients of fdlibm, which
// are public. x = 2^k·m; the logarithm of m = 1 + f is that of (1 + s) / (1 − s) with s = f / (2 +
// f).

import type { Value } from '../../../loop/loop.ts';
import { expm1Core, ln2High, ln2Low, magic, magicBits, scale, wholeOf } from './double-exp.ts';
import { powerWithEdges, withEdges } from './log.ts';
import type { Terms } from './terms.ts';

const smallestNormal = 2 ** -1022;

/** (log((1 + s) / (1 − s)) − 2s) / s³. */
const logTail = [
  0.6666666666666735, 0.3999999999940942, 0.2857142874366239, 0.22222198432149784, 0.1818357216161805,
  0.15313837699209373, 0.14798198605116586,
];

/** √½ and √¾ by their bits. */
const rootHalf = 0x3fe6a09e667f3bcdn;
const rootThreeQuarters = 0x3febb67ae8584caan;

interface Split {
  /** k, a whole number. */
  readonly power: Value;
  readonly mantissa: Value;
}

/**
 * Splits a positive finite number into power and mantissa: the mantissa is at least the number with
 * the bits `minMantissaBits`, and below its double.
 */
function split(m: Terms, x: Value, minMantissaBits: bigint, mayBeDenormal: boolean): Split {
  const isSmall = m.lt(x, smallestNormal);
  const bits = m.bits(mayBeDenormal ? m.where(isSmall, m.mul(x, 2 ** 54), x) : x);
  const power = m.shr(m.sub(bits, minMantissaBits), 52);
  const mantissa = m.real(m.sub(bits, m.shl(power, 52)));
  const k = m.sub(m.real(m.add(power, magicBits)), magic);
  return { power: mayBeDenormal ? m.sub(k, m.where(isSmall, 54, 0)) : k, mantissa };
}

interface Logarithm {
  readonly f: Value;
  /** f² / 2. */
  readonly square: Value;
  /** log(1 + f) − f + f² / 2. */
  readonly rest: Value;
}

function logarithm(m: Terms, f: Value): Logarithm {
  const square = m.mul(m.mul(f, 0.5), f);
  const s = m.div(f, m.add(f, 2));
  const z = m.mul(s, s);
  const tail = m.mul(z, m.polynomial(z, logTail));
  return { f, square, rest: m.mul(s, m.add(square, tail)) };
}

/** k·ln 2 + log(1 + f) + c. */
function natural(m: Terms, k: Value, { f, square, rest }: Logarithm, c?: Value): Value {
  const low = m.mul(k, ln2Low);
  const small = m.add(rest, c === undefined ? low : m.add(low, c));
  return m.sub(m.mul(k, ln2High), m.sub(m.sub(square, small), f));
}

export function log(m: Terms, x: Value): Value {
  const { power, mantissa } = split(m, x, rootHalf, true);
  return withEdges(m, x, natural(m, power, logarithm(m, m.sub(mantissa, 1))));
}

/** What 1 + x loses is known exactly, and counts as it is. */
export function log1p(m: Terms, x: Value): Value {
  const u = m.add(x, 1);
  const shown = m.sub(u, 1);
  const lost = m.add(m.sub(1, m.sub(u, shown)), m.sub(x, shown));
  const { power, mantissa } = split(m, u, rootHalf, false);
  const y = natural(m, power, logarithm(m, m.sub(mantissa, 1)), m.div(lost, u));
  return m.withSign(withEdges(m, u, y), x);
}

/** log₂ e in two parts. */
const log2eHigh = 1.4426950407214463;
const log2eLow = 1.6751713164886512e-10;

export function log2(m: Terms, x: Value): Value {
  const { power, mantissa } = split(m, x, rootHalf, true);
  const { f, square, rest } = logarithm(m, m.sub(mantissa, 1));
  const high = m.high(m.sub(f, square));
  const low = m.add(m.sub(m.sub(f, high), square), rest);
  const whole = m.mul(high, log2eHigh);
  const part = m.add(m.mul(m.add(low, high), log2eLow), m.mul(low, log2eHigh));
  const sum = m.add(power, whole);
  return withEdges(m, x, m.add(m.add(part, m.add(m.sub(power, sum), whole)), sum));
}

/** (3/2)·(log((1 + s) / (1 − s)) − 2s − 2s³/3) / s⁵. */
const powTail = [
  0.5999999999999946, 0.4285714285785502, 0.33333332981837743, 0.272728123808534, 0.23066074577556175,
  0.20697501780033842,
];
/** 2 / (3·ln 2), in parts, and log₂ 1.5. */
const factor = { whole: 0.9617966939259756, high: 0.9617967009544373, low: -7.028461650952758e-9 };
const log2ThreeHalves = { high: 0.5849624872207642, low: 1.350039202129749e-8 };

interface Pair {
  readonly high: Value;
  readonly low: Value;
}

/** log₂ of a positive number with 12 more bits than a double has; the high part has 26 bits. */
function log2Pair(m: Terms, size: Value): Pair {
  const { power, mantissa } = split(m, size, rootThreeQuarters, true);
  const isAbove = m.lt(Math.sqrt(1.5), mantissa);
  const base = m.where(isAbove, 1.5, 1);
  const [over, under] = [m.sub(mantissa, base), m.add(mantissa, base)];
  const inverse = m.div(1, under);
  const s = m.mul(over, inverse);
  const sHigh = m.high(s);
  const underHigh = m.high(under);
  const underLow = m.sub(mantissa, m.sub(underHigh, base));
  const sLow = m.mul(inverse, m.sub(m.sub(over, m.mul(sHigh, underHigh)), m.mul(sHigh, underLow)));
  // log₂ of the quotient is 2s·(3 + s² + …) / (3·ln 2).
  const s2 = m.mul(s, s);
  const high2 = m.mul(sHigh, sHigh);
  const r = m.add(m.mul(m.mul(s2, s2), m.polynomial(s2, powTail)), m.mul(sLow, m.add(sHigh, s)));
  const tHigh = m.high(m.add(m.add(high2, 3), r));
  const tLow = m.sub(r, m.sub(m.sub(tHigh, 3), high2));
  const u = m.mul(sHigh, tHigh);
  const v = m.add(m.mul(sLow, tHigh), m.mul(tLow, s));
  const pHigh = m.high(m.add(u, v));
  const pLow = m.sub(v, m.sub(pHigh, u));
  const zHigh = m.mul(pHigh, factor.high);
  const zLow = m.add(
    m.add(m.mul(pHigh, factor.low), m.mul(pLow, factor.whole)),
    m.where(isAbove, log2ThreeHalves.low, 0),
  );
  const shift = m.where(isAbove, log2ThreeHalves.high, 0);
  const high = m.high(m.add(m.add(m.add(zHigh, zLow), shift), power));
  return { high, low: m.sub(zLow, m.sub(m.sub(m.sub(high, power), shift), zHigh)) };
}

/** C's pow: 2^(y·log₂|x|), then the sign and the special cases. */
export function pow(m: Terms, x: Value, y: Value): Value {
  if (y.kind === 'constant' && y.value === 2) return m.mul(x, x);
  if (y.kind === 'constant' && y.value === 3) return m.mul(m.mul(x, x), x);
  const size = m.abs(x);
  const { high, low } = log2Pair(m, size);
  const yHigh = m.high(y);
  const exact = m.mul(yHigh, high);
  const inexact = m.add(m.mul(m.sub(y, yHigh), high), m.mul(y, low));
  const shifted = m.add(m.pmin(m.pmax(m.add(exact, inexact), -1080), 1030), magic);
  const n = m.sub(shifted, magic);
  const rest = m.mul(m.add(m.sub(exact, n), inexact), Math.LN2);
  const middle = scale(m, m.add(expm1Core(m, rest), 1), wholeOf(m, shifted));
  return powerWithEdges(m, { x, y, size, log2: high, middle, largest: 1024.5, smallest: -1075.5 });
}
