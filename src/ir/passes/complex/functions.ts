// Elementary functions of complex numbers in real ones. Inverse functions follow Kahan ("Branch
// cuts for complex elementary functions", 1987): by roots of 1 ± z, which keep the digits and the
// sides of the cuts, where z ± √(z² − 1) would lose both.

import { add, binary, div, fullLike, mul, neg, sub, unary, where } from '../../build.ts';
import type { GraphBuilder, Node } from '../../graph.ts';
import {
  angle,
  choose,
  isNought,
  logModulus,
  modulus,
  over,
  pair,
  pairOfReal,
  scaled,
  times,
  turned,
  turnedBack,
  withSign,
  type ComplexPair,
} from './pair.ts';

type Of = (b: GraphBuilder, z: ComplexPair) => ComplexPair;
const real = (b: GraphBuilder, op: 'sin' | 'cos' | 'tan' | 'sinh' | 'cosh' | 'abs', x: Node): Node =>
  unary(b, op, x);

/** eˣ·(cos y + i·sin y); real where y = 0, however large eˣ is. */
export const exp: Of = (b, { re, im }) => {
  const size = unary(b, 'exp', re);
  const flat = binary(b, 'eq', im, 0);
  return pair(mul(b, size, real(b, 'cos', im)), where(b, flat, im, mul(b, size, real(b, 'sin', im))));
};

/** (eˣ − 1)·cos y − 2·sin²(y/2) + i·eˣ·sin y. */
export const expm1: Of = (b, z) => {
  const half = real(b, 'sin', mul(b, z.im, 0.5));
  const sink = mul(b, mul(b, half, half), 2);
  return pair(sub(b, mul(b, unary(b, 'expm1', z.re), real(b, 'cos', z.im)), sink), exp(b, z).im);
};

export const log: Of = (b, z) => pair(logModulus(b, z), angle(b, z));

/** log(1 + z); near 0 by |1 + z|² − 1 = x·(2 + x) + y². */
export const log1p: Of = (b, { re, im }) => {
  const moved = pair(add(b, re, 1), im);
  const near = binary(b, 'lt', modulus(b, pair(re, im)), 0.5);
  const rest = add(b, mul(b, re, add(b, re, 2)), mul(b, im, im));
  const close = mul(b, unary(b, 'log1p', where(b, near, rest, fullLike(b, rest, 0))), 0.5);
  return pair(where(b, near, close, logModulus(b, moved)), angle(b, moved));
};

/** The root with re ≥ 0, whose imaginary part has the sign of z's. */
export const sqrt: Of = (b, z) => {
  const size = add(b, mul(b, real(b, 'abs', z.re), 0.5), mul(b, modulus(b, z), 0.5));
  const long = unary(b, 'sqrt', size);
  const nothing = binary(b, 'eq', long, 0);
  const short = where(b, nothing, z.im, div(b, z.im, mul(b, long, 2)));
  const left = binary(b, 'lt', z.re, 0);
  return pair(where(b, left, real(b, 'abs', short), long), where(b, left, withSign(b, long, z.im), short));
};

export const recip: Of = (b, z) => over(b, pairOfReal(b, fullLike(b, z.re, 1)), z);
export const rsqrt: Of = (b, z) => recip(b, sqrt(b, z));

/** e^(w·log z); 0ʷ is 0 where re w > 0, and 1 where w = 0. */
export function pow(b: GraphBuilder, z: ComplexPair, w: ComplexPair): ComplexPair {
  const nothing = isNought(b, z);
  const constant = (value: number): ComplexPair => pairOfReal(b, fullLike(b, z.re, value));
  const ends = choose(b, isNought(b, w), constant(1), constant(0));
  const vanishes = binary(b, 'or', binary(b, 'lt', fullLike(b, w.re, 0), w.re), isNought(b, w));
  return choose(b, binary(b, 'and', nothing, vanishes), ends, exp(b, times(b, w, log(b, z))));
}

/** sin x·cosh y + i·cos x·sinh y. */
export const sin: Of = (b, { re, im }) =>
  pair(mul(b, real(b, 'sin', re), real(b, 'cosh', im)), mul(b, real(b, 'cos', re), real(b, 'sinh', im)));

/** cos x·cosh y − i·sin x·sinh y. */
export const cos: Of = (b, { re, im }) =>
  pair(
    mul(b, real(b, 'cos', re), real(b, 'cosh', im)),
    neg(b, mul(b, real(b, 'sin', re), real(b, 'sinh', im))),
  );

