// Reads and writes at indices that are data, as ONNX nodes. The format counts negative indices from the end
// and rejects those outside. The graph reads 0 there and ignores writes. Indices that may be outside are
// replaced before they are used.

import { dims, type Node } from '../../ir/graph.ts';
import type { ScatterMode } from '../../ir/ops.ts';
import { sizeOf, type FixedShape } from '../../ir/shape.ts';
import { liesIn } from './bounds.ts';
import type { ModelEmitter, Val } from './emitter.ts';
import type { ExportRows, ExportScope } from './row.ts';

/** Whether places lie on an axis of `size`; undefined where all are known to. */
function isInside(e: ModelEmitter, node: Node, places: Val, size: number): Val | undefined {
  if (liesIn(node, 0, size - 1)) return undefined;
  const below = e.test('Less', [places, e.scalar(size, 'i64')]);
  if (node.dtype === 'u32') return below;
  return e.map('And', [below, e.test('LessOrEqual', [e.scalar(0, 'i64'), places])]);
}

/** The axis as a list where all lines have the same places: rows of a table. */
function sharedPlaces(
  e: ModelEmitter,
  places: Val,
  rank: number,
  axis: number,
  size: number,
): Val | undefined {
  const shape = [...Array.from({ length: rank - places.shape.length }, () => 1), ...places.shape];
  if (!shape.every((dim, i) => i === axis || dim === 1)) return undefined;
  return e.expand(e.reshape(places, [shape[axis]!]), [size]);
}

/** The operand cut to the sizes of the indices outside of the axis. */
function cut(e: ModelEmitter, x: Val, shape: FixedShape, axis: number): Val {
  return e.slice(
    x,
    shape.map(() => 0),
    shape.with(axis, x.shape[axis]!),
  );
}

function gathered({ e, compact, full }: ExportScope, operand: Node, indices: Node, axis: number): Val {
  const size = dims(operand)[axis]!;
  const shape = dims(indices);
  if (size === 0) return e.scalar(0, operand.dtype);
  const table = cut(e, full(operand), shape, axis);
  const zero = e.scalar(0, 'i64');
  const rows = sharedPlaces(e, e.cast(compact(indices), 'i64'), shape.length, axis, shape[axis]!);
  const places = rows ?? e.cast(full(indices), 'i64');
  const inside = isInside(e, indices, places, size);
  const safe = inside === undefined ? places : e.where(inside, places, zero);
  const op = rows === undefined ? 'GatherElements' : 'Gather';
  const found = e.move(op, [table, safe], shape, { axis });
  if (inside === undefined) return found;
  const along = shape.map((dim, i) => (i === axis ? dim : 1));
  const known = rows === undefined ? inside : e.reshape(inside, along);
  return e.where(known, found, e.scalar(0, operand.dtype));
}

const reductions = {
  set: 'none',
  add: 'add',
  mul: 'mul',
  min: 'min',
  max: 'max',
} as const satisfies Record<ScatterMode, string>;

/**
 * Updates that go nowhere are written to one more place at the end of the axis, which is cut off
 * again.
 */
function scattered(
  { e, full }: ExportScope,
  operand: Val,
  indices: Node,
  updates: Node,
  axis: number,
  mode: ScatterMode,
): Val {
  const { dtype, shape } = operand;
  const size = shape[axis]!;
  const places = e.cast(full(indices), 'i64');
  const inside = isInside(e, indices, places, size);
  const via = e.carrier('ScatterElements', dtype);
  const write = (to: Val, at: Val): Val => {
    const inputs = [e.cast(to, via), at, e.cast(full(updates), via)];
    const attributes = { axis, reduction: reductions[mode] };
    return e.cast(e.node('ScatterElements', inputs, { dtype: via, shape: to.shape }, attributes), dtype);
  };
  if (inside === undefined) return write(operand, places);
  const more = e.expand(e.scalar(0, dtype), shape.with(axis, 1));
  const longer = { dtype, shape: shape.with(axis, size + 1) };
  const to = e.node('Concat', [operand, more], longer, { axis });
  const written = write(to, e.where(inside, places, e.scalar(size, 'i64')));
  return e.slice(
    written,
    shape.map(() => 0),
    shape,
  );
}

export const indexed: ExportRows<'gather' | 'scatter' | 'permuteScatter' | 'scatterAddAtomic'> = {
  gather: (scope, { inputs, attrs }) => gathered(scope, inputs[0]!, inputs[1]!, attrs.axis),
  scatter: (scope, { inputs, attrs }) => {
    const [operand, indices, updates] = [inputs[0]!, inputs[1]!, inputs[2]!];
    const x = scope.full(operand);
    if (sizeOf(dims(indices)) === 0) return x;
    return scattered(scope, x, indices, updates, attrs.axis, attrs.mode);
  },
  // Every place is written, whatever lay there.
  permuteScatter: (scope, node) => {
    const [values, places] = [node.inputs[0]!, node.inputs[1]!];
    const blank = scope.e.expand(scope.e.scalar(0, node.dtype), dims(node as Node));
    return scattered(scope, blank, places, values, node.attrs.axis, 'set');
  },
  scatterAddAtomic: (scope, node) => {
    const [indices, updates] = [node.inputs[0]!, node.inputs[1]!];
    const zero = scope.e.scalar(0, node.dtype);
    if (sizeOf(dims(indices)) === 0) return zero;
    return scattered(scope, scope.e.expand(zero, dims(node)), indices, updates, node.attrs.axis, 'add');
  },
};
