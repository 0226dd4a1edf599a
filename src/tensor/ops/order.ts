// Sorting by ranks: an element's place is the number of elements that come before it, so all places are found at once by n²
// comparisons that never meet memory. Stable in both directions; NaN counts as the greatest.

import { binary, broadcast, cast, full, reduce, reshape, unary } from '../../ir/build.ts';
import { isFloat } from '../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../ir/graph.ts';
import { iota, isNan, stopGradient } from './formula.ts';

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
