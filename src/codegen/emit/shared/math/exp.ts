// The exponential and its relatives in operations that WebAssembly has. x = n·ln 2 + r, |r| ≤ ln 2
// / 2: n comes from adding 1.5·2²³, which leaves it in the low bits, and with it the bias of
// exponents, so that shifting the sum's bits left by 23 gives the power of two, without a
// conversion. No path makes denormal numbers, which cost an engine five times as much: what is
// below 2^−125.5 is 0. Largest errors, in units in the last place, over all f32: see
// test/codegen/emit/wasm-math.test.ts.

import type { Value } from '../../../loop/loop.ts';
import type { Terms } from './terms.ts';

/**
 * 1.5·2²³: a float near it has integers in its low bits, and zeros in the lowest nine of its own.
 */
export const magic = 12582912;
/** And in its low bits that of the exponent of ½: n more, and they are that of 2^(n − 1). */
const biased: number = magic + 126;
/** ln 2 in two parts: the first has so few bits that n times it is exact. */
const ln2High = 0.693145751953125;
const ln2Low = 1.4286068203094173e-6;
/** e^r ≈ 1 + r·(1 + r·(…)): minimax on |r| ≤ ln 2 / 2, relative error 3e-9. */
const expTail = [
  1, 0.4999999403953552, 0.1666652113199234, 0.04166838899254799, 0.00836874544620514, 0.0013814539415761828,
];
/** 2^r on |r| ≤ ½, relative error 9e-8. */
const exp2Tail = [
  1, 0.6931470036506653, 0.24022242426872253, 0.05550733581185341, 0.009671512991189957, 0.001326472731307149,
];
const double = (coefficients: readonly number[]): readonly number[] => coefficients.map((c) => 2 * c);

/** 2^(n − 1), where the low bits of `shifted` hold n + 126; 0 for n = −126. */
function halfPower(m: Terms, shifted: Value): Value {
  return m.real(m.shl(m.bits(shifted), 23));
}

interface Reduced {
  /** n + 1.5·2²³ + 126. */
  readonly shifted: Value;
  readonly rest: Value;
}

function reduce(m: Terms, x: Value): Reduced {
  const shifted = m.add(m.mul(x, Math.LOG2E), biased);
  const n = m.sub(shifted, biased);
  return { shifted, rest: m.sub(m.sub(x, m.mul(n, ln2High)), m.mul(n, ln2Low)) };
}

/** e^x as 2e^r · 2^(n − 1): n = 128 is in range, n = −126 gives 0. NaN passes both bounds. */
export function exp(m: Terms, x: Value): Value {
  const { shifted, rest } = reduce(m, m.pmin(m.pmax(x, -87.5), 89));
  return m.mul(m.polynomial(rest, double([1, ...expTail])), halfPower(m, shifted));
}

export function exp2(m: Terms, x: Value): Value {
  const bounded = m.pmin(m.pmax(x, -126), 128.4);
  const shifted = m.add(bounded, biased);
  const rest = m.sub(bounded, m.sub(shifted, biased));
  return m.mul(m.polynomial(rest, double(exp2Tail)), halfPower(m, shifted));
}

/** e^r − 1 for |r| ≤ ln 2 / 2. */
export function expm1Core(m: Terms, rest: Value): Value {
  return m.mul(rest, m.polynomial(rest, expTail));
}

/** 2·(2^(n−1)·(e^r − 1) + (2^(n−1) − ½)): halved on the way, so that 2^128 does not overflow. */
function expm1Wide(m: Terms, x: Value): Value {
  const { shifted, rest } = reduce(m, m.pmin(m.pmax(x, -20), 89));
  const half = halfPower(m, shifted);
  return m.mul(m.add(m.mul(half, expm1Core(m, rest)), m.sub(half, 0.5)), 2);
}

export function expm1(m: Terms, x: Value): Value {
  return m.withSign(expm1Wide(m, x), x);
}

/**
 * With d = e^{|x|/2} − 1 and w = d + 1: (w² − w⁻²)/2 = d(d + 2)(1 + w⁻²)/2, which neither cancels
 * nor overflows early.
 */
export function sinh(m: Terms, x: Value): Value {
  const d = expm1Wide(m, m.mul(m.abs(x), 0.5));
  const w = m.add(d, 1);
  const outer = m.mul(m.mul(d, 0.5), m.add(d, 2));
  return m.withSign(m.mul(outer, m.add(m.div(1, m.mul(w, w)), 1)), x);
}

export function cosh(m: Terms, x: Value): Value {
  const w = exp(m, m.mul(m.abs(x), 0.5));
  return m.add(m.mul(m.mul(w, 0.5), w), m.div(0.5, m.mul(w, w)));
}

const tanhOver = [
  4.89352455891786e-3, 6.37261928875436e-4, 1.48572235717979e-5, 5.12229709037114e-8, -8.60467152213735e-11,
  2.00018790482477e-13, -2.76076847742355e-16,
];
const tanhUnder = [4.89352518554385e-3, 2.268434632439e-3, 1.18534705686654e-4, 1.19825839466702e-6];

/** x·P(x²)/Q(x²): half as much work as by way of e^x, at 7e-7. */
export function tanh(m: Terms, x: Value): Value {
  const bounded = m.pmin(m.pmax(x, -7.905311), 7.905311);
  const z = m.mul(bounded, bounded);
  // Powers of two larger, or the product would lose the last digits of the smallest x.
  const scaled = (coefficients: readonly number[]): Value =>
    m.polynomial(
      z,
      coefficients.map((c) => c * 256),
    );
  return m.div(m.mul(bounded, scaled(tanhOver)), scaled(tanhUnder));
}

/** erf x / x − 1, of x², up to 1.1; 4e-9. */
const erfNear = [
  0.1283791627141335, -0.37612603367082936, 0.11283318341093308, -0.02684235740624299, 0.005166295560840403,
  -0.0007816160751115231, 7.21622000939602e-5,
];
/**
 * The eighth root of 1 − erf x, of x − 2.5, from there to 3.92, where it no longer counts; 4e-9.
 */
const erfFar = [
  0.37687115990947323, -0.2521588725987955, 0.039892002692750325, 0.010425696013749429,
  -0.0037382696596401075, -9.872916053236406e-5, 0.00017239068798450893, -1.3488004576125107e-5,
  -3.7689128703447516e-6, 5.692914776861851e-7,
];

/** By the part that is small: x plus a little, or 1 less a little, whose errors hardly show. */
export function erf(m: Terms, x: Value): Value {
  const size = m.pmin(m.abs(x), 3.92);
  const near = m.add(size, m.mul(size, m.polynomial(m.mul(size, size), erfNear)));
  const root = m.polynomial(m.sub(size, 2.5), erfFar);
  const square = m.mul(root, root);
  const fourth = m.mul(square, square);
  const far = m.sub(1, m.mul(fourth, fourth));
  return m.withSign(m.where(m.lt(size, 1.1), near, far), x);
}
