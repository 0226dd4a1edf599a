// The elementwise ops on complex numbers in double precision, by the textbook's formulas: what the
// pairs of passes/lower-complex.ts are checked against. Infinite arguments have the values of Annex G
// of the C standard.

import type { ComplexElementwise } from '../typing/complex-ops.ts';

/** Real and imaginary part. */
export type Complex = readonly [re: number, im: number];
type Of = (z: Complex, w: Complex, u: Complex) => Complex;

const add: Of = ([a, b], [c, d]) => [a + c, b + d];
const sub: Of = ([a, b], [c, d]) => [a - c, b - d];
const negative = ([a, b]: Complex): Complex => [-a, -b];
export const times = ([a, b]: Complex, [c, d]: Complex): Complex => [a * c - b * d, a * d + b * c];
const scaled = ([a, b]: Complex, by: number): Complex => [a * by, b * by];
/** By i, and by −i. */
const turned = ([a, b]: Complex): Complex => [-b, a];
const turnedBack = ([a, b]: Complex): Complex => [b, -a];

const isInfinite = (x: number): boolean => Math.abs(x) === Infinity;
/** A size with the sign of y, which may be −0. */
const withSign = (size: number, y: number): number => (y < 0 || Object.is(y, -0) ? -size : size);

/** The divisor's parts are brought to about 1 first, by a power of two; an infinite one divides by Smith's formula. */
function over([a, b]: Complex, [c, d]: Complex): Complex {
  const size = Math.max(Math.abs(c), Math.abs(d));
  if (size === 0) return [a / size, b / size];
  if (!Number.isFinite(size)) {
    if (Math.abs(d) <= Math.abs(c)) {
      const [ratio, below] = [d / c, c + d * (d / c)];
      return [(a + b * ratio) / below, (b - a * ratio) / below];
    }
    const [ratio, below] = [c / d, d + c * (c / d)];
    return [(b + a * ratio) / below, -(a - b * ratio) / below];
  }
  const scale = 2 ** -Math.max(-1000, Math.min(1000, Math.floor(Math.log2(size))));
  const [p, q] = [c * scale, d * scale];
  const square = p * p + q * q;
  return [((a * p + b * q) / square) * scale, ((b * p - a * q) / square) * scale];
}

/** The angle y in functions of x + iy that grow or vanish with x: where x is infinite, one that is a number. */
const angleAt = ([a, b]: Complex): number => (isInfinite(a) && !Number.isFinite(b) ? 0 : b);

/** wave·eˣ, of which only the product may be small enough for a double. */
const grown = (wave: number, x: number): number =>
  x > 700 ? wave * Math.exp(x - 680) * Math.exp(680) : wave * Math.exp(x);
const coshTimes = (wave: number, x: number): number =>
  Math.abs(x) > 700 ? grown(wave / 2, Math.abs(x)) : wave * Math.cosh(x);
const sinhTimes = (wave: number, x: number): number =>
  Math.abs(x) > 700 ? withSign(1, x) * grown(wave / 2, Math.abs(x)) : wave * Math.sinh(x);

const exp = (z: Complex): Complex => {
  const wave = angleAt(z);
  return [grown(Math.cos(wave), z[0]), z[1] === 0 ? z[1] : grown(Math.sin(wave), z[0])];
};
const log = ([a, b]: Complex): Complex => {
  const size = Math.hypot(a, b);
  const near = size > 0.5 && size < 2;
  return [
    near ? Math.log1p((Math.abs(a) - 1) * (Math.abs(a) + 1) + b * b) / 2 : Math.log(size),
    Math.atan2(b, a),
  ];
};

function sqrt([a, b]: Complex): Complex {
  if (isInfinite(b)) return [Infinity, b];
  const long = Math.sqrt(Math.abs(a) / 2 + Math.hypot(a / 2, b / 2));
  if (long === 0) return [0, b];
  const short = b / 2 / long;
  return a < 0 ? [Math.abs(short), withSign(long, b)] : [long, short];
}

function pow(z: Complex, w: Complex): Complex {
  if (w[0] === 0 && w[1] === 0) return [1, 0];
  if (z[0] === 0 && z[1] === 0 && w[0] > 0) return [0, 0];
  // An imaginary part of 0 must not meet the infinite logarithm of 0 or ∞.
  return exp(w[1] === 0 ? scaled(log(z), w[0]) : times(w, log(z)));
}

/** sin x·cosh y + i·cos x·sinh y; where x is no finite number, it still vanishes or grows with y. */
function sin([a, b]: Complex): Complex {
  const wave = !Number.isFinite(a) && (b === 0 || isInfinite(b)) ? 1 : Math.cos(a);
  return [a === 0 ? a : coshTimes(Math.sin(a), b), sinhTimes(wave, b)];
}

/** cos x·cosh y − i·sin x·sinh y. */
function cos([a, b]: Complex): Complex {
  const lost = !Number.isFinite(a);
  const im = a === 0 ? withSign(1, b) * a : sinhTimes(lost && b === 0 ? 1 : Math.sin(a), b);
  return [coshTimes(lost && isInfinite(b) ? 1 : Math.cos(a), b), -im];
}

