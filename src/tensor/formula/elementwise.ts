// Formulas over graph nodes that several operations share. A composed operation is recorded as one
// formula, so that no intermediate tensor is ever alive, and every formula is written so that its
// derivative is right too: kinks select with `where` (ties go to one side, and nothing leaks from
// the side not taken), a maximum that only stabilises carries no gradient.

import {
  add,
  binary,
  broadcast,
  cast,
  complex,
  constant,
  div,
  fullLike,
  imag,
  isFiniteFloat,
  isInfiniteFloat,
  mul,
  neg,
  real,
  reduceKeep,
  reshape,
  sub,
  unary,
  where,
} from '../../ir/build.ts';
import { times } from '../../autograd/cotangent.ts';
import { derivativeBy, type CustomRule } from '../../autograd/custom.ts';
import {
  dtypeBytes,
  dtypeKind,
  integerRange,
  isComplex,
  isInteger,
  isFloat,
  isInexact,
  isWide,
  largestOf,
  type DType,
} from '../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../ir/graph.ts';
import { sizeOf, type FixedShape } from '../../ir/shape.ts';

/** 16-bit floats are computed in f32 and rounded once at the end; everything else as it is. */
export function widened(b: GraphBuilder, x: Node, formula: (wide: Node) => Node): Node {
  return cast(b, formula(cast(b, x, wideType(x.dtype))), x.dtype);
}

/** As `widened`, of two operands of one dtype. */
export function widened2(
  b: GraphBuilder,
  x: Node,
  y: Node,
  formula: (b: GraphBuilder, x: Node, y: Node) => Node,
): Node {
  const wide = wideType(x.dtype);
  return cast(b, formula(b, cast(b, x, wide), cast(b, y, wide)), x.dtype);
}

/** The dtype that values of `dtype` are accumulated in: f32 for 16-bit floats. */
export function wideType(dtype: DType): DType {
  return dtype === 'f16' || dtype === 'bf16' ? 'f32' : dtype;
}

/**
 * What sums and products are given in, running ones as well: integers of fewer than 32 bits and bool
 * in i32. Products of matrices and what is written at places have the dtype of their operands.
 */
export function sumType(dtype: DType): DType {
  return isFloat(dtype) || dtypeBytes(dtype) >= 4 ? dtype : 'i32';
}

/** What the mean of at most so many values is folded in, before it is rounded to their dtype. */
export function meanType(dtype: DType, count: number): DType {
  if (!isInteger(dtype)) return wideType(dtype);
  const [least, most] = integerRange(dtype);
  const reach = (most > -least ? most : -least) * BigInt(Math.max(1, count));
  return reach <= integerRange('i32')[1] ? 'i32' : dtype === 'u64' ? 'u64' : 'i64';
}

/** The identity, with derivative zero. */
export function stopGradient(b: GraphBuilder, x: Node): Node {
  return b.add('stopGradient', [x], {}) as Node;
}

/**
 * `value` with the derivative that `rule` gives for `args`, where that of the formula behind
 * `value` loses digits or is NaN at single points. A rule that is a constant is one derivative.
 */
export function withRule(b: GraphBuilder, value: Node, args: readonly Node[], rule: CustomRule): Node {
  return derivativeBy(rule).node(b, [value, ...args]);
}

/** 0, 1, 2… along `axis` of `shape`. */
export function iota(b: GraphBuilder, shape: FixedShape, axis: number, dtype: DType = 'i32'): Node {
  return b.add('iota', [], { shape, axis, dtype }) as Node;
}

/** Broadcast to the shape of `like`. */
export function spreadTo(b: GraphBuilder, x: Node, like: Node): Node {
  return broadcast(b, x, dims(like));
}

/** x ≠ 0; NaN is true. */
export function truth(b: GraphBuilder, x: Node): Node {
  return cast(b, x, 'bool');
}

