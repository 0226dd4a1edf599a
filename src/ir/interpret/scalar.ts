// What every elementwise op means on one element: the table that all devices are checked against.
// Floats are computed in double precision and rounded once into f32, then from f32 into the 16-bit
// formats (they compute in f32 everywhere); integers are computed exactly and wrapped to their
// width; bool is a one-bit integer. A missing row is a type error.

import { CompilerBug } from '../../errors.ts';
import { dtypeBytes, isFloat, isWide, type DType } from '../dtype.ts';
import { erf } from './erf.ts';
import { identityOf } from './identity.ts';
import { combining, givesBool, type ElementwiseOp, type Monoid } from '../ops.ts';
import { highProduct } from './random.ts';
import {
  emptyData,
  fromInteger,
  fromReal,
  packBytes,
  roundHalfEven,
  unpackBytes,
  type Scalar,
} from '../value.ts';

/** An op on elements of fixed dtypes; operands past the op's arity are ignored. */
export type ScalarFunction = (a: Scalar, b?: Scalar, c?: Scalar) => Scalar;

/**
 * The op before rounding or wrapping, per family of dtypes; a family without entry is refused by
 * the type rules.
 */
interface Arithmetic {
  readonly float?: (a: number, b: number) => number;
  /** Up to 32 bits, and bool with a width of 1. Only the low bits of the result count. */
  readonly int?: (a: number, b: number, bits: number) => number;
  readonly wide?: (a: bigint, b: bigint) => bigint | number;
}

/** Ops whose meaning depends on more than the family. */
interface Chosen {
  readonly choose: (from: DType, to: DType) => ScalarFunction;
}

const float = (f: (a: number, b: number) => number): Arithmetic => ({ float: f });
const compare = (f: (a: Scalar, b: Scalar) => boolean): Arithmetic => {
  const test = (a: Scalar, b: Scalar): number => (f(a, b) ? 1 : 0);
  return { float: test, int: test, wide: test };
};

