// Sine, cosine, tangent and their inverses. Angles up to 2^13 are reduced to |r| ≤ π/4 by
// subtracting multiples of π/2 in four parts (Cody and Waite); greater ones, where there are any,
// by multiplying with the bits of 2/π that matter (Payne and Hanek).

import type { Value } from '../../../loop/loop.ts';
import { farDouble, nearBound as doubleBound, nearDouble } from './double-angle.ts';
import { magic } from './exp.ts';
import { highProduct } from './integer.ts';
import type { Angle } from './reduced.ts';
import { Terms, type Draft } from './terms.ts';

const twoOverPi = 0.6366197723675814;
const halfPi = 1.5707963267948966;
/** π/2 in three parts of 11 bits, which times numbers of 13 bits are exact, and the rest. */
const halfPiParts = [1.5703125, 0.0004837512969970703, 7.549533620476723e-8, 2.563344151594519e-12];
const nearBound = 8192;

/** The first 224 bits of 2/π. */
const twoOverPiBits = 0xa2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abn;
const windows = 16;

/**
 * 32 bits of 2/π · 2^(8(q − 2)) modulo 4, from bit `from` on, for every q; the first bit counts 2.
 */
const windowWords = (from: number): readonly number[] =>
  Array.from({ length: windows }, (_, q) =>
    Number(((twoOverPiBits << BigInt(8 * q)) >> BigInt(16 + 224 - 30 - from)) & 0xffffffffn),
  );

/**
 * |x| = M·2^(8(q − 2)) with a whole M below 2^31. The window of 2/π that q chooses times M, modulo
 * 4, is the angle in quarters.
 */
function farAngle(m: Terms, x: Value): Angle {
  const bits = m.and(m.word(x), 0x7fffffff);
  const place = m.sub(m.shr(bits, 23), 134);
  const q = m.shr(place, 3);
  // M: the fraction with such an exponent that the number is whole.
  const exponent = m.shl(m.add(m.and(place, 7), 150), 23);
  const number = m.real(m.or(m.and(bits, 0x7fffff), exponent));
  const whole = m.word(m.op('cast', [number], 'i32'));
  const tests = [1, 2, 4, 8].map((bit) => m.ne(m.and(q, bit), 0));
  const chosen = (words: readonly (Value | number)[], level: number): Value => {
    if (level === tests.length) {
      const [only] = words;
      return typeof only === 'number' ? m.constant(only, 'u32') : only!;
    }
    const pairs = words.flatMap((word, i) => (i % 2 === 0 ? [[word, words[i + 1] ?? word] as const] : []));
    const halves = pairs.map(([even, odd]) => {
      const [no, yes] = [even, odd].map((w) => (typeof w === 'number' ? m.constant(w, 'u32') : w));
      return no === yes ? no! : m.where(tests[level]!, yes!, no!);
    });
    return chosen(halves, level + 1);
  };
  // Three words of the product: 2 bits of quarters and 94 of their fraction, of which 32 may be
  // lost next to a multiple of π/2.
  const [first, second, third] = [0, 32, 64].map((from) => chosen(windowWords(from), 0));
  const last = highProduct(m, third!, whole);
  const middle = m.add(m.mul(second!, whole), last);
  const carry = m.where(m.lt(middle, last), m.constant(1, 'u32'), m.constant(0, 'u32'));
  const turns = m.add(m.add(m.mul(first!, whole), highProduct(m, second!, whole)), carry);
  const upper = m.toReal(m.bits(m.or(m.shl(turns, 2), m.shr(middle, 30))));
  const lower = m.toReal(m.bits(m.shr(m.shl(middle, 2), 1)));
  const size = m.add(m.mul(upper, halfPi * 2 ** -32), m.mul(lower, halfPi * 2 ** -63));
  const quarter = m.bits(m.shr(m.add(turns, 0x20000000), 30));
  const isNegative = m.lt(x, 0);
  const rest = m.where(isNegative, m.neg(size), size);
  return {
    rest: m.where(m.lt(m.abs(x), Infinity), rest, NaN),
    quarter: m.where(isNegative, m.neg(quarter), quarter),
  };
}

function nearAngle(m: Terms, x: Value): Angle {
  const shifted = m.draft.let(m.hint, m.add(m.mul(x, twoOverPi), magic));
  const n = m.sub(shifted, magic);
  const rest = halfPiParts.reduce((left, part) => m.sub(left, m.mul(n, part)), x);
  // The magic number's own low bits are 0.
  return { rest, quarter: m.bits(shifted) };
}

/**
 * Reduces an angle, in statements of their own: the way for great angles is a branch. NaN takes it,
 * too.
 */
export function reduceAngle(draft: Draft, hint: string, given: Value): Angle {
  const x = draft.let(`${hint}_x`, given);
  const isDouble = x.type === 'f64';
  const m = new Terms(draft, x.width, hint, isDouble ? 'f64' : 'f32');
  const near = isDouble ? nearDouble(m, x) : nearAngle(m, x);
  const variables = {
    rest: draft.var(`${hint}_rest`, near.rest),
    ...(near.tail && { tail: draft.var(`${hint}_tail`, near.tail) }),
    quarter: draft.var(`${hint}_quarter`, near.quarter),
  };
  const isFar = draft.let(`${hint}_far`, m.not(m.le(m.abs(x), isDouble ? doubleBound : nearBound)));
  const inner = draft.inner();
  const i = m.inside(inner);
  const far = isDouble ? farDouble(i, x) : farAngle(i, x);
  const pairs = (['rest', 'tail', 'quarter'] as const).flatMap((part) => {
    const [variable, value] = [variables[part], far[part]];
    return variable === undefined || value === undefined ? [] : [{ variable, value }];
  });
  const values = inner.written(
    pairs.map(({ variable, value }) => i.where(isFar, value, variable)),
    hint,
  );
  pairs.forEach(({ variable }, k) => {
    if (variable.kind === 'variable')
      inner.stmts.push({ kind: 'assign', name: variable.name, value: values[k]! });
  });
  draft.stmts.push({ kind: 'if', condition: m.any(isFar), then: inner.stmts });
  return variables;
}