export function isNan(b: GraphBuilder, x: Node): Node {
  return isInexact(x.dtype) ? unary(b, 'isNan', x) : spreadTo(b, constant(b, 0, 'bool'), x);
}

/** Neither NaN nor ±∞. */
export function isFinite(b: GraphBuilder, x: Node): Node {
  if (isComplex(x.dtype)) return binary(b, 'and', isFinite(b, real(b, x)), isFinite(b, imag(b, x)));
  if (dtypeKind(x.dtype) !== 'float') return spreadTo(b, constant(b, 1, 'bool'), x);
  return isFiniteFloat(b, x);
}

/** ±∞. */
export function isInf(b: GraphBuilder, x: Node): Node {
  if (isComplex(x.dtype)) return binary(b, 'or', isInf(b, real(b, x)), isInf(b, imag(b, x)));
  if (dtypeKind(x.dtype) !== 'float') return spreadTo(b, constant(b, 0, 'bool'), x);
  return isInfiniteFloat(b, x);
}

/** Signs differ and the remainder is not zero: where a truncated quotient is one too large. */
function crossesZero(b: GraphBuilder, rest: Node, divisor: Node): Node {
  const opposite = binary(b, 'ne', binary(b, 'lt', rest, 0), binary(b, 'lt', divisor, 0));
  return binary(b, 'and', binary(b, 'ne', rest, 0), opposite);
}

/**
 * ⌊x / y⌋ from the exact remainder (1 by 0.1 is 9, as in Python); integers without a detour through
 * floats. A quotient of 0 has the sign of x / y. It is flat, as ⌊x⌋ is.
 */
export function floorDivide(b: GraphBuilder, x: Node, y: Node): Node {
  const kind = dtypeKind(x.dtype);
  if (kind === 'uint') return div(b, x, y);
  const rest = binary(b, 'mod', x, y);
  const down = (quotient: Node): Node => where(b, crossesZero(b, rest, y), sub(b, quotient, 1), quotient);
  if (kind === 'int') return down(div(b, x, y));
  const whole = unary(b, 'round', down(div(b, sub(b, x, rest), y)));
  const quotient = div(b, x, y);
  const signed = where(b, binary(b, 'eq', whole, 0), mul(b, quotient, 0), whole);
  return stopGradient(b, where(b, binary(b, 'eq', y, 0), quotient, signed));
}

/** x − y·⌊x / y⌋, which has the divisor's sign. */
export function remainder(b: GraphBuilder, x: Node, y: Node): Node {
  const rest = binary(b, 'mod', x, y);
  if (dtypeKind(x.dtype) === 'uint') return rest;
  const value = where(b, crossesZero(b, rest, y), add(b, rest, y), rest);
  return isFloat(x.dtype) ? withRule(b, value, [x, y], remainderRule) : value;
}

/** d(x − y·⌊x/y⌋) = dx − ⌊x/y⌋·dy: NaN where the quotient is, not ±∞ as by way of trunc(x/y). */
const remainderRule: CustomRule = (b, [x, y], _value, g) => [g, times(b, g, neg(b, floorDivide(b, x!, y!)))];

/** −|x|, with derivative −1 at 0 so that even and odd formulas built on it are smooth there. */
export function negativeAbs(b: GraphBuilder, x: Node): Node {
  return where(b, binary(b, 'lt', x, 0), x, neg(b, x));
}

/** 1 / (1 + e^−x), whose exponential never overflows on either side. */
export function sigmoid(b: GraphBuilder, x: Node): Node {
  if (isComplex(x.dtype)) return unary(b, 'recip', add(b, unary(b, 'exp', neg(b, x)), 1));
  const decay = unary(b, 'exp', negativeAbs(b, x));
  const positive = unary(b, 'recip', add(b, decay, 1));
  return where(b, binary(b, 'lt', x, 0), mul(b, decay, positive), positive);
}

