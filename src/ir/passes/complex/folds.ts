// Products of many complex numbers, which are not a pair of real folds. A reduction multiplies halves until
// one element is left, and a scan combines elements at growing distances (Hillis and Steele, "Data parallel
// algorithms", 1986).

import { fullLike, reshape, slice } from '../../build.ts';
import { dims, type GraphBuilder, type Node } from '../../graph.ts';
import type { Attrs } from '../../ops.ts';
import { pair, pairOfReal, times, type ComplexPair } from './pair.ts';

/** Elements `from` to `to` along an axis. */
function stretch(
  b: GraphBuilder,
  { re, im }: ComplexPair,
  axis: number,
  from: number,
  to: number,
): ComplexPair {
  const shape = dims(re);
  const start = shape.map(() => 0).with(axis, from);
  const size = shape.with(axis, to - from);
  return pair(slice(b, re, start, size), slice(b, im, start, size));
}

function productAlong(b: GraphBuilder, z: ComplexPair, axis: number): ComplexPair {
  let rest = z;
  let odd: ComplexPair | undefined;
  for (let n = dims(z.re)[axis]!; n > 1; n = Math.floor(n / 2)) {
    const half = Math.floor(n / 2);
    if (n % 2 === 1) {
      const last = stretch(b, rest, axis, n - 1, n);
      odd = odd === undefined ? last : times(b, odd, last);
    }
    rest = times(b, stretch(b, rest, axis, 0, half), stretch(b, rest, axis, half, 2 * half));
  }
  return odd === undefined ? rest : times(b, rest, odd);
}

/** The product over axes, which are removed. */
export function product(b: GraphBuilder, z: ComplexPair, axes: readonly number[]): ComplexPair {
  const shape = dims(z.re);
  const kept = shape.filter((_, axis) => !axes.includes(axis));
  if (axes.some((axis) => shape[axis] === 0)) {
    // Nothing is multiplied: a sum over nothing, and 1.
    const none = b.add('reduce', [z.re], { monoid: 'sum', axes }) as Node;
    return pairOfReal(b, fullLike(b, none, 1));
  }
  const folded = axes.reduce((at, axis) => productAlong(b, at, axis), z);
  return pair(reshape(b, folded.re, kept), reshape(b, folded.im, kept));
}

/** Each element `by` places further along an axis (or back), ones coming in. */
function shifted(b: GraphBuilder, z: ComplexPair, axis: number, by: number, back: boolean): ComplexPair {
  const n = dims(z.re)[axis]!;
  const kept = stretch(b, z, axis, back ? by : 0, back ? n : n - by);
  const none = dims(z.re).map(() => 0);
  const ends = none.with(axis, by);
  const filled = (x: Node, value: number): Node =>
    b.add('pad', [x], {
      low: back ? none : ends,
      high: back ? ends : none,
      interior: none,
      value,
    }) as Node;
  return pair(filled(kept.re, 1), filled(kept.im, 0));
}

/** Running products. */
export function products(
  b: GraphBuilder,
  z: ComplexPair,
  { axis, reverse, exclusive }: Attrs<'scan'>,
): ComplexPair {
  const n = dims(z.re)[axis]!;
  let running = exclusive && n > 0 ? shifted(b, z, axis, 1, reverse) : z;
  for (let by = 1; by < n; by *= 2) running = times(b, running, shifted(b, running, axis, by, reverse));
  return running;
}
