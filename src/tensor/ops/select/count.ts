// Results whose size only the data knows. A count of the elements is read back before the result is
// recorded; or the caller fixes the size, and is given the count as a tensor beside a result that is
// cut off or filled up. True elements are found by a running count and a binary search in it:
// nothing is scattered, so no order has to be kept (Billeter, Olsson and Assarsson, 2009).

import * as arg from '../../../ir/arguments.ts';
import { add, binary, cast, full, reduce, reshape, sub, where } from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { sizeOf } from '../../../ir/shape.ts';
import type { CustomRule } from '../../../autograd/custom.ts';
import { iota, withRule } from '../../formula/elementwise.ts';

/** Results of a size that is known beforehand. */
export interface Sized {
  /**
   * How many elements the result has: what is beyond them is cut off, what is missing is 0. Such a
   * result needs no read, and comes with the count of all as a tensor.
   */
  readonly size: number;
}

/** Results that are as large as the data asks for. */
export interface Unsized {
  readonly size?: undefined;
}

/** @internal */
export const sizeOption: arg.Kind<number> = arg.count(0);

/** How many elements of a flat mask are true, from the first to each: i32. @internal */
export function runningCount(b: GraphBuilder, mask: Node): Node {
  const attrs = { monoid: 'sum', axis: 0, reverse: false, exclusive: false } as const;
  return b.add('scan', [cast(b, mask, 'i32')], attrs) as Node;
}

/** How many elements of a mask are true: rank 0, i32. @internal */
export function countTrue(b: GraphBuilder, mask: Node): Node {
  return reduce(
    b,
    'sum',
    cast(b, mask, 'i32'),
    dims(mask).map((_, axis) => axis),
  );
}

/**
 * The positions of the first `size` true elements, by the running count of a flat mask: i32. Those
 * that are not there stand behind the last element, where reads give 0.
 *
 * @internal
 */
export function truePlaces(b: GraphBuilder, running: Node, size: number): Node {
  const ranks = iota(b, [size], 0);
  const found = b.add('searchSorted', [running, add(b, ranks, 1)], { right: false });
  return found as Node;
}

/** The first `size` elements of a flat x where a flat mask is true; 0 for those that are missing. @internal */
export function compacted(b: GraphBuilder, x: Node, mask: Node, size: number): Node {
  const places = truePlaces(b, runningCount(b, mask), size);
  const chosen = b.add('gather', [x, places], { axis: 0 }) as Node;
  return withRule(b, chosen, [x, mask], compactedRule);
}

/** What was compacted goes back to where the mask is true. */
const compactedRule: CustomRule = (b, [, mask], _value, g) => [spreadBack(b, g, mask!), undefined];

/** Element r of flat `values` where a flat mask is true for the r-th time; 0 elsewhere. @internal */
export function spreadBack(b: GraphBuilder, values: Node, mask: Node): Node {
  const ranks = sub(b, runningCount(b, mask), 1);
  const chosen = b.add('gather', [values, ranks], { axis: 0 }) as Node;
  const kept = where(b, mask, chosen, full(b, dims(mask), 0, values.dtype));
  return withRule(b, kept, [values, mask], spreadBackRule);
}

const spreadBackRule: CustomRule = (b, [values, mask], _value, g) => [
  compacted(b, g, mask!, dims(values!)[0]!),
  undefined,
];

/** Positions in C-order as one position an axis: i32 of one more axis, of as many elements as axes. @internal */
export function unraveled(b: GraphBuilder, flat: Node, shape: readonly number[]): Node[] {
  let stride = sizeOf(shape);
  return shape.map((dim) => {
    stride = dim === 0 ? 0 : stride / dim;
    const line = stride <= 1 ? flat : binary(b, 'div', flat, stride);
    return dim <= 1 ? full(b, dims(flat), 0, 'i32') : binary(b, 'mod', line, dim);
  });
}

/** x in C-order as one line. @internal */
export function flattened(b: GraphBuilder, x: Node): Node {
  return reshape(b, x, [sizeOf(dims(x))]);
}