/** log(1 + e^x) = max(x, 0) + log1p(e^−|x|). */
export function softplus(b: GraphBuilder, x: Node): Node {
  const positive = where(b, binary(b, 'lt', x, 0), fullLike(b, x, 0), x);
  return add(b, positive, unary(b, 'log1p', unary(b, 'exp', negativeAbs(b, x))));
}

export function square(b: GraphBuilder, x: Node): Node {
  return mul(b, x, x);
}

/** |x|²: of complex numbers a real one, without a root. */
export function squaredSize(b: GraphBuilder, x: Node): Node {
  return isComplex(x.dtype) ? add(b, square(b, real(b, x)), square(b, imag(b, x))) : square(b, x);
}

/** √x whose derivative at 0 is 0 instead of ∞, as the norm of a zero vector wants it. */
export function safeSqrt(b: GraphBuilder, x: Node): Node {
  const zero = binary(b, 'eq', x, 0);
  return where(b, zero, fullLike(b, x, 0), unary(b, 'sqrt', where(b, zero, fullLike(b, x, 1), x)));
}

/** How many elements one reduction over `axes` folds. */
export function countOf(shape: FixedShape, axes: readonly number[]): number {
  return sizeOf(axes.map((axis) => shape[axis]!));
}

/**
 * Mean over `axes`, kept with size 1; NaN over nothing (a sum of its own, so that x has a gradient,
 * of no elements).
 */
export function mean(b: GraphBuilder, x: Node, axes: readonly number[]): Node {
  const sum = reduceKeep(b, 'sum', x, axes);
  const count = countOf(dims(x), axes);
  // 0·NaN makes both parts of a complex mean NaN; 0 + NaN makes only the real part NaN.
  return count === 0 ? mul(b, sum, NaN) : div(b, sum, count);
}

export interface Moments {
  /** Kept axes of size 1. */
  readonly mean: Node;
  /** x − mean. */
  readonly centred: Node;
  /** Mean of squared deviations, the sum divided by `count − correction`; kept axes. */
  readonly variance: Node;
}

/** Mean and variance in two passes: squared deviations from the mean, never E[x²] − E[x]². */
export function moments(b: GraphBuilder, x: Node, axes: readonly number[], correction = 0): Moments {
  const centre = mean(b, x, axes);
  const centred = sub(b, x, spreadTo(b, centre, x));
  const squares = reduceKeep(b, 'sum', squaredSize(b, centred), axes);
  const freedom = Math.max(0, countOf(dims(x), axes) - correction);
  // 0/0: no spread is known from too few elements.
  const variance = freedom === 0 ? overNothing(b, squares) : div(b, squares, freedom);
  return { mean: centre, centred, variance };
}

/**
 * The variance as a result of its own, with its mean. Beside ±∞, and of too few elements, its
 * derivative is PyTorch's too.
 */
export function spreadAround(
  b: GraphBuilder,
  x: Node,
  axes: readonly number[],
  correction: number,
): readonly [variance: Node, mean: Node] {
  const stats = moments(b, x, axes, correction);
  const scale = fullLike(b, stats.variance, 2 / Math.max(0, countOf(dims(x), axes) - correction));
  return [withRule(b, stats.variance, [x, stats.mean, scale], varianceRule), stats.mean];
}

/**
 * d variance = 2/freedom·Σ (x − mean)·dx: deviations sum to 0, so nothing flows through the mean.
 */
const varianceRule: CustomRule = (b, [x, centre, scale], _value, g) => [
  scaled(b, spreadTo(b, mul(b, g, scale!), x!), sub(b, x!, spreadTo(b, centre!, x!))),
  undefined,
  undefined,
];

/** Real numbers times real or complex ones, part by part: 0·NaN is NaN in both parts. */
function scaled(b: GraphBuilder, factor: Node, x: Node): Node {
  if (!isComplex(x.dtype)) return mul(b, factor, x);
  return complex(b, mul(b, factor, real(b, x)), mul(b, factor, imag(b, x)));
}