/** sinh z = −i·sin(iz). */
export const sinh: Of = (b, z) => turnedBack(b, sin(b, turned(b, z)));
/** cosh z = cos(iz). */
export const cosh: Of = (b, z) => cos(b, turned(b, z));

/** Beyond this, tanh x is ±1 to the last digit, and (sinh x)²·(1 + tan² y) might overflow. */
const beyond = (x: Node): number => (x.dtype === 'f64' ? 100 : 16);

/** By t = tan y and s = sinh x: (√(1+s²)·s·(1+t²) + i·t) / (1 + s²·(1+t²)). */
export const tanh: Of = (b, { re, im }) => {
  const limit = beyond(re);
  const inside = binary(b, 'max', binary(b, 'min', re, limit), -limit);
  const far = binary(b, 'lt', fullLike(b, re, limit), real(b, 'abs', re));
  const [t, s] = [real(b, 'tan', im), real(b, 'sinh', inside)];
  const steep = add(b, mul(b, t, t), 1);
  const root = unary(b, 'sqrt', add(b, mul(b, s, s), 1));
  const below = add(b, mul(b, steep, mul(b, s, s)), 1);
  const near = pair(div(b, mul(b, steep, mul(b, root, s)), below), div(b, t, below));
  const decay = unary(b, 'exp', mul(b, real(b, 'abs', re), -2));
  const wave = mul(b, mul(b, real(b, 'sin', im), real(b, 'cos', im)), 4);
  return choose(b, far, pair(unary(b, 'sign', re), mul(b, wave, decay)), near);
};

/** tan z = −i·tanh(iz). */
export const tan: Of = (b, z) => turnedBack(b, tanh(b, turned(b, z)));

const huge = 1e9;

/** The inverse hyperbolic sine of a real number. */
function asinhReal(b: GraphBuilder, x: Node): Node {
  const size = real(b, 'abs', x);
  const near = binary(b, 'min', size, huge);
  const square = mul(b, near, near);
  const root = unary(b, 'sqrt', add(b, square, 1));
  const small = unary(b, 'log1p', add(b, near, div(b, square, add(b, root, 1))));
  const large = add(b, unary(b, 'log', binary(b, 'max', size, huge)), Math.LN2);
  return withSign(b, where(b, binary(b, 'lt', size, huge), small, large), x);
}

/** √(1 − z) and √(1 + z). */
function roots(b: GraphBuilder, { re, im }: ComplexPair): readonly [ComplexPair, ComplexPair] {
  return [sqrt(b, pair(sub(b, 1, re), neg(b, im))), sqrt(b, pair(add(b, re, 1), im))];
}

/** atan2(x, re √(1−z)·√(1+z)) + i·asinh(im √(1−z)*·√(1+z)). */
export const asin: Of = (b, z) => {
  const [p, q] = roots(b, z);
  const across = sub(b, mul(b, p.re, q.re), mul(b, p.im, q.im));
  return pair(binary(b, 'atan2', z.re, across), asinhReal(b, sub(b, mul(b, p.re, q.im), mul(b, p.im, q.re))));
};

/** 2·atan2(re √(1−z), re √(1+z)) + i·asinh(im √(1+z)*·√(1−z)). */
export const acos: Of = (b, z) => {
  const [p, q] = roots(b, z);
  return pair(
    mul(b, binary(b, 'atan2', p.re, q.re), 2),
    asinhReal(b, sub(b, mul(b, q.re, p.im), mul(b, q.im, p.re))),
  );
};

/** ¼·log1p(4x/((1−x)² + y²)) + i/2·atan2(2y, (1−x)·(1+x) − y²). */
export const atanh: Of = (b, { re, im }) => {
  const [below, above] = [sub(b, 1, re), add(b, re, 1)];
  const square = mul(b, im, im);
  const ratio = div(b, mul(b, re, 4), add(b, mul(b, below, below), square));
  return pair(
    mul(b, unary(b, 'log1p', ratio), 0.25),
    mul(b, binary(b, 'atan2', mul(b, im, 2), sub(b, mul(b, below, above), square)), 0.5),
  );
};

/** atan z = −i·atanh(iz). */
export const atan: Of = (b, z) => turnedBack(b, atanh(b, turned(b, z)));

export const exp2: Of = (b, z) => exp(b, scaled(b, z, Math.LN2));
export const log2: Of = (b, z) => scaled(b, log(b, z), 1 / Math.LN2);

/** z/|z|, and 0 at 0. */
export const sign: Of = (b, z) => {
  const size = modulus(b, z);
  const nothing = binary(b, 'eq', size, 0);
  const part = (x: Node): Node => where(b, nothing, x, div(b, x, size));
  return pair(part(z.re), part(z.im));
};
