// Views and sources as ONNX nodes. Broadcasts are not written where what reads them broadcasts by
// itself.

import { dims, type Node } from '../../ir/graph.ts';
import { sizeOf, type FixedShape } from '../../ir/shape.ts';
import type { ModelEmitter, Val } from './emitter.ts';
import { folded, order } from './folds.ts';
import type { ExportRows } from './row.ts';

/** Longer counts are computed, not stored. */
const mostStored = 1024;

/** 0, 1, 2… as one axis. */
function count(e: ModelEmitter, n: number, dtype: Val['dtype']): Val {
  // With open sizes a stored count is found to be one, whatever its length.
  if (n <= mostStored || e.open)
    return e.constant(
      dtype,
      [n],
      Array.from({ length: n }, (_, i) => i),
      'count',
    );
  const limits = [e.scalar(0, 'i64'), e.scalar(n, 'i64'), e.scalar(1, 'i64')];
  return e.cast(e.node('Range', limits, { dtype: 'i64', shape: [n] }), dtype);
}

/**
 * A value with `interior` fillers between the elements of each axis: a new axis of fillers behind
 * each, but for the last one.
 */
function dilated(e: ModelEmitter, x: Val, interior: FixedShape, filler: Val): Val {
  let out = x;
  interior.forEach((n, axis) => {
    if (n === 0 || out.shape[axis]! < 2) return;
    const { shape } = out;
    const split = [...shape.slice(0, axis + 1), 1, ...shape.slice(axis + 1)];
    const low = split.map(() => 0);
    const filled = surrounded(e, e.reshape(out, split), low, low.with(axis + 1, n), filler);
    const long = shape[axis]! * (n + 1);
    const joined = e.reshape(filled, shape.with(axis, long));
    out = e.slice(
      joined,
      shape.map(() => 0),
      shape.with(axis, long - n),
    );
  });
  return out;
}

/** A value with fillers around it. */
function surrounded(e: ModelEmitter, x: Val, low: FixedShape, high: FixedShape, filler: Val): Val {
  if ([...low, ...high].every((n) => n === 0)) return x;
  const shape = x.shape.map((dim, axis) => dim + low[axis]! + high[axis]!);
  const value = e.cast(filler, e.carrier('Pad', x.dtype));
  return e.move('Pad', [x, e.ints([...low, ...high]), value], shape);
}

/** A value with `value` around it and between its elements. */
export function padded(
  e: ModelEmitter,
  x: Val,
  low: FixedShape,
  high: FixedShape,
  interior: FixedShape,
  value: number,
): Val {
  const filler = e.scalar(value, x.dtype);
  return surrounded(e, dilated(e, x, interior, filler), low, high, filler);
}

/** Overlapping windows of an axis, the window's own axis last. */
export function windows(
  e: ModelEmitter,
  x: Val,
  axis: number,
  { count: n, size, stride, dilation }: Record<'count' | 'size' | 'stride' | 'dilation', number>,
): Val {
  const places = Array.from(
    { length: n * size },
    (_, i) => Math.floor(i / size) * stride + (i % size) * dilation,
  );
  const indices = e.constant('i64', [n, size], places, 'places');
  const shape = [...x.shape.slice(0, axis), n, size, ...x.shape.slice(axis + 1)];
  const taken = e.move('Gather', [x, indices], shape, { axis });
  const rest = shape.flatMap((_, i) => (i === axis + 1 ? [] : [i]));
  return e.transpose(taken, [...rest, axis + 1]);
}

/** The shape with the folded axes kept. */
function keptShape(x: Node, axes: readonly number[]): FixedShape {
  return dims(x).map((dim, axis) => (axes.includes(axis) ? 1 : dim));
}

type ViewOrSource =
  | 'reshape'
  | 'permute'
  | 'broadcast'
  | 'slice'
  | 'pad'
  | 'concat'
  | 'window'
  | 'constant'
  | 'iota';

export const views: ExportRows<ViewOrSource> = {
  constant: ({ e }, { attrs: { value, dtype } }) => e.scalar(value, dtype),
  iota: ({ e }, { attrs: { shape, axis, dtype } }) => {
    const n = shape[axis] as number;
    const behind = shape.slice(axis + 1).map(() => 1);
    return e.reshape(count(e, n, dtype), [n, ...behind]);
  },
  reshape: ({ e, full }, node) => {
    const x = node.inputs[0]!;
    const shape = dims(node);
    // A fold whose axes come back with size 1 keeps them.
    if (x.op === 'reduce' && sizeOf(dims(x.inputs[0]!)) > 0) {
      const { monoid, axes } = x.attrs;
      const kept = keptShape(x.inputs[0]!, axes);
      if (kept.length === shape.length && kept.every((dim, axis) => dim === shape[axis]))
        return folded(e, full(x.inputs[0]!), monoid, axes, true);
    }
    return e.reshape(full(x), shape);
  },
  permute: ({ e, full }, { inputs, attrs }) => e.transpose(full(inputs[0]!), attrs.order),
  broadcast: ({ compact }, { inputs }) => compact(inputs[0]!),
  slice: ({ e, full }, { inputs, attrs: { start, size, step } }) => {
    const x = inputs[0]!;
    // The first elements in order: no need to sort the others.
    const isFirst = (axis: number): boolean => start[axis] === 0 && step[axis] === 1;
    if (x.op === 'argSort') {
      const { axis, descending } = x.attrs;
      const isTop = x.shape.every((dim, i) => isFirst(i) && (i === axis || size[i] === dim));
      if (isTop) return order(e, full(x.inputs[0]!), axis, descending, size[axis]!);
    }
    return e.slice(full(x), start, size, step);
  },
  pad: ({ e, full }, node) => {
    const { low, high, interior, value } = node.attrs;
    const x = node.inputs[0]!;
    if (sizeOf(dims(x)) === 0) return e.scalar(value, node.dtype);
    return padded(e, full(x), low, high, interior, value);
  },
  concat: ({ e, full }, node) => {
    const parts = node.inputs.filter((input) => sizeOf(dims(input)) > 0).map(full);
    if (parts.length === 1) return parts[0]!;
    const { dtype } = node;
    return e.node('Concat', parts, { dtype, shape: dims(node) }, { axis: node.attrs.axis });
  },
  window: ({ e, full }, node) => {
    const { axis, size, stride, dilation } = node.attrs;
    const count = dims(node)[axis]!;
    return windows(e, full(node.inputs[0]!), axis, { count, size, stride, dilation });
  },
};