function overNothing(b: GraphBuilder, squares: Node): Node {
  const positive = binary(b, 'lt', fullLike(b, squares, 0), squares);
  return where(b, positive, fullLike(b, squares, Infinity), fullLike(b, squares, NaN));
}

/** The maximum over `axes`, of real parts, without gradient; what exponentials are shifted by. */
export function shiftOf(b: GraphBuilder, x: Node, axes: readonly number[]): Node {
  return stopGradient(b, reduceKeep(b, 'max', isComplex(x.dtype) ? real(b, x) : x, axes));
}

/** e^(x−m) / Σ e^(x−m). */
export function softmax(b: GraphBuilder, x: Node, axes: readonly number[]): Node {
  const weights = unary(b, 'exp', sub(b, x, spreadTo(b, shiftOf(b, x, axes), x)));
  return div(b, weights, spreadTo(b, reduceKeep(b, 'sum', weights, axes), x));
}

/** (x − m) − log Σ e^(x−m). */
export function logSoftmax(b: GraphBuilder, x: Node, axes: readonly number[]): Node {
  const shifted = sub(b, x, spreadTo(b, shiftOf(b, x, axes), x));
  const total = reduceKeep(b, 'sum', unary(b, 'exp', shifted), axes);
  return sub(b, shifted, spreadTo(b, unary(b, 'log', total), x));
}

/** log Σ e^x over `axes`, kept with size 1, shifted by the largest real part; −∞ over nothing and over −∞ alone, +∞ with one +∞. */
export function logSumExp(b: GraphBuilder, x: Node, axes: readonly number[]): Node {
  const maximum = shiftOf(b, x, axes);
  // Beside +∞ the finite ones must not overflow: their share of the derivative is 0.
  const beyond = where(
    b,
    binary(b, 'lt', fullLike(b, maximum, 0), maximum),
    fullLike(b, maximum, largestOf(maximum.dtype)),
    fullLike(b, maximum, 0),
  );
  const shift = where(b, isFinite(b, maximum), maximum, beyond);
  const shifted = onReal(b, x, (part) => sub(b, part, spreadTo(b, shift, part)));
  const total = reduceKeep(b, 'sum', unary(b, 'exp', shifted), axes);
  return onReal(b, unary(b, 'log', total), (part) => add(b, part, shift));
}

/** A function of real parts; imaginary parts stay as they are. */
function onReal(b: GraphBuilder, x: Node, f: (part: Node) => Node): Node {
  return isComplex(x.dtype) ? complex(b, f(real(b, x)), imag(b, x)) : f(x);
}

/**
 * The elements of `x` where `index` (without `axis`) points along `axis`, as a masked sum: no
 * gather, so it fuses.
 */
export function pick(b: GraphBuilder, x: Node, index: Node, axis: number): Node {
  return reduceKeep(b, 'sum', where(b, pointedAt(b, x, index, axis), x, fullLike(b, x, 0)), [axis]);
}

/**
 * Indices as the graph takes them, 32 bits wide. Those that do not fit stay outside of every axis,
 * instead of coming round.
 */
export function narrowIndex(b: GraphBuilder, index: Node): Node {
  if (index.dtype === 'u32') return index;
  if (!isWide(index.dtype)) return cast(b, index, 'i32');
  const [low, high] = integerRange('i32');
  const bound = (value: bigint): Node => fullLike(b, index, value);
  const above = index.dtype === 'i64' ? binary(b, 'max', index, bound(low)) : index;
  return cast(b, binary(b, 'min', above, bound(high)), 'i32');
}

/** true where the position along `axis` equals `index`, which lacks that axis. */
export function pointedAt(b: GraphBuilder, like: Node, index: Node, axis: number): Node {
  const shape = dims(like);
  const kept = shape.map((dim, i) => (i === axis ? 1 : dim));
  return binary(
    b,
    'eq',
    iota(b, shape, axis),
    spreadTo(b, reshape(b, cast(b, narrowIndex(b, index), 'i32'), kept), like),
  );
}

