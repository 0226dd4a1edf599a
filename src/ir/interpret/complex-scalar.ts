// The elementwise ops on complex numbers in double precision, by the textbook's formulas: what the
// pairs of passes/lower-complex.ts are checked against.

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

/** The divisor's parts are brought to about 1 first, by a power of two. */
function over([a, b]: Complex, [c, d]: Complex): Complex {
  const size = Math.max(Math.abs(c), Math.abs(d));
  if (size === 0) return [a / size, b / size];
  const scale = Number.isFinite(size)
    ? 2 ** -Math.max(-1000, Math.min(1000, Math.floor(Math.log2(size))))
    : 1;
  const [p, q] = [c * scale, d * scale];
  const square = p * p + q * q;
  return [((a * p + b * q) / square) * scale, ((b * p - a * q) / square) * scale];
}

const exp = ([a, b]: Complex): Complex => {
  const size = Math.exp(a);
  return [size * Math.cos(b), b === 0 ? b : size * Math.sin(b)];
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
  const long = Math.sqrt(Math.abs(a) / 2 + Math.hypot(a, b) / 2);
  if (long === 0) return [0, b];
  const short = b / (2 * long);
  return a < 0 ? [Math.abs(short), b < 0 || Object.is(b, -0) ? -long : long] : [long, short];
}

function pow(z: Complex, w: Complex): Complex {
  if (z[0] === 0 && z[1] === 0) {
    if (w[0] === 0 && w[1] === 0) return [1, 0];
    if (w[0] > 0) return [0, 0];
  }
  return exp(times(w, log(z)));
}

const sin = ([a, b]: Complex): Complex => [Math.sin(a) * Math.cosh(b), Math.cos(a) * Math.sinh(b)];
const cos = ([a, b]: Complex): Complex => [Math.cos(a) * Math.cosh(b), -(Math.sin(a) * Math.sinh(b))];

/** (sinh 2x + i·sin 2y)/(cosh 2x + cos 2y), by squares that do not cancel. */
function tanh([a, b]: Complex): Complex {
  if (Math.abs(a) > 100) return [Math.sign(a), 4 * Math.sin(b) * Math.cos(b) * Math.exp(-2 * Math.abs(a))];
  const below = Math.sinh(a) ** 2 + Math.cos(b) ** 2;
  return [(Math.sinh(a) * Math.cosh(a)) / below, (Math.sin(b) * Math.cos(b)) / below];
}

const oneMinus = ([a, b]: Complex): Complex => [1 - a, -b];
const onePlus = ([a, b]: Complex): Complex => [1 + a, b];

/** Kahan's formulas, with 1 ± z taken first: they keep to the right sides of the cuts. */
function asin(z: Complex): Complex {
  const [[a, b], [c, d]] = [sqrt(oneMinus(z)), sqrt(onePlus(z))];
  return [Math.atan2(z[0], a * c - b * d), Math.asinh(a * d - b * c)];
}
function acos(z: Complex): Complex {
  const [[a, b], [c, d]] = [sqrt(oneMinus(z)), sqrt(onePlus(z))];
  return [2 * Math.atan2(a, c), Math.asinh(c * b - d * a)];
}
function atanh([a, b]: Complex): Complex {
  const near = (1 - a) ** 2 + b * b;
  return [Math.log1p((4 * a) / near) / 4, Math.atan2(2 * b, (1 - a) * (1 + a) - b * b) / 2];
}

function sign(z: Complex): Complex {
  const size = Math.hypot(z[0], z[1]);
  return size === 0 ? z : [z[0] / size, z[1] / size];
}

function expm1(z: Complex): Complex {
  const half = Math.sin(z[1] / 2);
  return [Math.expm1(z[0]) * Math.cos(z[1]) - 2 * half * half, exp(z)[1]];
}

function log1p([a, b]: Complex): Complex {
  if (Math.hypot(a, b) >= 0.5) return log([1 + a, b]);
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
