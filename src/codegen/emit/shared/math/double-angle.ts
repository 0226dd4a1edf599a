// Sine, cosine and tangent of doubles. Angles up to 2^20 are reduced to |r| ≤ π/4 by subtracting
// multiples of π/2 in four parts (Cody and Waite); greater ones, where there are any, by
// multiplying with the bits of 2/π that matter (Payne and Hanek). Either way the rest comes as two
// doubles. The polynomials are those of fdlibm.

import { magic, magicBits } from './double-exp.ts';
import type { Value } from '../../../loop/loop.ts';
import type { Angle } from './reduced.ts';
import type { Terms } from './terms.ts';

/** Angles beyond are far: multiples of π/2 below have 20 bits. */
export const nearBound = 1e6;
/** π/2 in three parts of 33 bits and the rest. */
const halfPiParts = [1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21] as const;
const halfPiRest = 8.4784276603689e-32;
/** π/2 in a double and what is left. */
const halfPi = 1.5707963267948966;
const halfPiLow = 6.123233995736766e-17;

interface Pair {
  readonly high: Value;
  readonly low: Value;
}

/** a − b and what rounding loses (Knuth's two-sum). */
function difference(m: Terms, a: Value, b: Value): Pair {
  const high = m.sub(a, b);
  const part = m.sub(high, a);
  return { high, low: m.sub(m.sub(a, m.sub(high, part)), m.add(b, part)) };
}

export function nearDouble(m: Terms, x: Value): Angle {
  const shifted = m.draft.let(m.hint, m.add(m.mul(x, 2 / Math.PI), magic));
  const n = m.sub(shifted, magic);
  const [first, second, third] = halfPiParts;
  const once = difference(m, m.sub(x, m.mul(n, first)), m.mul(n, second));
  const twice = difference(m, once.high, m.mul(n, third));
  // Nothing is taken from −0.
  const lost = m.sub(m.sub(m.mul(n, halfPiRest), twice.low), once.low);
  const rest = m.sub(twice.high, lost);
  return { rest, tail: m.sub(m.sub(twice.high, rest), lost), quarter: m.bits(shifted) };
}

/** The first 1280 bits of 2/π. */
const twoOverPiBits =
  0xa2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc209af4361dn;
/** Zeros before the point that make its first word begin where the least far angle needs it. */
const leadingBits = 35;
/** Words of 2/π that make a product with a mantissa. */
const words = 6;
/** Places where a window may begin, in words; as many as exponents ask for. */
const windows = 32;

/** Two words of 2/π · 2^(32j − 33) modulo 4: the upper one's first bit counts 2. */
const wordPair = (j: number): bigint => {
  const total = 1280 + leadingBits;
  const from = total - 32 * j - 64;
  const shifted = from >= 0 ? twoOverPiBits >> BigInt(from) : twoOverPiBits << BigInt(-from);
  return BigInt.asUintN(64, shifted);
};

const wordMask = 0xffffffff;

/**
 * |x| = M·2^(32q + s − 33). The words of 2/π from q on, shifted by s, times M, modulo 4, are the
 * angle in quarters.
 */
export function farDouble(m: Terms, x: Value): Angle {
  const bits = m.and(m.word(x), 2n ** 63n - 1n);
  const place = m.sub(m.shr(bits, 52), 1075 - 33);
  const q = m.shr(place, 5);
  const mantissa = m.or(m.and(bits, 2 ** 52 - 1), 2 ** 52);
  const [low, high] = [m.and(mantissa, wordMask), m.shr(mantissa, 32)];
  // The words from q on: the whole row moves by 16, 8, 4, 2 and 1, or not, and no more of it than
  // is needed.
  let row: Value[] = Array.from({ length: windows + words }, (_, j) => m.constant(wordPair(j), 'u64'));
  for (let by = windows / 2; by >= 1; by /= 2) {
    const moves = m.ne(m.and(q, by), 0);
    row = row.slice(0, words + by - 1).map((word, j) => m.where(moves, row[j + by]!, word));
  }
  // 2^s, from 2⁵² + 2^s.
  const power = m.real(m.shl(m.add(m.and(place, 31), 1023), 52));
  const factor = m.and(m.word(m.add(power, 2 ** 52)), wordMask);
  const window = row.map((pair) => m.shr(m.mul(pair, factor), 32));
  const digits = product(m, window, [low, high]);
  // 2 bits of quarters, and 190 of their fraction.
  const [upper, middle, lower] = [0, 2, 4].map((j) => m.or(m.shl(digits[j]!, 32), digits[j + 1]!)) as [
    Value,
    Value,
    Value,
  ];
  const quarter = m.op('bitcast', [m.shr(m.add(upper, 2n ** 61n), 62)], 'i64');
  const fraction = m.or(m.shl(upper, 2), m.shr(middle, 62));
  const below = m.or(m.shl(middle, 2), m.shr(lower, 62));
  // Words as doubles: of the first, the sign counts.
  const number = (whole: Value): Value =>
    m.sub(m.real(m.add(m.op('bitcast', [whole], 'i64'), magicBits)), magic);
  const first = m.shr(m.op('bitcast', [fraction], 'i64'), 32);
  const parts = [first, m.and(fraction, wordMask), m.shr(below, 32), m.and(below, wordMask)].map((part, j) =>
    m.mul(number(part), 2 ** (-32 * (j + 1))),
  ) as [Value, Value, Value, Value];
  const upperSum = m.add(parts[0], parts[1]);
  const lost = m.sub(parts[1], m.sub(upperSum, parts[0]));
  const rest = timesHalfPi(m, sum(m, upperSum, m.add(lost, m.add(parts[2], parts[3]))));
  const isNegative = m.lt(x, 0);
  const turned = (value: Value): Value => m.where(isNegative, m.neg(value), value);
  return {
    rest: m.where(m.lt(m.abs(x), Infinity), turned(rest.high), NaN),
    tail: turned(rest.low),
    quarter: turned(quarter),
  };
}

