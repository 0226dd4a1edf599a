// Logarithms and powers. x = 2^k·m with √½ ≤ m < √2; the logarithm of m is a polynomial in m − 1
// (coefficients of Cephes, which are public). Denormal arguments count as what they are.

import type { Value } from '../../../loop/loop.ts';
import { expm1Core, magic } from './exp.ts';
import type { Terms } from './terms.ts';

const smallestNormal = 2 ** -126;

/** ln 2 in two parts, of which the first times k is exact. */
const ln2High = 0.693359375;
const ln2Low = -2.1219444e-4;
/** (log(1 + f) − f + f²/2) / f³. */
const logTail = [
  0.33333331174, -0.24999993993, 0.20000714765, -0.16668057665, 0.14249322787, -0.12420140846, 0.1167699874,
  -0.1151461031, 0.070376836292,
];

interface Split {
  /** k, a whole number. */
  readonly power: Value;
  readonly mantissa: Value;
}

/** Splits a positive finite number into power and mantissa. */
function split(m: Terms, x: Value, mayBeDenormal: boolean): Split {
  const isSmall = m.lt(x, smallestNormal);
  const scaled = mayBeDenormal ? m.where(isSmall, m.mul(x, 2 ** 23), x) : x;
  const bits = m.bits(scaled);
  const power = m.shr(m.sub(bits, 0x3f3504f3), 23);
  const mantissa = m.real(m.sub(bits, m.shl(power, 23)));
  const k = m.toReal(power);
  return { power: mayBeDenormal ? m.sub(k, m.where(isSmall, 23, 0)) : k, mantissa };
}

/** f³·P(f) − f²/2 + `more`: with f added, log(1 + f). */
function beyondFirst(m: Terms, f: Value, more: (tail: Value) => Value): Value {
  const z = m.mul(f, f);
  return m.sub(more(m.mul(m.mul(f, z), m.polynomial(f, logTail))), m.mul(z, 0.5));
}

/**
 * The logarithm y of x where x is positive and finite; −∞ at 0, NaN below, ∞ and NaN as they are.
 */
export function withEdges(m: Terms, x: Value, y: Value): Value {
  const bounded = m.where(m.lt(x, Infinity), y, x);
  return m.where(m.eq(x, 0), -Infinity, m.where(m.lt(x, 0), NaN, bounded));
}

function natural(m: Terms, k: Value, f: Value): Value {
  const y = beyondFirst(m, f, (tail) => m.add(tail, m.mul(k, ln2Low)));
  return m.add(m.add(f, y), m.mul(k, ln2High));
}

export function log(m: Terms, x: Value): Value {
  const { power, mantissa } = split(m, x, true);
  return withEdges(m, x, natural(m, power, m.sub(mantissa, 1)));
}

export function log2(m: Terms, x: Value): Value {
  const { power, mantissa } = split(m, x, true);
  const fraction = m.sub(mantissa, 1);
  const y = m.add(
    fraction,
    beyondFirst(m, fraction, (tail) => tail),
  );
  return withEdges(m, x, m.add(m.mul(y, Math.LOG2E), power));
}

/** Near 0 the polynomial takes x itself, before 1 + x rounds it. */
export function log1p(m: Terms, x: Value): Value {
  const u = m.add(x, 1);
  const isNear = m.lt(m.abs(x), 0.28);
  const { power, mantissa } = split(m, u, false);
  const y = natural(m, m.where(isNear, 0, power), m.where(isNear, x, m.sub(mantissa, 1)));
  return m.withSign(withEdges(m, u, y), x);
}

/** (log(1 + f) − f + f²/2) / f³, for powers: −0.125 ≤ f ≤ 0.14. */
const powTail = [0.333333343, -0.249999732, 0.199981719, -0.166737959, 0.145705462, -0.122532092];
/**
 * Multiples of m that are nearer to 1, and the logarithms to base 2 of what they are divided by
 * then, in two parts.
 */
const below = { factor: 1.25, high: -0.3218994140625, low: -2.868082486234787e-5 };
const above = { factor: 0.78125, high: 0.3560791015625, low: 6.470866277530426e-5 };

interface Pair {
  readonly high: Value;
  readonly low: Value;
}

/** a + b and what rounding loses, where a is 0 or the greater. */
function sumOf(m: Terms, a: Value, b: Value): Pair {
  const high = m.add(a, b);
  return { high, low: m.sub(b, m.sub(high, a)) };
}

/**
 * log₂ of a positive number with twice f32's digits: products of the halves of 12 bits are exact.
 */