/** (sinh 2x + i·sin 2y)/(cosh 2x + cos 2y), by squares that do not cancel. */
function tanh(z: Complex): Complex {
  const [a, b] = z;
  if (Math.abs(a) > 100) {
    const wave = 4 * Math.sin(angleAt(z)) * Math.cos(angleAt(z));
    return [Number.isNaN(wave) ? wave : Math.sign(a), wave * Math.exp(-2 * Math.abs(a))];
  }
  const below = Math.sinh(a) ** 2 + Math.cos(b) ** 2;
  return [
    a === 0 ? a : (Math.sinh(a) * Math.cosh(a)) / below,
    b === 0 ? b : (Math.sin(b) * Math.cos(b)) / below,
  ];
}

const oneMinus = ([a, b]: Complex): Complex => [1 - a, -b];
const onePlus = ([a, b]: Complex): Complex => [1 + a, b];

/** Kahan's formulas, with 1 ± z taken first: they keep to the right sides of the cuts. */
function asin(z: Complex): Complex {
  if (isInfinite(z[0]) || isInfinite(z[1]))
    return [Math.atan2(z[0], Math.abs(z[1])), withSign(Infinity, z[1])];
  const [[a, b], [c, d]] = [sqrt(oneMinus(z)), sqrt(onePlus(z))];
  return [z[0] === 0 ? z[0] : Math.atan2(z[0], a * c - b * d), Math.asinh(a * d - b * c)];
}
function acos(z: Complex): Complex {
  if (isInfinite(z[0]) || isInfinite(z[1]))
    return [Math.atan2(Math.abs(z[1]), z[0]), withSign(Infinity, -z[1])];
  const [[a, b], [c, d]] = [sqrt(oneMinus(z)), sqrt(onePlus(z))];
  return [z[0] === 0 ? Math.PI / 2 : 2 * Math.atan2(a, c), Math.asinh(c * b - d * a)];
}

/** Of |x|; beyond 10¹⁸ it is 1/z ± iπ/2 to the last digit. */
function atanh([a, b]: Complex): Complex {
  const x = Math.abs(a);
  if (x > 1e18 || isInfinite(b) || (Math.abs(b) > 1e18 && !Number.isNaN(x))) {
    const [re] = over([1, 0], [x, b]);
    const size = isInfinite(a) || isInfinite(b) ? 0 : re;
    return [a === 0 ? a : withSign(size, a), Number.isNaN(b) ? b : withSign(Math.PI / 2, b)];
  }
  const steep = x === 1 && Math.abs(b) < 1e-18;
  const size = steep ? Math.log1p(2 / Math.abs(b)) / 2 : Math.log1p((4 * x) / ((1 - x) ** 2 + b * b)) / 4;
  return [a === 0 ? a : withSign(size, a), Math.atan2(2 * b, (1 - x) * (1 + x) - b * b) / 2];
}

/** Beside an infinite part a finite one is nothing; two infinite ones have no direction. */
function sign(z: Complex): Complex {
  const unit = (x: number): number => (isInfinite(x) ? withSign(1, x) : x / Infinity);
  if (isInfinite(z[0]) !== isInfinite(z[1])) return [unit(z[0]), unit(z[1])];
  const size = Math.hypot(z[0], z[1]);
  return size === 0 ? z : [z[0] / size, z[1] / size];
}

function expm1(z: Complex): Complex {
  const half = Math.sin(angleAt(z) / 2);
  return [Math.expm1(z[0]) * Math.cos(angleAt(z)) - 2 * half * half, exp(z)[1]];
}

function log1p([a, b]: Complex): Complex {
  if (!(Math.hypot(a, b) < 0.5)) return log([1 + a, b]);
  return [Math.log1p(a * (2 + a) + b * b) / 2, Math.atan2(b, 1 + a)];
}

const truth = (value: boolean): Complex => [value ? 1 : 0, 0];

/** `cast` is a matter of the parts' dtypes alone: the number stays. */
const table: { readonly [K in ComplexElementwise]: Of } = {
  neg: negative,
  abs: (z) => [Math.hypot(z[0], z[1]), 0],
  sign,
  exp,
  exp2: (z) => exp(scaled(z, Math.LN2)),
  expm1,
  log,
  log2: (z) => scaled(log(z), Math.LOG2E),
  log1p,
  sin,
  cos,
  tan: (z) => turnedBack(tanh(turned(z))),
  asin,
  acos,
  atan: (z) => turnedBack(atanh(turned(z))),
  sinh: (z) => turnedBack(sin(turned(z))),
  cosh: (z) => cos(turned(z)),
  tanh,
  sqrt,
  rsqrt: (z) => over([1, 0], sqrt(z)),
  recip: (z) => over([1, 0], z),
  isNan: (z) => truth(Number.isNaN(z[0]) || Number.isNaN(z[1])),
  cast: (z) => z,
  add,
  sub,
  mul: times,
  div: over,
  pow,
  eq: (z, w) => truth(z[0] === w[0] && z[1] === w[1]),
  ne: (z, w) => truth(z[0] !== w[0] || z[1] !== w[1]),
  where: (when, z, w) => (when[0] !== 0 ? z : w),
  fma: (x, y, z) => add(times(x, y), z, z),
};

/** The op on complex numbers. */
export function complexScalar(op: ComplexElementwise): Of {
  return table[op];
}
