// Batches reads and writes at indices, and sorted searches. A value that all examples read from stays
// single: their indices are laid one behind the other along the axis.

import { broadcast, constant, reshape, where, bounded } from '../../ir/build.ts';
import { dims, type Node } from '../../ir/graph.ts';
import { foldInto, lead, unfoldFrom, type BatchRule } from './rule.ts';

export const gatherRule: BatchRule<'gather'> = (batch, node, [operand, indices]) => {
  const { b, size } = batch;
  const { axis } = node.attrs;
  if (operand!.isMapped)
    return b.add('gather', [operand!.node, lead(batch, indices!)], { axis: axis + 1 }) as Node;
  const found = b.add('gather', [operand!.node, foldInto(b, indices!.node, axis)], { axis });
  return unfoldFrom(b, found as Node, axis, size, node as Node);
};

export const searchRule: BatchRule<'searchSorted'> = (batch, node, [boundaries, values]) => {
  const { b, size } = batch;
  const { attrs } = node;
  if (boundaries!.isMapped)
    return b.add('searchSorted', [boundaries!.node, lead(batch, values!)], attrs) as Node;
  const last = values!.node.shape.length - 2;
  const found = b.add('searchSorted', [boundaries!.node, foldInto(b, values!.node, last)], attrs);
  return unfoldFrom(b, found as Node, last, size, node as Node);
};

/** A triangle that all examples share is solved for all their right-hand sides at once. */
export const factorRule: BatchRule<'factor'> = (batch, node, operands) => {
  const { b, size } = batch;
  const { attrs } = node;
  const [first, second] = operands;
  if (second !== undefined && !first!.isMapped) {
    const solved = b.add('factor', [first!.node, foldInto(b, second.node, 2)], attrs);
    return unfoldFrom(b, solved as Node, 2, size, node as Node);
  }
  return onLines(batch, operands, (nodes) => b.add('factor', nodes, attrs) as Node);
};

/** An op on stacks whose first axis counts lines, with the batch folded into it. */
export function onLines(
  batch: Parameters<BatchRule>[0],
  operands: Parameters<BatchRule>[2],
  make: (nodes: readonly Node[]) => Node,
): Node {
  const { b, size } = batch;
  const wholes = operands.map((operand) => lead(batch, operand));
  const result = make(
    wholes.map((whole) => {
      const [, lines, ...rest] = whole.shape as readonly number[];
      return reshape(b, whole, [size * lines!, ...rest]);
    }),
  );
  // Of one example, not of the batch by its size, which may be 0.
  const lines = wholes[0]!.shape[1] as number;
  const [, ...rest] = result.shape as readonly number[];
  return reshape(b, result, [size, lines, ...rest]);
}

/** A bound that each example has for itself is a mask: what is beyond the largest is used by none, but no number says so. */
export const boundedRule: BatchRule<'bounded'> = (batch, { attrs: { axis } }, [value, n]) => {
  const { b } = batch;
  if (!n!.isMapped) return bounded(b, value!.node, axis + 1, n!.node);
  const whole = lead(batch, value!);
  const shape = dims(whole);
  const each = reshape(b, n!.node, [batch.size, ...shape.slice(1).map(() => 1)]);
  const place = b.add('iota', [], { shape, axis: axis + 1, dtype: 'i32' }) as Node;
  const isKept = b.add('lt', [place, broadcast(b, each, shape)], {}) as Node;
  const zero = broadcast(b, constant(b, 0, whole.dtype), shape);
  return where(b, isKept, whole, zero);
};
