// Transforms as nodes, of real and imaginary parts. Real signals of even length are transformed as
// complex ones of half the length, whose parts are the even and the odd elements.

import { add, broadcast, fullLike, mul, neg, permute, reshape, slice, sub } from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import type { FixedShape } from '../../../ir/shape.ts';
import { concat, padConstant, sliceAxis } from '../../formula/layout.ts';

/** Real and imaginary parts of one shape. @internal */
export interface Parts {
  readonly re: Node;
  readonly im: Node;
}

/** Either part by the same operation. @internal */
export function eachPart({ re, im }: Parts, f: (part: Node) => Node): Parts {
  return { re: f(re), im: f(im) };
}

/** Elements from `start` on along an axis; zeros where there are fewer. @internal */
export function resized(b: GraphBuilder, x: Node, axis: number, size: number): Node {
  const present = dims(x)[axis]!;
  if (present >= size) return sliceAxis(b, x, axis, 0, size);
  const none = dims(x).map(() => 0);
  return padConstant(b, x, none, none.with(axis, size - present), 0);
}

/** Complex to complex, not scaled. @internal */
export function complexTransform(
  b: GraphBuilder,
  x: Parts,
  table: Node,
  axis: number,
  inverse: boolean,
): Parts {
  const shape = dims(x.re);
  const part = (of: Node): Node => reshape(b, of, [...shape, 1]);
  const found = pairTransform(b, concat(b, [part(x.re), part(x.im)], shape.length), table, axis, inverse);
  const of = (which: number): Node =>
    reshape(b, slice(b, found, [...shape.map(() => 0), which], [...shape, 1]), shape);
  return { re: of(0), im: of(1) };
}

function pairTransform(b: GraphBuilder, pairs: Node, table: Node, axis: number, inverse: boolean): Node {
  return b.add('fft', [pairs, table], { axis, inverse }) as Node;
}

/** Roots of unity along an axis, as they broadcast over a shape. */
function rootsAlong(b: GraphBuilder, roots: Node, shape: FixedShape, axis: number): Parts {
  const total = dims(roots)[0]! / 2;
  const count = shape[axis]!;
  const alone = shape.map((_, i) => (i === axis ? count : 1));
  const of = (start: number): Node =>
    broadcast(b, reshape(b, sliceAxis(b, roots, 0, start, count), alone), shape);
  return { re: of(0), im: of(total) };
}

/** The tables that a real transform of n points takes: that of its plan, and roots of unity. @internal */
export interface RealTables {
  readonly table: Node;
  /** Of even lengths. */
  readonly roots: Node | undefined;
}

/** The first half of the spectrum of a real signal, n/2 + 1 points, not scaled. @internal */
export function realTransform(b: GraphBuilder, x: Node, tables: RealTables, axis: number): Parts {
  const n = dims(x)[axis]!;
  const count = Math.floor(n / 2) + 1;
  const { table, roots } = tables;
  if (roots === undefined) {
    const whole = complexTransform(b, { re: x, im: fullLike(b, x, 0) }, table, axis, false);
    return eachPart(whole, (part) => sliceAxis(b, part, axis, 0, count));
  }
  const half = complexTransform(b, evenAndOdd(b, x, axis), table, axis, false);
  const first = eachPart(half, (part) => concat(b, [part, sliceAxis(b, part, axis, 0, 1)], axis));
  // Z of the even and odd elements' spectra: (Zₖ + Z̄₋ₖ)/2 and (Zₖ − Z̄₋ₖ)/2i.
  const mirrored = eachPart(first, (part) => reversed(b, part, axis));
  const halved = (node: Node): Node => mul(b, node, 0.5);
  const even = {
    re: halved(add(b, first.re, mirrored.re)),
    im: halved(sub(b, first.im, mirrored.im)),
  };
  const odd = { re: halved(sub(b, first.re, mirrored.re)), im: halved(add(b, first.im, mirrored.im)) };
  const w = rootsAlong(b, roots, dims(first.re), axis);
  return {
    re: add(b, even.re, add(b, mul(b, odd.re, w.im), mul(b, odd.im, w.re))),
    im: add(b, even.im, sub(b, mul(b, odd.im, w.im), mul(b, odd.re, w.re))),
  };
}