function log2Pair(m: Terms, size: Value): Pair {
  const { power: k, mantissa } = split(m, size, true);
  const isBelow = m.lt(mantissa, 0.875);
  const isAbove = m.lt(1.14, mantissa);
  const either = (field: keyof typeof below, otherwise: number): Value =>
    m.where(isBelow, below[field], m.where(isAbove, above[field], otherwise));
  const factor = either('factor', 1);
  const coarse = m.high(mantissa);
  const fine = m.mul(m.sub(mantissa, coarse), factor);
  const { high: f, low: beyond } = sumOf(m, m.sub(m.mul(coarse, factor), 1), fine);
  const fh = m.high(f);
  const square = m.mul(m.mul(fh, 0.5), fh);
  const logHigh = m.sub(f, square);
  const lost = m.sub(m.sub(f, logHigh), square);
  const cross = m.mul(m.mul(m.add(f, fh), 0.5), m.sub(f, fh));
  const cubic = m.mul(m.mul(m.mul(f, f), f), m.polynomial(f, powTail));
  const logLow = m.add(m.add(m.sub(lost, cross), m.sub(beyond, m.mul(beyond, f))), cubic);
  // log₂ e in two parts.
  const head = m.high(logHigh);
  const tail = m.add(
    m.add(m.mul(head, 0.00031222839606925845), m.mul(m.sub(logHigh, head), Math.LOG2E)),
    m.mul(logLow, Math.LOG2E),
  );
  const whole = sumOf(m, m.add(k, either('high', 0)), m.mul(head, 1.4423828125));
  return sumOf(m, whole.high, m.add(whole.low, m.add(tail, either('low', 0))));
}

/** x·2^n for −252 ≤ n ≤ 254, in two factors that are normal numbers. */
export function scale(m: Terms, x: Value, n: Value): Value {
  const clamped = m.min(m.max(n, -126), 127);
  const factor = (power: Value): Value => m.real(m.shl(m.add(power, 127), 23));
  return m.mul(m.mul(x, factor(clamped)), factor(m.sub(n, clamped)));
}

/**
 * C's pow: 2^(y·log₂|x|), then the sign and the special cases. Where x^y is a f32, as for small
 * whole numbers, it is exact.
 */
export function pow(m: Terms, x: Value, y: Value): Value {
  if (y.kind === 'constant' && y.value === 2) return m.mul(x, x);
  if (y.kind === 'constant' && y.value === 3) return m.mul(m.mul(x, x), x);
  const size = m.abs(x);
  const { high, low } = log2Pair(m, size);
  const lh = m.high(high);
  const yh = m.high(y);
  const exact = m.mul(yh, lh);
  const inexact = m.add(m.add(m.mul(yh, m.sub(high, lh)), m.mul(m.sub(y, yh), high)), m.mul(y, low));
  const shifted = m.add(m.pmin(m.pmax(m.add(exact, inexact), -151), 129), magic);
  const n = m.sub(shifted, magic);
  const rest = m.mul(m.add(m.sub(exact, n), inexact), Math.LN2);
  // The bits of NaN are anything.
  const whole = m.min(m.max(m.sub(m.bits(shifted), 0x4b400000), -151), 129);
  const middle = scale(m, m.add(expm1Core(m, rest), 1), whole);

  return powerWithEdges(m, { x, y, size, log2: high, middle, largest: 128.5, smallest: -150.5 });
}

interface Power {
  readonly x: Value;
  readonly y: Value;
  /** |x|. */
  readonly size: Value;
  /** Its logarithm to base 2, where it is positive and finite. */
  readonly log2: Value;
  /** |x|^y, where it is neither infinite nor 0. */
  readonly middle: Value;
  /** Exponents above and below which it is. */
  readonly largest: number;
  readonly smallest: number;
}

/** x^y with its sign, infinities, zeros and NaN. */
export function powerWithEdges(m: Terms, { x, y, size, log2: high, middle, ...bounds }: Power): Value {
  const isOne = m.or(m.eq(y, 0), m.eq(size, 1));
  const isFinite = m.lt(size, Infinity);
  const log2Size = m.where(m.eq(size, 0), -Infinity, m.where(isFinite, high, Infinity));
  const power = m.where(isOne, 0, m.mul(y, log2Size));
  const above = m.where(m.lt(bounds.largest, power), Infinity, middle);
  const inside = m.where(isOne, 1, m.where(m.lt(power, bounds.smallest), 0, above));
  const isWhole = m.eq(y, m.floor(y));
  const half = m.mul(y, 0.5);
  const isOdd = m.and(isWhole, m.ne(half, m.floor(half)));
  const isNegative = m.lt(m.bits(x), 0);
  const signed = m.where(m.and(isNegative, isOdd), m.neg(inside), inside);
  const isRoot = m.and(m.not(isWhole), m.and(m.lt(x, 0), isFinite));
  const isUndefined = m.or(m.or(m.isNan(x), m.isNan(y)), isRoot);
  const isDefined = m.or(m.eq(y, 0), m.eq(x, 1));
  return m.where(m.and(isUndefined, m.not(isDefined)), NaN, signed);
}
