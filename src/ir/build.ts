// Node constructors: one small function per common op, so that rules and passes read like formulas.
// Views that would change nothing give their input back.

import { showValue, TensorError } from '../errors.ts';
import { isComplex, partType, type DType } from './dtype.ts';
import { dims, GraphBuilder, type Node } from './graph.ts';
import type { BinaryOp, Monoid, UnaryOp } from './ops.ts';
import { sameShape, type FixedShape } from './shape.ts';

export function unary(b: GraphBuilder, op: Exclude<UnaryOp, 'cast' | 'bitcast'>, x: Node): Node {
  return b.add(op, [x], {}) as Node;
}

/** Operands of one shape and dtype; a number becomes a constant of the other operand's type. */
export function binary(b: GraphBuilder, op: BinaryOp, x: Node | number, y: Node | number): Node {
  checkNumber(op, x);
  checkNumber(op, y);
  const like = typeof x === 'number' ? (y as Node) : x;
  const [left, right] = [
    typeof x === 'number' ? fullLike(b, like, x) : x,
    typeof y === 'number' ? fullLike(b, like, y) : y,
  ];
  return b.add(op, [left, right], {}) as Node;
}

/** Options of operations arrive here as numbers; JavaScript users may have passed anything. */
function checkNumber(op: string, value: unknown): void {
  if (typeof value === 'number' || typeof value === 'bigint' || (typeof value === 'object' && value !== null))
    return;
  throw new TensorError('E_VALUE', op, `expects a number, got ${showValue(value)}`);
}

export const add = (b: GraphBuilder, x: Node | number, y: Node | number): Node => binary(b, 'add', x, y);
export const sub = (b: GraphBuilder, x: Node | number, y: Node | number): Node => binary(b, 'sub', x, y);
export const mul = (b: GraphBuilder, x: Node | number, y: Node | number): Node => binary(b, 'mul', x, y);
export const div = (b: GraphBuilder, x: Node | number, y: Node | number): Node => binary(b, 'div', x, y);
export const neg = (b: GraphBuilder, x: Node): Node => unary(b, 'neg', x);

/** Whether the sign bit of a float is set: of −0 too. */
export function signBit(b: GraphBuilder, x: Node): Node {
  const bits = b.add('bitcast', [x], { dtype: x.dtype === 'f64' ? 'i64' : 'i32' }) as Node;
  return binary(b, 'lt', bits, 0);
}

/**
 * Whether a float is neither NaN nor ±∞. f32 tests the exponent's bits, since shader compilers may
 * assume that every value is finite.
 */
export function isFiniteFloat(b: GraphBuilder, x: Node): Node {
  if (x.dtype === 'f64') return binary(b, 'lt', unary(b, 'abs', x), Infinity);
  return binary(b, 'ne', binary(b, 'and', floatBits(b, x), 0x7f800000), 0x7f800000);
}

/** Whether a float is ±∞, by the bits as `isFiniteFloat`. */
export function isInfiniteFloat(b: GraphBuilder, x: Node): Node {
  if (x.dtype === 'f64') return binary(b, 'eq', unary(b, 'abs', x), Infinity);
  return binary(b, 'eq', binary(b, 'and', floatBits(b, x), 0x7fffffff), 0x7f800000);
}

function floatBits(b: GraphBuilder, x: Node): Node {
  return b.add('bitcast', [cast(b, x, 'f32')], { dtype: 'u32' }) as Node;
}

/** re + im·i. */
export function complex(b: GraphBuilder, re: Node, im: Node): Node {
  return b.add('complex', [re, im], {}) as Node;
}

/** The real part; of a real value itself. */
export function real(b: GraphBuilder, x: Node): Node {
  if (!isComplex(x.dtype)) return x;
  return x.op === 'complex' ? x.inputs[0]! : (b.add('real', [x], {}) as Node);
}

/** The imaginary part; of a real value zeros. */
export function imag(b: GraphBuilder, x: Node): Node {
  if (!isComplex(x.dtype)) return fullLike(b, x, 0);
  return x.op === 'complex' ? x.inputs[1]! : (b.add('imag', [x], {}) as Node);
}

/** The conjugate; of a real value itself. */
export function conj(b: GraphBuilder, x: Node): Node {
  if (!isComplex(x.dtype)) return x;
  return x.op === 'conj' ? x.inputs[0]! : (b.add('conj', [x], {}) as Node);
}

export function where(b: GraphBuilder, condition: Node, x: Node, y: Node): Node {
  return b.add('where', [condition, x, y], {}) as Node;
}

/** A rank-0 constant, converted for complex dtypes; for 64-bit integer dtypes the number becomes a bigint. */
export function constant(b: GraphBuilder, value: number | bigint, dtype: DType): Node {
  checkNumber('constant', value);
  if (isComplex(dtype)) return cast(b, constant(b, value, partType(dtype)), dtype);
  const wide = dtype === 'i64' || dtype === 'u64';
  const stored = wide ? BigInt(value) : Number(value);
  return b.add('constant', [], { value: stored, dtype }) as Node;
}

const purposes = new WeakMap<Node, string>();

/**
 * A rank-0 constant that the same operations have another value of whenever they are recorded again: the
 * rates and bias corrections of an optimizer, the words of the random state. It becomes a run-time
 * scalar of the program, and equal ones of one purpose the same. It is a node of its own, apart from
 * equal numbers that somebody wrote, which may be compiled in; its value must not be used in its place.
 */
export function madeNumber(value: number, dtype: DType, purpose: string): Node {
  const node = new GraphBuilder().add('constant', [], { value, dtype }) as Node;
  purposes.set(node, purpose);
  return node;
}