/**
 * The real signal of n points whose spectrum begins with these n/2 + 1, not scaled. The imaginary
 * parts of the first one, and of the middle one, are taken for 0.
 *
 * @internal
 */
export function realInverse(b: GraphBuilder, x: Parts, n: number, tables: RealTables, axis: number): Node {
  const count = Math.floor(n / 2) + 1;
  const { table, roots } = tables;
  const shape = dims(x.re);
  const none = shape.map(() => 0);
  const last = n % 2 === 0 ? 1 : 0;
  const inner = Math.max(0, count - 1 - last);
  const im =
    inner === 0
      ? fullLike(b, x.im, 0)
      : padConstant(b, sliceAxis(b, x.im, axis, 1, inner), none.with(axis, 1), none.with(axis, last), 0);
  if (roots === undefined) {
    const rest = (part: Node): Node => reversed(b, sliceAxis(b, part, axis, 1, count - 1), axis);
    const whole =
      count === 1
        ? { re: x.re, im }
        : { re: concat(b, [x.re, rest(x.re)], axis), im: concat(b, [im, neg(b, rest(im))], axis) };
    return complexTransform(b, whole, table, axis, true).re;
  }
  const half = n / 2;
  const head = { re: sliceAxis(b, x.re, axis, 0, half), im: sliceAxis(b, im, axis, 0, half) };
  const back = (part: Node): Node => reversed(b, sliceAxis(b, part, axis, 1, half), axis);
  const mirrored = { re: back(x.re), im: back(im) };
  const even = { re: add(b, head.re, mirrored.re), im: sub(b, head.im, mirrored.im) };
  const odd = { re: sub(b, head.re, mirrored.re), im: add(b, head.im, mirrored.im) };
  const w = rootsAlong(b, roots, dims(head.re), axis);
  const joined = {
    re: add(b, even.re, sub(b, mul(b, odd.re, w.im), mul(b, odd.im, w.re))),
    im: add(b, even.im, add(b, mul(b, odd.im, w.im), mul(b, odd.re, w.re))),
  };
  return interleaved(b, complexTransform(b, joined, table, axis, true), axis);
}

/** Even elements along an axis, and odd ones. */
function evenAndOdd(b: GraphBuilder, x: Node, axis: number): Parts {
  const shape = dims(x);
  const half = shape[axis]! / 2;
  const pairs = reshape(b, x, [...shape.slice(0, axis), half, 2, ...shape.slice(axis + 1)]);
  const of = (which: number): Node =>
    reshape(b, sliceAxis(b, pairs, axis + 1, which, 1), shape.with(axis, half));
  return { re: of(0), im: of(1) };
}

/** What `evenAndOdd` takes apart. */
function interleaved(b: GraphBuilder, { re, im }: Parts, axis: number): Node {
  const shape = dims(re);
  const part = (of: Node): Node => reshape(b, of, [...shape, 1]);
  const pairs = concat(b, [part(re), part(im)], shape.length);
  const order = shape.map((_, i) => i);
  order.splice(axis + 1, 0, shape.length);
  return reshape(b, permute(b, pairs, order), shape.with(axis, 2 * shape[axis]!));
}

/** @internal */
export function reversed(b: GraphBuilder, x: Node, axis: number): Node {
  const shape = dims(x);
  const start = shape.map((size, i) => (i === axis ? Math.max(0, size - 1) : 0));
  return slice(
    b,
    x,
    start,
    shape,
    shape.map((_, i) => (i === axis ? -1 : 1)),
  );
}