const table = {
  neg: { float: (x) => -x, int: (x) => -x, wide: (x) => -x },
  abs: { float: Math.abs, int: Math.abs, wide: (x) => (x < 0n ? -x : x) },
  // As PyTorch: ±0 and NaN give 0.
  sign: {
    float: (x) => (x > 0 ? 1 : x < 0 ? -1 : 0),
    int: Math.sign,
    wide: (x) => (x > 0n ? 1n : x < 0n ? -1n : 0n),
  },
  floor: float(Math.floor),
  ceil: float(Math.ceil),
  round: float(roundHalfEven),
  trunc: float(Math.trunc),
  exp: float(Math.exp),
  exp2: float((x) => 2 ** x),
  expm1: float(Math.expm1),
  log: float(Math.log),
  log2: float(Math.log2),
  log1p: float(Math.log1p),
  sin: float(Math.sin),
  cos: float(Math.cos),
  tan: float(Math.tan),
  asin: float(Math.asin),
  acos: float(Math.acos),
  atan: float(Math.atan),
  sinh: float(Math.sinh),
  cosh: float(Math.cosh),
  tanh: float(Math.tanh),
  erf: float(erf),
  sqrt: float(Math.sqrt),
  rsqrt: float((x) => 1 / Math.sqrt(x)),
  recip: float((x) => 1 / x),
  not: { int: (x) => ~x, wide: (x) => ~x },
  isNan: float((x) => (Number.isNaN(x) ? 1 : 0)),
  cast: { choose: (from, to) => (isFloat(from) ? (fromReal(to) as ScalarFunction) : fromInteger(to)) },
  bitcast: { choose: reinterpret },
  add: { float: (a, b) => a + b, int: (a, b) => a + b, wide: (a, b) => a + b },
  sub: { float: (a, b) => a - b, int: (a, b) => a - b, wide: (a, b) => a - b },
  mul: { float: (a, b) => a * b, int: Math.imul, wide: (a, b) => a * b },
  // Integer quotients truncate. As WGSL defines them: x/0 = x and INT_MIN/−1 = INT_MIN (by
  // wrapping).
  div: {
    float: (a, b) => a / b,
    int: (a, b) => (b === 0 ? a : Math.trunc(a / b)),
    wide: (a, b) => (b === 0n ? a : a / b),
  },
  // C's fmod and %: the remainder of the truncated quotient, with the dividend's sign. Integer x
  // mod 0 = 0.
  mod: {
    float: (a, b) => a % b,
    int: (a, b) => (b === 0 ? 0 : a % b),
    wide: (a, b) => (b === 0n ? 0n : a % b),
  },
  // C's pow, where JavaScript's differs: 1^NaN = 1 and (±1)^±∞ = 1.
  pow: float((a, b) => (a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1 : a ** b)),
  // NaN wins, and −0 < 0.
  min: { float: Math.min, int: (a, b) => Math.min(a, b), wide: (a, b) => (b < a ? b : a) },
  max: { float: Math.max, int: (a, b) => Math.max(a, b), wide: (a, b) => (b > a ? b : a) },
  atan2: float(Math.atan2),
  and: { int: (a, b) => a & b, wide: (a, b) => a & b },
  or: { int: (a, b) => a | b, wide: (a, b) => a | b },
  xor: { int: (a, b) => a ^ b, wide: (a, b) => a ^ b },
  // As PyTorch, a count below 0 or past the width shifts everything out.
  shl: {
    int: (a, b, bits) => (b < 0 || b >= bits ? 0 : a << b),
    wide: (a, b) => (b < 0n || b >= 64n ? 0n : a << b),
  },
  shr: {
    int: (a, b, bits) => (b < 0 || b >= bits ? (a < 0 ? -1 : 0) : Math.floor(a / 2 ** b)),
    wide: (a, b) => (b < 0n || b >= 64n ? (a < 0n ? -1n : 0n) : a >> b),
  },
  mulhi: {
    int: (a, b, bits) => (bits === 32 ? high32(a, b) : Math.floor((a * b) / 2 ** bits)),
    wide: (a, b) => (a * b) >> 64n,
  },
  lt: compare((a, b) => a < b),
  le: compare((a, b) => a <= b),
  eq: compare((a, b) => a === b),
  ne: compare((a, b) => a !== b),
  where: { choose: () => (condition, a, b) => (condition !== 0 ? a! : b!) },
  fma: { choose: fusedMultiplyAdd },
} as const satisfies Record<ElementwiseOp, Arithmetic | Chosen>;

/**
 * The op as a function of elements: chosen once, called per element. `argDtype` is the dtype of the
 * operands (of the two choices, for `where`); for all but casts and tests it equals `resultDtype`.
 */
export function compileScalar(op: ElementwiseOp, argDtype: DType, resultDtype: DType): ScalarFunction {
  const row: Arithmetic | Chosen = table[op];
  if ('choose' in row) return row.choose(argDtype, resultDtype);
  const exact = isFloat(argDtype) ? row.float : isWide(argDtype) ? row.wide : row.int;
  if (exact === undefined) throw new CompilerBug('scalar', `${op} has no meaning on ${argDtype}`);
  if (givesBool(op)) return exact as ScalarFunction;
  if (isFloat(argDtype)) {
    const f = exact as (a: number, b: number) => number;
    const round = roundResult(argDtype);
    return ((a: number, b: number) => round(f(a, b))) as ScalarFunction;
  }
  if (isWide(argDtype)) {
    const f = exact as (a: bigint, b: bigint) => bigint;
    return argDtype === 'i64'
      ? (a, b) => BigInt.asIntN(64, f(a as bigint, b as bigint))
      : (a, b) => BigInt.asUintN(64, f(a as bigint, b as bigint));
  }
  const f = exact as (a: number, b: number, bits: number) => number;
  const bits = argDtype === 'bool' ? 1 : dtypeBytes(argDtype) * 8;
  if (argDtype === 'bool') return (a, b) => f(a as number, b as number, bits) & 1;
  const wrap = fromInteger(argDtype);
  return (a, b) => wrap(f(a as number, b as number, bits));
}