/** x placed along `axis` of a rank-`rank` shape, all other axes of size 1. */
export function alongAxis(b: GraphBuilder, x: Node, rank: number, axis: number): Node {
  return reshape(
    b,
    x,
    Array.from({ length: rank }, (_, i) => (i === axis ? dims(x)[0]! : 1)),
  );
}

/**
 * The p-norm over axes, kept with size 1. Its derivative at the zero vector is 0, and below 1 that
 * of each zero.
 */
export function normOf(b: GraphBuilder, x: Node, p: number, axes: readonly number[]): Node {
  const size = unary(b, 'abs', x);
  const total = (node: Node): Node => reduceKeep(b, 'sum', node, axes);
  if (Math.abs(p) === Infinity) {
    const extreme = reduceKeep(b, p > 0 ? 'max' : 'min', stopGradient(b, size), axes);
    return withRule(b, extreme, [isComplex(x.dtype) ? size : x], extremeNormRule);
  }
  if (p === 0) return total(cast(b, binary(b, 'ne', x, 0), size.dtype));
  if (p === 1) return total(size);
  if (p === 2) return safeSqrt(b, total(squaredSize(b, x)));
  if (p < 0) {
    const value = binary(b, 'pow', total(binary(b, 'pow', stopGradient(b, size), p)), 1 / p);
    return withRule(b, value, [size, constant(b, p, size.dtype)], powerNormRule);
  }
  const powers = p < 1 ? powerOrZero(b, size, p) : binary(b, 'pow', size, p);
  return powerOrZero(b, total(powers), 1 / p);
}

/** g·x·|x|^(p−2)/‖x‖^(p−1), by shares |x|/‖x‖, which neither overflow nor vanish. */
export const powerNormRule: CustomRule = (b, [x, p], value, g) => {
  const none = binary(b, 'eq', value, 0);
  const safe = where(b, none, fullLike(b, value, 1), value);
  const share = div(b, unary(b, 'abs', x!), spreadTo(b, safe, x!));
  const still = binary(b, 'eq', share, 0);
  const positive = where(b, still, fullLike(b, share, 1), share);
  const power = binary(b, 'pow', positive, sub(b, spreadTo(b, p!, x!), 1));
  const turned = mul(b, mul(b, spreadTo(b, g, x!), unary(b, 'sign', x!)), power);
  return [where(b, binary(b, 'or', still, spreadTo(b, none, x!)), fullLike(b, turned, 0), turned), undefined];
};

/** xᵖ of x ≥ 0 and p > 0, with derivative 0 at 0. */
function powerOrZero(b: GraphBuilder, x: Node, p: number): Node {
  const zero = binary(b, 'eq', x, 0);
  return where(b, zero, fullLike(b, x, 0), binary(b, 'pow', where(b, zero, fullLike(b, x, 1), x), p));
}

/** Where |x| is the extremum, or NaN, an equal share of sign(x)·g; nothing elsewhere. */
const extremeNormRule: CustomRule = (b, [x], value, g) => {
  const axes = dims(x!).flatMap((dim, axis) => (dims(value)[axis] === dim ? [] : [axis]));
  const holds = binary(b, 'or', binary(b, 'eq', unary(b, 'abs', x!), spreadTo(b, value, x!)), isNan(b, x!));
  const share = div(b, g, reduceKeep(b, 'sum', cast(b, holds, x!.dtype), axes));
  return [where(b, holds, mul(b, spreadTo(b, share, x!), unary(b, 'sign', x!)), fullLike(b, x!, 0))];
};

/** The i32 positions of the elements along an axis in order. */
export function orderOf(b: GraphBuilder, x: Node, axis: number, descending: boolean): Node {
  return b.add('argSort', [x], { axis, descending });
}
