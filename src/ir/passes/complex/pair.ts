// Complex numbers as pairs of real nodes, and what is built of pairs: arithmetic, moduli, angles.
// Formulas keep apart what would overflow or cancel; a part that is plainly 0, as that of a real
// number made complex, is left out of products.

import {
  add,
  binary,
  broadcast,
  cast,
  div,
  fullLike,
  isInfiniteFloat,
  isZero,
  mul,
  neg,
  reshape,
  signBit,
  slice,
  sub,
  unary,
  where,
} from '../../build.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../../graph.ts';

/** re + im·i. */
export interface ComplexPair {
  readonly re: Node;
  readonly im: Node;
}

export const pair = (re: Node, im: Node): ComplexPair => ({ re, im });

/** A real node as a pair. */
export function pairOfReal(b: GraphBuilder, x: Node): ComplexPair {
  return pair(x, fullLike(b, x, 0));
}

/** The parts of what lies in memory as f32[…,2]. */
export function partsOf(b: GraphBuilder, stored: Node): ComplexPair {
  const shape = dims(stored);
  const last = shape.length - 1;
  const size = shape.with(last, 1);
  const part = (k: number): Node =>
    reshape(b, slice(b, stored, shape.map(() => 0).with(last, k), size), shape.slice(0, -1));
  return pair(part(0), part(1));
}

/** The pair side by side along a new last axis, as it lies in memory. */
export function interleaved(b: GraphBuilder, z: ComplexPair): Node {
  const whole = wholeOf(z);
  if (whole !== undefined) return whole;
  const shape = [...dims(z.re), 1];
  const parts = [reshape(b, z.re, shape), reshape(b, z.im, shape)];
  return b.add('concat', parts, { axis: shape.length - 1 }) as Node;
}

/** What both parts were taken from by `partsOf`, if they were. */
export function wholeOf({ re, im }: ComplexPair): Node | undefined {
  const [first, second] = [sliced(re), sliced(im)];
  if (first === undefined || second === undefined || second.inputs[0] !== first.inputs[0]) return undefined;
  const whole = first.inputs[0]!;
  const isPart = (part: NodeOf<'slice'>, k: number): boolean =>
    part.attrs.start.every((at, axis) => at === (axis === whole.shape.length - 1 ? k : 0)) &&
    part.attrs.step.every((step) => step === 1) &&
    part.shape.every((dim, axis) => dim === (axis === whole.shape.length - 1 ? 1 : whole.shape[axis]));
  return whole.shape.at(-1) === 2 && isPart(first, 0) && isPart(second, 1) ? whole : undefined;
}

/** The slice behind the reshape that drops its last axis. */
function sliced(part: Node): NodeOf<'slice'> | undefined {
  if (part.op !== 'reshape') return undefined;
  const from = part.inputs[0]!;
  return from.op === 'slice' && from.shape.length === part.shape.length + 1 ? from : undefined;
}

export const isReal = ({ im }: ComplexPair): boolean => isZero(im);

export function plus(b: GraphBuilder, z: ComplexPair, w: ComplexPair): ComplexPair {
  return pair(add(b, z.re, w.re), add(b, z.im, w.im));
}

export function minus(b: GraphBuilder, z: ComplexPair, w: ComplexPair): ComplexPair {
  return pair(sub(b, z.re, w.re), sub(b, z.im, w.im));
}

/** (a + bi)·(c + di) = ac − bd + (ad + bc)i. */
export function times(b: GraphBuilder, z: ComplexPair, w: ComplexPair): ComplexPair {
  if (isReal(w)) return scaled(b, z, w.re);
  if (isReal(z)) return scaled(b, w, z.re);
  return pair(sub(b, mul(b, z.re, w.re), mul(b, z.im, w.im)), add(b, mul(b, z.re, w.im), mul(b, z.im, w.re)));
}

/** By a real node or number. */
export function scaled(b: GraphBuilder, z: ComplexPair, by: Node | number): ComplexPair {
  return pair(mul(b, z.re, by), mul(b, z.im, by));
}

/** Both parts, side by side, by a real node. */
export function scaledWhole(b: GraphBuilder, whole: Node, by: Node, shape: readonly number[]): Node {
  return mul(b, whole, broadcast(b, reshape(b, by, [...dims(by), 1]), shape));
}

/**
 * Smith's division ("Algorithm 116", 1962): by the ratio of the divisor's parts, the larger one
 * below, so that no square overflows. By 0 it divides part by part.
 */