/** One element's result; for loops, choose the function once with `compileScalar`. */
export function evaluateScalar(
  op: ElementwiseOp,
  args: readonly Scalar[],
  argDtype: DType,
  resultDtype: DType,
): Scalar {
  return compileScalar(op, argDtype, resultDtype)(args[0]!, args[1], args[2]);
}

/** A monoid on elements of one dtype: fold from `identity` with `combine`. */
export interface ScalarMonoid {
  readonly identity: Scalar;
  readonly combine: (a: Scalar, b: Scalar) => Scalar;
}

/**
 * The monoid's identity and combination in `dtype`, each result rounded or wrapped; NaN wins in min
 * and max.
 */
export function combineMonoid(monoid: Monoid, dtype: DType): ScalarMonoid {
  return { identity: identityOf(monoid, dtype), combine: compileScalar(combining[monoid], dtype, dtype) };
}

/**
 * Rounds a double into the result's dtype the way a device does that computes 16-bit floats in f32.
 */
function roundResult(dtype: DType): (x: number) => number {
  const round = fromReal(dtype) as (x: number) => number;
  return dtype === 'f16' || dtype === 'bf16' ? (x) => round(Math.fround(x)) : round;
}

/**
 * Upper half of a 32-bit product; a negative factor counts 2³² too much in the unsigned product.
 */
function high32(a: number, b: number): number {
  return highProduct(a >>> 0, b >>> 0) - (a < 0 ? b : 0) - (b < 0 ? a : 0);
}

function reinterpret(from: DType, to: DType): ScalarFunction {
  return (x) => {
    const data = emptyData(from, 1);
    data[0] = x;
    return unpackBytes(packBytes({ dtype: from, shape: [], data }), to, []).data[0]!;
  };
}

function fusedMultiplyAdd(dtype: DType): ScalarFunction {
  const round = roundResult(dtype);
  if (dtype === 'f64') return fmaDouble as ScalarFunction;
  return ((a: number, b: number, c: number) => round(fmaOdd(a, b, c))) as ScalarFunction;
}

/** The rounding error of `sum = a + b` (Knuth's two-sum): a + b = sum + error exactly. */
function sumError(a: number, b: number, sum: number): number {
  const bPart = sum - a;
  return a - (sum - bPart) + (b - bPart);
}

const bits = new BigInt64Array(1);
const double = new Float64Array(bits.buffer);

/**
 * a·b + c for f32 operands as a double rounded to odd, so that rounding it again to f32 rounds the
 * exact value once (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). The
 * product of two f32 is exact in double.
 */
function fmaOdd(a: number, b: number, c: number): number {
  const product = a * b;
  const sum = product + c;
  const error = sumError(product, c, sum);
  if (error === 0 || !Number.isFinite(sum)) return sum;
  double[0] = sum;
  // An even last bit means the nearest double was taken: the odd neighbour on the error's side is
  // one step away.
  if ((bits[0]! & 1n) === 0n) bits[0] = bits[0]! + (error > 0 === sum > 0 ? 1n : -1n);
  return double[0]!;
}

/**
 * a·b + c in double, from Dekker's exact product: within one unit of the last place for factors up
 * to 2⁹⁹⁶.
 */
function fmaDouble(a: number, b: number, c: number): number {
  const product = a * b;
  if (!Number.isFinite(product) && Number.isFinite(a) && Number.isFinite(b)) {
    // Only the intermediate overflows: the sum may still be in range.
    return Number.isFinite(c) ? 4 * fmaDouble(a / 4, b, c / 4) : c;
  }
  const sum = product + c;
  const [aHigh, bHigh] = [upperHalf(a), upperHalf(b)];
  const [aLow, bLow] = [a - aHigh, b - bHigh];
  const productError = aLow * bLow - (product - aHigh * bHigh - aLow * bHigh - aHigh * bLow);
  const error = sumError(product, c, sum) + productError;
  return error === 0 || !Number.isFinite(error) ? sum : sum + error;
}

function upperHalf(x: number): number {
  const scaled = x * (2 ** 27 + 1);
  return scaled - (scaled - x);
}