/**
 * As many words of a product as its first factor has, the greatest first; what is beyond the first
 * is left out.
 */
function product(m: Terms, a: readonly Value[], [low, high]: readonly [Value, Value]): readonly Value[] {
  const digits: Value[] = [];
  let carry: Value = m.constant(0, 'u64');
  const times = (word: Value | undefined, by: Value): Value | undefined => word && m.mul(word, by);
  for (let j = a.length - 1; j >= 0; j--) {
    // Lower halves of the products that end here, upper ones of those that end one word behind.
    const lower = [times(a[j], low), times(a[j + 1], high)];
    const upper = [times(a[j + 1], low), times(a[j + 2], high)];
    const terms = [
      ...lower.flatMap((term) => (term === undefined ? [] : [m.and(term, wordMask)])),
      ...upper.flatMap((term) => (term === undefined ? [] : [m.shr(term, 32)])),
    ];
    const total = terms.reduce((some, term) => m.add(some, term), carry);
    digits.unshift(m.and(total, wordMask));
    carry = m.shr(total, 32);
  }
  return digits;
}

/** a + b and what rounding loses, where a is 0 or the greater. */
function sum(m: Terms, a: Value, b: Value): Pair {
  const high = m.add(a, b);
  return { high, low: m.sub(b, m.sub(high, a)) };
}

function timesHalfPi(m: Terms, { high, low }: Pair): Pair {
  const whole = m.mul(high, halfPi);
  const [front, piFront] = [m.high(high), m.high(m.constant(halfPi))];
  const [back, piBack] = [m.sub(high, front), m.sub(m.constant(halfPi), piFront)];
  const cross = m.add(m.add(m.sub(m.mul(front, piFront), whole), m.mul(front, piBack)), m.mul(back, piFront));
  const lost = m.add(cross, m.mul(back, piBack));
  return sum(m, whole, m.add(lost, m.add(m.mul(low, halfPi), m.mul(high, halfPiLow))));
}

const sinTail = [
  -0.16666666666666632, 0.00833333333332249, -0.0001984126982985795, 2.7557313707070068e-6,
  -2.5050760253406863e-8, 1.58969099521155e-10,
];
const cosTail = [
  0.0416666666666666, -0.001388888888887411, 2.480158728947673e-5, -2.7557314351390663e-7,
  2.087572321298175e-9, -1.1359647557788195e-11,
];

function sinCore(m: Terms, x: Value, tail: Value): Value {
  const z = m.mul(x, x);
  const cube = m.mul(z, x);
  const [first = 0, ...others] = sinTail;
  const r = m.polynomial(z, others);
  const bent = m.sub(m.mul(z, m.sub(m.mul(tail, 0.5), m.mul(cube, r))), tail);
  return m.sub(x, m.sub(bent, m.mul(cube, first)));
}

function cosCore(m: Terms, x: Value, tail: Value): Value {
  const z = m.mul(x, x);
  const half = m.mul(z, 0.5);
  const r = m.mul(m.mul(z, z), m.polynomial(z, cosTail));
  const near = m.sub(1, half);
  return m.add(near, m.add(m.sub(m.sub(1, near), half), m.sub(r, m.mul(x, tail))));
}

const isOdd = (m: Terms, quarter: Value): Value => m.ne(m.and(quarter, 1), 0);

function cores(m: Terms, { rest, tail }: Angle): { readonly sin: Value; readonly cos: Value } {
  const lost = tail ?? m.constant(0);
  return { sin: sinCore(m, rest, lost), cos: cosCore(m, rest, lost) };
}

function turned(m: Terms, angle: Angle, quarter: Value): Value {
  const { sin: s, cos: c } = cores(m, angle);
  const y = m.where(isOdd(m, quarter), c, s);
  return m.real(m.xor(m.bits(y), m.shl(m.and(quarter, 2), 62)));
}

export function sin(m: Terms, angle: Angle): Value {
  return turned(m, angle, angle.quarter);
}

export function cos(m: Terms, angle: Angle): Value {
  return turned(m, angle, m.add(angle.quarter, 1));
}

export function tan(m: Terms, angle: Angle): Value {
  const { sin: s, cos: c } = cores(m, angle);
  const odd = isOdd(m, angle.quarter);
  return m.div(m.where(odd, m.neg(c), s), m.where(odd, s, c));
}
