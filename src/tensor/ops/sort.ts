// Sorting by ranks: an element's place is the number of elements that come before it, so all places are found at once by n²
// comparisons that never meet memory. Stable in both directions; NaN counts as the greatest.

import { TensorError } from '../../errors.ts';
import { binary, broadcast, cast, full, reduce, reshape, unary } from '../../ir/build.ts';
import { isFloat } from '../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../ir/graph.ts';
import { normalizeAxis } from '../../ir/shape.ts';
import { recordMany } from '../record.ts';
import type { Tensor } from '../tensor.ts';
import { iota, isNan, stopGradient } from './formula.ts';
import { sliceAxis } from './movement.ts';
import { apply, show } from './operand.ts';

/** The element comes strictly before the other one; NaN after everything. */
function precedes(b: GraphBuilder, one: Node, other: Node): Node {
  const less = binary(b, 'lt', one, other);
  if (!isFloat(one.dtype)) return less;
  return binary(b, 'or', less, binary(b, 'and', isNan(b, other), unary(b, 'not', isNan(b, one))));
}

/** i32 positions of the elements in sorted order along an axis. */
export function orderOf(b: GraphBuilder, x: Node, axis: number, descending: boolean): Node {
  const shape = dims(x);
  const size = shape[axis]!;
  const [before, after] = [shape.slice(0, axis), shape.slice(axis + 1)];
  const square = [...before, size, size, ...after];
  const fixed = stopGradient(b, x.dtype === 'bool' ? cast(b, x, 'i32') : x);
  // Element i runs along `axis`, the elements j it is compared with along the next one.
  const one = broadcast(b, reshape(b, fixed, [...before, size, 1, ...after]), square);
  const other = broadcast(b, reshape(b, fixed, [...before, 1, size, ...after]), square);
  const first = descending ? precedes(b, one, other) : precedes(b, other, one);
  const second = descending ? precedes(b, other, one) : precedes(b, one, other);
  const earlier = binary(b, 'lt', iota(b, square, axis + 1), iota(b, square, axis));
  const tie = binary(b, 'and', earlier, unary(b, 'not', binary(b, 'or', first, second)));
  const rank = reduce(b, 'sum', cast(b, binary(b, 'or', first, tie), 'i32'), [axis + 1]);
  return b.add('scatter', [full(b, shape, 0, 'i32'), rank, iota(b, shape, axis)], { axis, mode: 'set' });
}

export interface SortOptions {
  /** From the largest to the smallest; false by default. */
  readonly descending?: boolean;
}

/** Rank 0 sorts as one element. */
function row(x: Tensor): readonly number[] {
  return x.rank === 0 ? [1] : x.shape;
}

/** The elements along an axis in order, and their i32 positions; equal ones keep theirs, NaN counts as the greatest. */
export function sort(x: Tensor, axis = -1, options: SortOptions = {}): [values: Tensor, indices: Tensor] {
  return sorted('sort', x, axis, options.descending === true, undefined);
}

/** The i32 positions of the elements along an axis in order. */
export function argsort(x: Tensor, axis = -1, options: SortOptions = {}): Tensor {
  const at = normalizeAxis('argsort', axis, Math.max(1, x.rank));
  return apply([x], (b, node) => {
    const order = orderOf(b, reshape(b, node, row(x)), at, options.descending === true);
    return reshape(b, order, x.shape);
  });
}

export interface TopkOptions {
  /** The largest (default) or the smallest. */
  readonly largest?: boolean;
}

/** The k largest (or smallest) elements along an axis, best first, and their i32 positions. */
export function topk(
  x: Tensor,
  k: number,
  axis = -1,
  options: TopkOptions = {},
): [values: Tensor, indices: Tensor] {
  const size = x.shape.at(axis) ?? 1;
  if (!Number.isInteger(k) || k < 0 || k > size) {
    throw new TensorError('E_VALUE', 'topk', `cannot choose ${k} of ${size} elements: ${show(x)}`);
  }
  return sorted('topk', x, axis, options.largest !== false, k);
}

function sorted(
  op: string,
  x: Tensor,
  axis: number,
  descending: boolean,
  count: number | undefined,
): [values: Tensor, indices: Tensor] {
  const at = normalizeAxis(op, axis, Math.max(1, x.rank));
  const [values, indices] = recordMany([x], (b, [node]) => {
    const line = reshape(b, node!, row(x));
    const order = orderOf(b, line, at, descending);
    const places = count === undefined ? order : sliceAxis(b, order, at, 0, count);
    const chosen = b.add('gather', [line, places], { axis: at }) as Node;
    return x.rank === 0 && count !== 0
      ? [chosen, places].map((result) => reshape(b, result, []))
      : [chosen, places];
  });
  return [values!, indices!];
}