/** What `madeNumber` made a constant for; undefined for other nodes. */
export function purposeOf(node: Node): string | undefined {
  return purposes.get(node);
}

/** Whether every element is plainly 0: a constant, or views of one. */
export function isZero(node: Node): boolean {
  let at = node;
  while (at.op === 'broadcast' || at.op === 'reshape' || at.op === 'slice') at = at.inputs[0]!;
  return at.op === 'constant' && Object.is(at.attrs.value, 0) && purposeOf(at) === undefined;
}

/** A constant spread over a shape. */
export function full(b: GraphBuilder, shape: FixedShape, value: number | bigint, dtype: DType): Node {
  return broadcast(b, constant(b, value, dtype), shape);
}

export function fullLike(b: GraphBuilder, like: Node, value: number | bigint): Node {
  return full(b, dims(like), value, like.dtype);
}

export function cast(b: GraphBuilder, x: Node, dtype: DType): Node {
  return x.dtype === dtype ? x : (b.add('cast', [x], { dtype }) as Node);
}

export function reshape(b: GraphBuilder, x: Node, shape: FixedShape): Node {
  return sameShape(x.shape, shape) ? x : (b.add('reshape', [x], { shape }) as Node);
}

/**
 * The same value under a node of its own: an identity reshape made outside the interning table.
 * Derivatives with respect to it see only the uses of this very node, so equal values (two tensors
 * of ones) stay separate nodes.
 */
export function distinct(x: Node): Node {
  return new GraphBuilder().add('reshape', [x], { shape: x.shape }) as Node;
}

/**
 * Whether `distinct` made the node. It is a variable then: something may be differentiated with
 * respect to it, now or later, and what is known of the value under it must not be used in its
 * place.
 */
export function isDistinct(node: Node): boolean {
  return node.op === 'reshape' && sameShape(node.shape, node.inputs[0]!.shape);
}

export function permute(b: GraphBuilder, x: Node, order: readonly number[]): Node {
  return order.every((axis, i) => axis === i) ? x : (b.add('permute', [x], { order }) as Node);
}

export function broadcast(b: GraphBuilder, x: Node, shape: FixedShape): Node {
  return sameShape(x.shape, shape) ? x : (b.add('broadcast', [x], { shape }) as Node);
}

/** Removes `axes` (ascending) by the monoid; no axes gives the input back. */
export function reduce(b: GraphBuilder, monoid: Monoid, x: Node, axes: readonly number[]): Node {
  return axes.length === 0 ? x : (b.add('reduce', [x], { monoid, axes }) as Node);
}

/** Reduces and keeps the axes with size 1. */
export function reduceKeep(b: GraphBuilder, monoid: Monoid, x: Node, axes: readonly number[]): Node {
  const kept = dims(x).map((dim, axis) => (axes.includes(axis) ? 1 : dim));
  return reshape(b, reduce(b, monoid, x, axes), kept);
}

/**
 * Inserts axes of `shape` at positions `axes`, repeating `x` along them: the adjoint of a reduction
 * over `axes`.
 */
export function expandAxes(b: GraphBuilder, x: Node, shape: FixedShape, axes: readonly number[]): Node {
  return broadcast(
    b,
    reshape(
      b,
      x,
      shape.map((dim, axis) => (axes.includes(axis) ? 1 : dim)),
    ),
    shape,
  );
}

/** Sums what broadcasting from `shape` to `x`'s shape repeated: the adjoint of `broadcast`. */
export function sumTo(b: GraphBuilder, x: Node, shape: FixedShape): Node {
  const from = dims(x);
  const offset = from.length - shape.length;
  const axes = from.flatMap((dim, axis) =>
    axis < offset || (shape[axis - offset] === 1 && dim !== 1) ? [axis] : [],
  );
  return reshape(b, reduce(b, 'sum', x, axes), shape);
}

/** A strided sub-block: `size` elements from `start`, `step` apart (default 1), on every axis. */
export function slice(
  b: GraphBuilder,
  x: Node,
  start: FixedShape,
  size: FixedShape,
  step?: FixedShape,
): Node {
  const steps = step ?? start.map(() => 1);
  const whole = dims(x).every((dim, axis) => start[axis] === 0 && size[axis] === dim && steps[axis] === 1);
  return whole ? x : (b.add('slice', [x], { start, size, step: steps }) as Node);
}

// A program compiled for the most that there can be (a cache of keys with room for a whole text) often uses the first n
// elements of an axis only, n a number that a run brings. Masks say what lies beyond, the marker that nobody asks for it.

/** Where the index along `axis` is below `n` (i32, rank 0): bool, of `shape`. */
export function isBelow(b: GraphBuilder, shape: readonly number[], axis: number, n: Node): Node {
  const place = b.add('iota', [], { shape, axis, dtype: 'i32' }) as Node;
  return b.add('lt', [place, broadcast(b, n, shape)], {}) as Node;
}

/**
 * `x` at the first `n` (i32, rank 0) elements along `axis`, and `fill` at the others, whatever `x`
 * has there. Before a fold, with what changes nothing (0 under a sum, −∞ under a maximum), it
 * makes the fold run over n elements.
 */
export function below(b: GraphBuilder, x: Node, axis: number, n: Node, fill: number | bigint = 0): Node {
  return where(b, isBelow(b, dims(x), axis, n), x, fullLike(b, x, fill));
}

/**
 * `x` along the first `n` (i32, rank 0; any number) elements of `axis`. What is beyond is
 * unspecified: kernels neither compute nor write it, so that readers have to select it away.
 */
export function bounded(b: GraphBuilder, x: Node, axis: number, n: Node): Node {
  return b.add('bounded', [x, n], { axis }) as Node;
}
