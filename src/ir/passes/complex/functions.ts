// Elementary functions of complex numbers in real ones. Inverse functions follow Kahan ("Branch
// cuts for complex elementary functions", 1987): by roots of 1 ± z, which keep the digits and the
// sides of the cuts, where z ± √(z² − 1) would lose both. Infinite arguments have the values of
// Annex G of the C standard: a product of 0 and ∞ inside a formula must not become NaN where the
// limit is a number.

import {
  add,
  binary,
  div,
  fullLike,
  isFiniteFloat,
  isInfiniteFloat,
  mul,
  neg,
  sub,
  unary,
  where,
} from '../../build.ts';
import type { GraphBuilder, Node } from '../../graph.ts';
import {
  angle,
  choose,
  isInfinite,
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

const both = (b: GraphBuilder, p: Node, q: Node): Node => binary(b, 'and', p, q);
const either = (b: GraphBuilder, p: Node, q: Node): Node => binary(b, 'or', p, q);
const not = (b: GraphBuilder, p: Node): Node => unary(b, 'not', p);
const isNothing = (b: GraphBuilder, x: Node): Node => binary(b, 'eq', x, 0);
const instead = (b: GraphBuilder, when: Node, value: number, x: Node): Node =>
  where(b, when, fullLike(b, x, value), x);

/** A size ≥ 0 with the sign of y, which is not 0. */
const signed = (b: GraphBuilder, size: Node, y: Node): Node =>
  where(b, binary(b, 'lt', y, 0), neg(b, size), size);

/** The end of an axis, on the side of y. */
const endOf = (b: GraphBuilder, size: number, y: Node): Node => signed(b, fullLike(b, y, size), y);

/** The angle y in functions of x + iy that grow or vanish with x: where x is infinite, one that is a number. */
function angleAt(b: GraphBuilder, { re, im }: ComplexPair): Node {
  const number = where(b, isFiniteFloat(b, im), im, fullLike(b, im, 0));
  return where(b, isInfiniteFloat(b, re), number, im);
}

/** Beyond `from`, eˣ nears the largest float; there it is e^(x − step)·e^step. cosh and sinh are as eˣ there. */
const splits = { f32: { from: 80, step: 70 }, f64: { from: 700, step: 680 } } as const;

/**
 * x taken down by `step` where |x| is beyond `from`, and the factor that this takes from eˣ: products
 * with it come last, since eˣ alone may overflow where its product with a small sine does not.
 */
function split(b: GraphBuilder, x: Node): { readonly rest: Node; readonly factor: Node } {
  const { from, step } = splits[x.dtype === 'f64' ? 'f64' : 'f32'];
  const size = real(b, 'abs', x);
  const far = binary(b, 'lt', fullLike(b, x, from), size);
  return {
    rest: where(b, far, signed(b, sub(b, size, step), x), x),
    factor: where(b, far, fullLike(b, x, Math.exp(step)), fullLike(b, x, 1)),
  };
}

/** eˣ·(cos y + i·sin y); real where y = 0, however large eˣ is. */
export const exp: Of = (b, z) => {
  const { rest, factor } = split(b, z.re);
  // Below 0 the factor is that of e^(−x), so x stays as it is.
  const grows = binary(b, 'lt', fullLike(b, z.re, 0), z.re);
  const size = unary(b, 'exp', where(b, grows, rest, z.re));
  const scale = instead(b, not(b, grows), 1, factor);
  const wave = angleAt(b, z);
  const part = (name: 'cos' | 'sin'): Node => mul(b, mul(b, size, real(b, name, wave)), scale);
  return pair(part('cos'), where(b, isNothing(b, z.im), z.im, part('sin')));
};

/** (eˣ − 1)·cos y − 2·sin²(y/2) + i·eˣ·sin y. */
export const expm1: Of = (b, z) => {
  const wave = angleAt(b, z);
  const half = real(b, 'sin', mul(b, wave, 0.5));
  const sink = mul(b, mul(b, half, half), 2);
  return pair(sub(b, mul(b, unary(b, 'expm1', z.re), real(b, 'cos', wave)), sink), exp(b, z).im);
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

/** The root with re ≥ 0, whose imaginary part has the sign of z's. Both are infinite where z's imaginary part is. */
export const sqrt: Of = (b, z) => {
  const half = scaled(b, z, 0.5);
  const steep = isInfiniteFloat(b, z.im);
  const size = add(b, real(b, 'abs', half.re), modulus(b, half));
  const long = unary(b, 'sqrt', instead(b, steep, Infinity, size));
  const same = either(b, steep, isNothing(b, long));
  const short = where(b, same, z.im, div(b, half.im, long));
  const left = binary(b, 'lt', z.re, 0);
  return pair(where(b, left, real(b, 'abs', short), long), where(b, left, withSign(b, long, z.im), short));
};

export const recip: Of = (b, z) => over(b, pairOfReal(b, fullLike(b, z.re, 1)), z);
export const rsqrt: Of = (b, z) => recip(b, sqrt(b, z));

/** e^(w·log z); z⁰ is 1 for every z, and 0ʷ is 0 where re w > 0. */
export function pow(b: GraphBuilder, z: ComplexPair, w: ComplexPair): ComplexPair {
  const constant = (value: number): ComplexPair => pairOfReal(b, fullLike(b, z.re, value));
  const vanishes = both(b, isNought(b, z), binary(b, 'lt', fullLike(b, w.re, 0), w.re));
  // An imaginary part of 0 must not meet the infinite logarithm of 0 or ∞.
  const size = log(b, z);
  const power = choose(b, isNothing(b, w.im), scaled(b, size, w.re), times(b, w, size));
  const value = choose(b, vanishes, constant(0), exp(b, power));
  return choose(b, isNought(b, w), constant(1), value);
}

/**
 * sin x, cos x and sinh y, cosh y, by which sin z and cos z are products. Where x is no finite number its
 * waves have no limit; where y is 0 or ±∞ as well, their products with sinh y have, and so have those of
 * a sine that is 0: it takes away what grows beyond all numbers, or is none.
 */
function waves(
  b: GraphBuilder,
  { re, im }: ComplexPair,
): {
  readonly finite: Node;
  readonly product: (wave: Node, growth: Node) => Node;
  readonly cosh: Node;
  readonly sinh: Node;
} {
  const { rest, factor } = split(b, im);
  return {
    finite: isFiniteFloat(b, re),
    product: (wave, growth) => mul(b, mul(b, wave, growth), factor),
    cosh: real(b, 'cosh', rest),
    sinh: real(b, 'sinh', rest),
  };
}

/** sin x·cosh y + i·cos x·sinh y. */
export const sin: Of = (b, z) => {
  const { finite, product, cosh, sinh } = waves(b, z);
  const ends = either(b, isNothing(b, z.im), isInfiniteFloat(b, z.im));
  const cosine = real(b, 'cos', z.re);
  const wave = where(b, finite, cosine, instead(b, ends, 1, cosine));
  return pair(where(b, isNothing(b, z.re), z.re, product(real(b, 'sin', z.re), cosh)), product(wave, sinh));
};

/** cos x·cosh y − i·sin x·sinh y. */
export const cos: Of = (b, z) => {
  const { finite, product, cosh, sinh } = waves(b, z);
  const [cosine, sine] = [real(b, 'cos', z.re), real(b, 'sin', z.re)];
  const known = (when: Node, x: Node): Node => where(b, finite, x, instead(b, when, 1, x));
  const side = where(b, isNothing(b, z.re), endOf(b, 1, z.im), sinh);
  const im = product(known(isNothing(b, z.im), sine), where(b, isFiniteFloat(b, sinh), sinh, side));
  return pair(product(known(isInfiniteFloat(b, z.im), cosine), cosh), neg(b, im));
};

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
  const near = pair(
    where(b, isNothing(b, re), re, div(b, mul(b, steep, mul(b, root, s)), below)),
    where(b, isNothing(b, im), im, div(b, t, below)),
  );
  const decay = unary(b, 'exp', mul(b, real(b, 'abs', re), -2));
  const turn = angleAt(b, { re, im });
  const wave = mul(b, mul(b, real(b, 'sin', turn), real(b, 'cos', turn)), 4);
  const end = where(b, unary(b, 'isNan', wave), wave, unary(b, 'sign', re));
  return choose(b, far, pair(end, mul(b, wave, decay)), near);
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

/** atan2(x, re √(1−z)·√(1+z)) + i·asinh(im √(1−z)*·√(1+z)); where z is infinite, atan2(x, |y|) ± i·∞. */
export const asin: Of = (b, z) => {
  const [p, q] = roots(b, z);
  const infinite = isInfinite(b, z);
  const across = sub(b, mul(b, p.re, q.re), mul(b, p.im, q.im));
  const turn = binary(b, 'atan2', z.re, where(b, infinite, real(b, 'abs', z.im), across));
  const rise = asinhReal(b, sub(b, mul(b, p.re, q.im), mul(b, p.im, q.re)));
  return pair(
    where(b, isNothing(b, z.re), z.re, turn),
    where(b, infinite, withSign(b, fullLike(b, rise, Infinity), z.im), rise),
  );
};

/** 2·atan2(re √(1−z), re √(1+z)) + i·asinh(im √(1+z)*·√(1−z)); where z is infinite, atan2(|y|, x) ∓ i·∞. */
export const acos: Of = (b, z) => {
  const [p, q] = roots(b, z);
  const infinite = isInfinite(b, z);
  const turn = binary(
    b,
    'atan2',
    where(b, infinite, real(b, 'abs', z.im), p.re),
    where(b, infinite, z.re, q.re),
  );
  const angle = where(b, infinite, turn, mul(b, turn, 2));
  const rise = asinhReal(b, sub(b, mul(b, q.re, p.im), mul(b, q.im, p.re)));
  return pair(
    instead(b, isNothing(b, z.re), Math.PI / 2, angle),
    where(b, infinite, withSign(b, fullLike(b, rise, Infinity), neg(b, z.im)), rise),
  );
};

/**
 * Beyond `far`, atanh z is 1/z ± iπ/2 to the last digit; a product with `down` keeps squares of what lies
 * beyond from overflow and underflow. Below `near`, y² is nothing beside 4.
 */
const atanhLimits = {
  f32: { far: 1e9, down: 2 ** -66, near: 1e-9 },
  f64: { far: 1e18, down: 2 ** -530, near: 1e-18 },
} as const;

/**
 * ¼·log1p(4x/((1−x)² + y²)) + i/2·atan2(2y, (1−x)·(1+x) − y²), of |x|, since a logarithm near that of 0
 * has no digits. At x = 1, beside a tiny y, the quotient is (2/y)² and would overflow.
 */
export const atanh: Of = (b, { re, im }) => {
  const { far: limit, down, near } = atanhLimits[re.dtype === 'f64' ? 'f64' : 'f32'];
  const [x, y] = [real(b, 'abs', re), real(b, 'abs', im)];
  const beyond = (size: Node): Node => binary(b, 'lt', fullLike(b, size, limit), size);
  const infinite = isInfinite(b, { re, im });
  const known = both(b, beyond(y), not(b, unary(b, 'isNan', x)));
  const far = either(b, infinite, either(b, beyond(x), known));
  const [below, above] = [sub(b, 1, x), add(b, x, 1)];
  const square = mul(b, im, im);
  const steep = both(b, isNothing(b, below), binary(b, 'lt', y, near));
  const ratio = div(
    b,
    instead(b, steep, 2, mul(b, x, 4)),
    where(b, steep, y, add(b, mul(b, below, below), square)),
  );
  const quarter = mul(b, unary(b, 'log1p', ratio), instead(b, steep, 0.5, fullLike(b, x, 0.25)));
  const [u, v] = [mul(b, x, down), mul(b, im, down)];
  const vanishing = mul(b, div(b, u, add(b, mul(b, u, u), mul(b, v, v))), down);
  const size = where(b, far, instead(b, infinite, 0, vanishing), quarter);
  const turn = binary(
    b,
    'atan2',
    where(b, beyond(y), endOf(b, limit, im), mul(b, im, 2)),
    instead(b, far, -Infinity, sub(b, mul(b, below, above), square)),
  );
  return pair(where(b, isNothing(b, re), re, signed(b, size, re)), mul(b, turn, 0.5));
};

/** atan z = −i·atanh(iz). */
export const atan: Of = (b, z) => turnedBack(b, atanh(b, turned(b, z)));

export const exp2: Of = (b, z) => exp(b, scaled(b, z, Math.LN2));
export const log2: Of = (b, z) => scaled(b, log(b, z), 1 / Math.LN2);

/** z/|z|, and 0 at 0; of one infinite part the direction of its axis. */
export const sign: Of = (b, z) => {
  const size = modulus(b, z);
  const nothing = isNothing(b, size);
  const part = (x: Node): Node => where(b, nothing, x, div(b, x, size));
  // Beside an infinite part a finite one is nothing; two infinite ones have no direction.
  const unit = (x: Node): Node => where(b, isInfiniteFloat(b, x), endOf(b, 1, x), mul(b, x, 0));
  const straight = binary(b, 'ne', isInfiniteFloat(b, z.re), isInfiniteFloat(b, z.im));
  return choose(b, straight, pair(unit(z.re), unit(z.im)), pair(part(z.re), part(z.im)));
};
