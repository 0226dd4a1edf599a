// Offsets: where slices begin and how far paddings push, as numbers that may differ between runs of
// one structure. A loop that takes another batch in each step, `x.slice(0, i, i + n)`, is one
// structure with other offsets, and so is its gradient, which pads. An offset that varies becomes a
// run-time scalar of the program: the elements are gathered, and a gather checks every index
// against its axis, so nothing is assumed of the number.

import { add, broadcast, cast, constant, mul, reshape } from '../../ir/build.ts';
import { dims, hashValue, sameAttrs, type GraphBuilder, type Node, type NodeOf } from '../../ir/graph.ts';
import type { FixedShape } from '../../ir/shape.ts';

type Movable = NodeOf<'slice'> | NodeOf<'pad'>;

/**
 * The node, if it is one whose offsets may differ within a structure: indices of its axes fit i32,
 * and gaps read 0.
 */
function movable(node: Node, input: FixedShape): Movable | undefined {
  const shape = dims(node);
  if (node.op !== 'slice' && node.op !== 'pad') return undefined;
  if ([...shape, ...input].some((dim) => dim >= 2 ** 31)) return undefined;
  if (node.op === 'slice') return node;
  const { interior, value } = node.attrs;
  return interior.every((gap) => gap === 0) && Object.is(value, 0) ? node : undefined;
}

/** Axes of a movable node on which another offset would do as well. */
function freeAxes(node: Movable, input: FixedShape): number[] {
  const shape = dims(node as Node);
  return shape.flatMap((size, axis) => {
    if (size === 0 || input[axis] === 0) return [];
    const reach = node.op === 'slice' ? (size - 1) * Math.abs(node.attrs.step[axis]!) + 1 : size;
    return reach === input[axis] ? [] : [axis];
  });
}

/**
 * The offsets of a node that may differ within its structure, by free axis; undefined when there
 * are none.
 */
export function offsetsOf(node: Node): readonly number[] | undefined {
  if (node.op !== 'slice' && node.op !== 'pad') return undefined;
  const input = dims(node.inputs[0]!);
  const moved = movable(node, input);
  if (moved === undefined) return undefined;
  const offsets = moved.op === 'slice' ? moved.attrs.start : moved.attrs.low;
  const axes = freeAxes(moved, input);
  return axes.length === 0 ? undefined : axes.map((axis) => offsets[axis]!);
}

/** What of such a node belongs to the structure, as a hash. */
export function restHash(node: Node): number {
  return hashValue(hashValue(hashValue(1, node.op), restOf(node)), node.shape);
}

/** Whether two such nodes are equal but for their offsets. */
export function sameRest(a: Node, b: Node): boolean {
  return a.op === b.op && sameAttrs(a.shape, b.shape) && sameAttrs(restOf(a), restOf(b));
}

function restOf(node: Node): readonly number[] {
  return node.op === 'slice' ? node.attrs.step : [];
}

/**
 * The node over `x` with these offsets on its free axes, by number: numbers, or rank-0 nodes of
 * i32.
 */
export function placed(
  b: GraphBuilder,
  node: Node,
  x: Node,
  offsetAt: (free: number) => number | Node,
): Node {
  const moved = node as Movable;
  const axes = freeAxes(moved, dims(x));
  const offsets = axes.map((_, i) => offsetAt(i));
  const varying = axes.flatMap((axis, i) => {
    const offset = offsets[i]!;
    return typeof offset === 'number' ? [] : [{ axis, offset }];
  });
  const isVarying = (axis: number): boolean => varying.some((other) => other.axis === axis);
  const fixed = (given: readonly number[]): number[] =>
    given.map((own, axis) => {
      const offset = offsets[axes.indexOf(axis)];
      return typeof offset === 'number' ? offset : own;
    });
  const result = dims(node);
  const input = dims(x);
  const shape = result.map((size, axis) => (isVarying(axis) ? input[axis]! : size));
  let out: Node;
  if (moved.op === 'slice') {
    const { start, step } = moved.attrs;
    const whole = (of: readonly number[], value: number): number[] =>
      of.map((own, axis) => (isVarying(axis) ? value : own));
    const attrs = { start: whole(fixed(start), 0), size: shape, step: whole(step, 1) };
    out = b.add('slice', [x], attrs) as Node;
  } else {
    const { interior, value } = moved.attrs;
    const low = fixed(moved.attrs.low).map((own, axis) => (isVarying(axis) ? 0 : own));
    const high = shape.map((size, axis) => size - low[axis]! - input[axis]!);
    out = b.add('pad', [x], { low, high, interior, value }) as Node;
  }
  for (const { axis, offset } of varying) {
    const before = dims(out);
    const to = before.with(axis, result[axis]!);
    out = b.add('gather', [out, places(b, moved, axis, offset, to)], { axis }) as Node;
  }
  return out;
}

/**
 * For each element of the result the index along the axis that it is read at; a padding reads
 * outside of the axis.
 */
function places(b: GraphBuilder, node: Movable, axis: number, offset: Node, shape: FixedShape): Node {
  const size = shape[axis]!;
  const count = b.add('iota', [], { shape: [size], axis: 0, dtype: 'i32' }) as Node;
  const by = broadcast(b, cast(b, offset, 'i32'), [size]);
  const times = (x: Node, factor: number): Node =>
    factor === 1 ? x : mul(b, x, broadcast(b, constant(b, factor, 'i32'), [size]));
  const along =
    node.op === 'slice' ? add(b, times(count, node.attrs.step[axis]!), by) : add(b, count, times(by, -1));
  const line = reshape(
    b,
    along,
    shape.map((_, i) => (i === axis ? size : 1)),
  );
  return broadcast(b, line, shape);
}