export function over(b: GraphBuilder, z: ComplexPair, w: ComplexPair): ComplexPair {
  if (isReal(w)) return pair(div(b, z.re, w.re), div(b, z.im, w.re));
  const flat = binary(b, 'le', unary(b, 'abs', w.im), unary(b, 'abs', w.re));
  const either = (x: Node, y: Node): Node => where(b, flat, x, y);
  const [low, high] = [either(w.im, w.re), either(w.re, w.im)];
  const nothing = isNought(b, w);
  const ratio = where(b, nothing, fullLike(b, high, 0), div(b, low, high));
  const below = where(b, nothing, fullLike(b, high, 0), add(b, high, mul(b, low, ratio)));
  const [first, second] = [either(z.re, z.im), either(z.im, z.re)];
  const cross = where(b, nothing, second, sub(b, second, mul(b, first, ratio)));
  const along = where(b, nothing, first, add(b, first, mul(b, second, ratio)));
  return pair(div(b, along, below), div(b, either(cross, neg(b, cross)), below));
}

/**
 * The larger modulus of the parts, and the ratio of the smaller one to it: 1 where they are equal.
 * A number with an infinite part is as large as infinity, also if its other part is not a number.
 */
function ordered(
  b: GraphBuilder,
  z: ComplexPair,
): { readonly large: Node; readonly ratio: Node; readonly small: Node } {
  const [x, y] = [unary(b, 'abs', z.re), unary(b, 'abs', z.im)];
  const [most, small] = [binary(b, 'max', x, y), binary(b, 'min', x, y)];
  const infinite = isInfinite(b, z);
  const large = where(b, infinite, fullLike(b, most, Infinity), most);
  const same = binary(b, 'or', infinite, binary(b, 'eq', small, most));
  return { large, small, ratio: where(b, same, fullLike(b, large, 1), div(b, small, most)) };
}

/** Whether a part is infinite, as in Annex G of C: whatever the other part is. */
export function isInfinite(b: GraphBuilder, z: ComplexPair): Node {
  return binary(b, 'or', isInfiniteFloat(b, z.re), isInfiniteFloat(b, z.im));
}

/** |z|, by the larger part, so that no square overflows. */
export function modulus(b: GraphBuilder, z: ComplexPair): Node {
  if (isReal(z)) return unary(b, 'abs', z.re);
  const { large, ratio } = ordered(b, z);
  return mul(b, large, unary(b, 'sqrt', add(b, mul(b, ratio, ratio), 1)));
}

/** log |z|: near 1 by the distance from 1, of which the logarithm itself would lose the digits. */
export function logModulus(b: GraphBuilder, z: ComplexPair): Node {
  const { large, small, ratio } = ordered(b, z);
  const near = binary(b, 'and', binary(b, 'le', large, 2), binary(b, 'lt', fullLike(b, large, 0.5), large));
  const rest = add(b, mul(b, sub(b, large, 1), add(b, large, 1)), mul(b, small, small));
  const far = add(b, unary(b, 'log', large), mul(b, unary(b, 'log1p', mul(b, ratio, ratio)), 0.5));
  const safe = where(b, near, rest, fullLike(b, rest, 0));
  return where(b, near, mul(b, unary(b, 'log1p', safe), 0.5), far);
}

/** The angle of z in (−π, π]. */
export function angle(b: GraphBuilder, z: ComplexPair): Node {
  return binary(b, 'atan2', z.im, z.re);
}

/** A size ≥ 0 with the sign of y, which may be −0: it tells the sides of a branch cut apart. */
export function withSign(b: GraphBuilder, size: Node, y: Node): Node {
  return where(b, signBit(b, y), neg(b, size), size);
}

/** z·i. */
export const turned = (b: GraphBuilder, z: ComplexPair): ComplexPair => pair(neg(b, z.im), z.re);
/** z·(−i). */
export const turnedBack = (b: GraphBuilder, z: ComplexPair): ComplexPair => pair(z.im, neg(b, z.re));

/** A condition for both parts. */
export function choose(b: GraphBuilder, when: Node, z: ComplexPair, w: ComplexPair): ComplexPair {
  return pair(where(b, when, z.re, w.re), where(b, when, z.im, w.im));
}

export function isNought(b: GraphBuilder, z: ComplexPair): Node {
  return binary(b, 'and', binary(b, 'eq', z.re, 0), binary(b, 'eq', z.im, 0));
}

/** Both parts in another dtype. */
export function converted(b: GraphBuilder, z: ComplexPair, dtype: Node['dtype']): ComplexPair {
  return pair(cast(b, z.re, dtype), cast(b, z.im, dtype));
}
