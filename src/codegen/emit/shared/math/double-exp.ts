// The exponential and its relatives on doubles, in operations that WebAssembly has. As in
// math/exp.ts, 1.5·2⁵² leaves n in the low bits of a sum; here denormal results are what they are.
// Largest errors: see test/codegen/emit/wasm-double.test.ts.

import { erfcMiddle } from '../../../../ir/interpret/erf.ts';
import type { Value } from '../../../loop/loop.ts';
import type { Terms } from './terms.ts';

/** 1.5·2⁵²: a double near it has integers in its low bits, and zeros in the lowest of its own. */
export const magic = 6755399441055744;
export const magicBits = 0x4338000000000000n;

/** ln 2 in two parts: n times the first is exact (fdlibm). */
export const ln2High = 0.6931471803691238;
export const ln2Low = 1.9082149292705877e-10;

/** (e^r − 1 − r) / r² on |r| ≤ ln 2 / 2, minimax, 1.4e-18. */
const expTail = [
  0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333326136, 0.0013888888888883748,
  0.00019841269874820627, 2.4801587325547743e-5, 2.7557255400206422e-6, 2.75572736431103e-7,
  2.5105217004720745e-8, 2.0914686968086876e-9,
];

/**
 * The bits of 2^(n + bias), where the low bits of `shifted` hold n, as a number; n + bias within
 * the range of exponents.
 */
function power(m: Terms, shifted: Value, bias: number): Value {
  return m.real(m.add(m.shl(m.bits(shifted), 52), BigInt(1023 + bias) << 52n));
}

/**
 * x·2^n for a whole n (i64) from −2100 to 2046, rounded once: in two factors, of which the first
 * leaves x exact.
 */
export function scale(m: Terms, x: Value, n: Value): Value {
  const first = m.shr(n, 1);
  const factor = (half: Value): Value => m.real(m.shl(m.add(half, 1023), 52));
  return m.mul(m.mul(x, factor(first)), factor(m.sub(n, first)));
}

/** The whole number in the low bits of x + 1.5·2⁵². */
export function wholeOf(m: Terms, shifted: Value): Value {
  return m.sub(m.bits(shifted), magicBits);
}

interface Reduced {
  /** n + 1.5·2⁵². */
  readonly shifted: Value;
  readonly rest: Value;
}

function reduce(m: Terms, x: Value): Reduced {
  const shifted = m.add(m.mul(x, Math.LOG2E), magic);
  const n = m.sub(shifted, magic);
  return { shifted, rest: m.sub(m.sub(x, m.mul(n, ln2High)), m.mul(n, ln2Low)) };
}

/** e^r − 1 for |r| ≤ ln 2 / 2. */
export function expm1Core(m: Terms, r: Value): Value {
  return m.add(r, m.mul(m.mul(r, r), m.polynomial(r, expTail)));
}

function scaledExp(m: Terms, { shifted, rest }: Reduced): Value {
  return scale(m, m.add(expm1Core(m, rest), 1), wholeOf(m, shifted));
}

/** NaN passes both bounds. */
export function exp(m: Terms, x: Value): Value {
  return scaledExp(m, reduce(m, m.pmin(m.pmax(x, -746), 710)));
}

export function exp2(m: Terms, x: Value): Value {
  const bounded = m.pmin(m.pmax(x, -1076), 1025);
  const shifted = m.add(bounded, magic);
  const rest = m.mul(m.sub(bounded, m.sub(shifted, magic)), Math.LN2);
  return scaledExp(m, { shifted, rest });
}

/** (e^x − 1) / 2: by quarters, so that 2^1025 does not overflow before it must. */
function halfExpm1(m: Terms, x: Value): Value {
  const { shifted, rest } = reduce(m, m.pmin(m.pmax(x, -50), 710.5));
  const core = expm1Core(m, rest);
  const quarter = power(m, shifted, -2);
  const scaled = m.mul(m.add(m.mul(quarter, core), m.sub(quarter, 0.25)), 2);
  return m.where(m.eq(shifted, magic), m.mul(core, 0.5), scaled);
}

/** x itself where it is all that counts: halves of denormal numbers are not exact. */
function argumentWhereTiny(m: Terms, x: Value, bound: number, y: Value): Value {
  return m.withSign(m.where(m.lt(m.abs(x), bound), x, y), x);
}

export function expm1(m: Terms, x: Value): Value {
  return argumentWhereTiny(m, x, 2 ** -60, m.mul(halfExpm1(m, x), 2));
}

/** With h = (e^|x| − 1) / 2: h + h / (2h + 1). */
export function sinh(m: Terms, x: Value): Value {
  const half = halfExpm1(m, m.abs(x));
  // Not infinite, for the quotient.
  const bounded = m.pmin(half, 2 ** 60);
  const size = m.add(half, m.div(bounded, m.add(m.mul(bounded, 2), 1)));
  return argumentWhereTiny(m, x, 2 ** -28, size);
}

/** With h = e^|x| / 2: h + 1/4h. */
export function cosh(m: Terms, x: Value): Value {
  const { shifted, rest } = reduce(m, m.pmin(m.abs(x), 710.5));
  const half = m.mul(m.mul(m.add(expm1Core(m, rest), 1), power(m, shifted, -2)), 2);
  return m.add(half, m.div(0.25, half));
}

/** With h = (e^2|x| − 1) / 2: h / (h + 1). */
export function tanh(m: Terms, x: Value): Value {
  const size = m.pmin(m.abs(x), 22);
  const half = halfExpm1(m, m.mul(size, 2));
  return argumentWhereTiny(m, x, 2 ** -28, m.div(half, m.add(half, 1)));
}

/** erf x / x − 1 as a quotient of polynomials in x², up to 0.84375 (fdlibm). */
const erfOver = [
  0.12837916709551256, -0.3250421072470015, -0.02848174957559851, -0.005770270296489442,
  -2.3763016656650163e-5,
];
const erfUnder = [
  1, 0.39791722395915535, 0.0650222499887673, 0.005081306281875766, 0.00013249473800432164,
  -3.960228278775368e-6,
];
const lowestFirst = (coefficients: readonly number[]): readonly number[] => coefficients.toReversed();

/**
 * Near 0 by its series; beyond, 1 − e^(−x²) times Cody's quotient for erfc, whose last digits do
 * not show.
 */
export function erf(m: Terms, x: Value): Value {
  const size = m.pmin(m.abs(x), 6);
  const z = m.mul(size, size);
  const near = m.div(m.polynomial(z, erfOver), m.polynomial(z, erfUnder));
  const { top, bottom } = erfcMiddle;
  const tail = m.div(m.polynomial(size, lowestFirst(top)), m.polynomial(size, lowestFirst(bottom)));
  const far = m.sub(1, m.mul(exp(m, m.neg(z)), tail));
  return m.withSign(m.where(m.lt(size, 0.84375), m.add(size, m.mul(size, near)), far), x);
}