/** 3.7e-9 and 1.1e-10 for |r| ≤ π/4. */
const sinTail = [-0.16666655242443085, 0.008332191966474056, -0.00019518790941219777];
const cosTail = [-0.5, 0.04166664555668831, -0.00138873013202101, 2.443066841806285e-5];

/** r·(1 + r²·P(r²)): a product, so that −0 stays. */
function sinCore(m: Terms, r: Value): Value {
  return m.mul(r, m.polynomial(m.mul(r, r), [1, ...sinTail]));
}

function cosCore(m: Terms, r: Value): Value {
  return m.polynomial(m.mul(r, r), [1, ...cosTail]);
}

const isOdd = (m: Terms, quarter: Value): Value => m.ne(m.and(quarter, 1), 0);

function turned(m: Terms, rest: Value, quarter: Value): Value {
  const y = m.where(isOdd(m, quarter), cosCore(m, rest), sinCore(m, rest));
  return m.real(m.xor(m.bits(y), m.shl(m.and(quarter, 2), 30)));
}

export function sin(m: Terms, { rest, quarter }: Angle): Value {
  return turned(m, rest, quarter);
}

export function cos(m: Terms, { rest, quarter }: Angle): Value {
  return turned(m, rest, m.add(quarter, 1));
}

export function tan(m: Terms, { rest, quarter }: Angle): Value {
  const [s, c] = [sinCore(m, rest), cosCore(m, rest)];
  const odd = isOdd(m, quarter);
  return m.div(m.where(odd, m.neg(c), s), m.where(odd, s, c));
}

/** atan t / t on 0 ≤ t ≤ 1, of t²; 1.5e-8. */
const atanTail = [
  -0.3333316743373871, 0.1999414712190628, -0.14214284718036652, 0.10679222643375397, -0.07581154257059097,
  0.04356009140610695, -0.016585083678364754, 0.0029755369760096073,
];

function atanCore(m: Terms, t: Value): Value {
  const z = m.mul(t, t);
  return m.add(t, m.mul(m.mul(t, z), m.polynomial(z, atanTail)));
}

export function atan(m: Terms, x: Value): Value {
  const size = m.abs(x);
  const isSteep = m.lt(1, size);
  const y = atanCore(m, m.where(isSteep, m.div(1, size), size));
  return m.withSign(m.where(isSteep, m.sub(halfPi, y), y), x);
}

/**
 * The angle of (x, y) from the octant's: |lesser / greater| ≤ 1, where 0/0 counts as 0 and ∞/∞ as
 * 1.
 */
export function atan2(m: Terms, y: Value, x: Value): Value {
  const [ax, ay] = [m.abs(x), m.abs(y)];
  // A NaN of x is the lesser and one of y the greater: either way it comes through.
  const lesser = m.pmin(ax, ay);
  const greater = m.pmax(ay, ax);
  const equal = m.where(m.eq(greater, 0), 0, 1);
  const octant = atanCore(m, m.where(m.eq(lesser, greater), equal, m.div(lesser, greater)));
  const right = m.where(m.lt(ax, ay), m.sub(halfPi, octant), octant);
  const size = m.where(m.lt(m.bits(x), 0), m.sub(Math.PI, right), right);
  return m.withSign(size, y);
}

/** (asin √z / √z − 1) / z on 0 ≤ z ≤ ¼; 5e-9. */
const asinTail = [
  0.16666753590106964, 0.07495249807834625, 0.045476529747247696, 0.02414884977042675, 0.04221852123737335,
];

/**
 * asin s up to ½; beyond, asin √((1 − s)/2), of which the root of a negative number, where s > 1,
 * makes NaN.
 */
function asinCore(m: Terms, size: Value): { readonly isOuter: Value; readonly angle: Value } {
  const isOuter = m.lt(0.5, size);
  const z = m.where(isOuter, m.sub(0.5, m.mul(size, 0.5)), m.mul(size, size));
  const t = m.where(isOuter, m.sqrt(z), size);
  return { isOuter, angle: m.add(t, m.mul(m.mul(t, z), m.polynomial(z, asinTail))) };
}

export function asin(m: Terms, x: Value): Value {
  const { isOuter, angle } = asinCore(m, m.abs(x));
  return m.withSign(m.where(isOuter, m.sub(halfPi, m.mul(angle, 2)), angle), x);
}

export function acos(m: Terms, x: Value): Value {
  const { isOuter, angle } = asinCore(m, m.abs(x));
  const twice = m.mul(angle, 2);
  const outer = m.where(m.lt(x, 0), m.sub(Math.PI, twice), twice);
  return m.where(isOuter, outer, m.sub(halfPi, m.withSign(angle, x)));
}
