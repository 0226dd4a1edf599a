// Movements of graph nodes that several operations are made of: parts, joins, padding, diagonals.

import { permute, reshape, slice } from '../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../ir/graph.ts';

/** `length` elements of one axis from `start`, `step` apart. */
export function sliceAxis(
  b: GraphBuilder,
  x: Node,
  axis: number,
  start: number,
  length: number,
  step = 1,
): Node {
  const shape = dims(x);
  const pickAt = (other: number, here: number): number[] => shape.map((_, i) => (i === axis ? here : other));
  const sizes = shape.map((dim, i) => (i === axis ? length : dim));
  return slice(b, x, pickAt(0, length === 0 ? 0 : start), sizes, pickAt(1, step));
}

/** The parts after one another along `axis`; empty ones vanish. */
export function concat(b: GraphBuilder, parts: readonly Node[], axis: number): Node {
  const filled = parts.filter((part) => dims(part)[axis] !== 0);
  const kept = filled.length === 0 ? parts.slice(0, 1) : filled;
  return kept.length === 1 ? kept[0]! : b.add('concat', kept, { axis });
}

/** `low` and `high` elements of `value` at the ends of each axis. */
export function padConstant(
  b: GraphBuilder,
  x: Node,
  low: readonly number[],
  high: readonly number[],
  value: number,
): Node {
  if ([...low, ...high].every((n) => n === 0)) return x;
  return b.add('pad', [x], { low, high, interior: low.map(() => 0), value });
}

/**
 * In the matrix laid out flat, neighbours on a diagonal are `columns + 1` apart: a strided slice.
 */
export function diagonalOf(b: GraphBuilder, x: Node, row: number, column: number, offset: number): Node {
  const shape = dims(x);
  const rest = shape.map((_, axis) => axis).filter((axis) => axis !== row && axis !== column);
  const [rows, columns] = [shape[row]!, shape[column]!];
  const length = Math.max(0, Math.min(rows - Math.max(0, -offset), columns - Math.max(0, offset)));
  const flat = reshape(b, permute(b, x, [...rest, row, column]), [
    ...rest.map((axis) => shape[axis]!),
    rows * columns,
  ]);
  const start = offset >= 0 ? offset : -offset * columns;
  return sliceAxis(b, flat, rest.length, start, length, columns + 1);
}
