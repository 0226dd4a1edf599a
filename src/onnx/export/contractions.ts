// Products and convolutions as ONNX nodes.

import { isFloat } from '../../ir/dtype.ts';
import { dims, type NodeOf } from '../../ir/graph.ts';
import { sizeOf, type FixedShape } from '../../ir/shape.ts';
import { converted } from './elementwise.ts';
import type { Emitter, Val } from './emitter.ts';
import type { Rows, Scope } from './row.ts';
import { padded, windows } from './views.ts';

/** One operand's axes by what the product does with them. */
interface Side {
  readonly batch: readonly number[];
  readonly free: readonly number[];
  readonly contract: readonly number[];
}

function sideOf(rank: number, batch: readonly number[], contract: readonly number[]): Side {
  const free = Array.from({ length: rank }, (_, axis) => axis).filter(
    (axis) => !batch.includes(axis) && !contract.includes(axis),
  );
  return { batch, free, contract };
}

const at = (shape: FixedShape, axes: readonly number[]): number[] => axes.map((axis) => shape[axis]!);

/** The operand as [batch…, rows…, columns], where one kind of axes may be many in place. */
function laidOut(e: Emitter, x: Val, batch: readonly number[], rows: FixedShape, columns: FixedShape): Val {
  const turned = e.transpose(x, [...batch, ...rows, ...columns]);
  const lead = at(x.shape, batch);
  return e.reshape(turned, [...lead, sizeOf(at(x.shape, rows)), sizeOf(at(x.shape, columns))]);
}

/** MatMul over batches, the axes of each kind brought together. */
function product(e: Emitter, x: Val, y: Val, left: Side, right: Side, shape: FixedShape): Val {
  const { dtype } = x;
  const via = e.carrier('MatMul', dtype);
  // Rows of any rank stay as they are where the other side is one matrix.
  const isMatrix = left.batch.length === 0 && left.contract.length === 1 && left.free.length > 0;
  const lhs = isMatrix
    ? e.transpose(x, [...left.free, ...left.contract])
    : laidOut(e, x, left.batch, left.free, left.contract);
  const rhs = laidOut(e, y, right.batch, right.contract, right.free);
  const lead = isMatrix
    ? at(x.shape, left.free)
    : [
        ...at(
          shape,
          left.batch.map((_, i) => i),
        ),
        lhs.shape.at(-2)!,
      ];
  const type = { dtype: via, shape: [...lead, rhs.shape.at(-1)!] };
  const found = e.node('MatMul', [e.cast(lhs, via), e.cast(rhs, via)], type);
  return e.reshape(e.cast(found, dtype), shape);
}

function dot({ e, full }: Scope, node: NodeOf<'dot'>): Val {
  const { lhsBatch, rhsBatch, lhsContract, rhsContract, dtype } = node.attrs;
  const [lhs, rhs] = [node.inputs[0]!, node.inputs[1]!];
  if (sizeOf(dims(lhs)) === 0 || sizeOf(dims(rhs)) === 0) return e.scalar(0, dtype);
  // A wider result is summed in its own dtype; a float that becomes an integer does so in the end.
  const isWidened = isFloat(dtype) === isFloat(lhs.dtype) || isFloat(dtype);
  const operand = (x: Val): Val => (isWidened ? e.cast(x, dtype) : x);
  const found = product(
    e,
    operand(full(lhs)),
    operand(full(rhs)),
    sideOf(lhs.shape.length, lhsBatch, lhsContract),
    sideOf(rhs.shape.length, rhsBatch, rhsContract),
    dims(node),
  );
  return converted(e, found, dtype);
}

type Geometry = NodeOf<'conv'>['attrs'];

const isOne = (n: number): boolean => n === 1;

/** The operand dilated, and cut where the padding is negative; what padding is left. */
function prepared(
  e: Emitter,
  x: Val,
  attrs: Geometry,
): { readonly x: Val; readonly pads: readonly number[] } {
  const lead = [0, 0];
  const none = x.shape.map(() => 0);
  const spread = padded(e, x, none, none, [...lead, ...attrs.lhsDilation.map((n) => n - 1)], 0);
  const start = [...lead, ...attrs.padLow.map((n) => Math.max(0, -n))];
  const size = spread.shape.map((dim, axis) =>
    axis < 2 ? dim : dim - start[axis]! - Math.max(0, -attrs.padHigh[axis - 2]!),
  );
  const pads = [...attrs.padLow, ...attrs.padHigh].map((n) => Math.max(0, n));
  return { x: e.slice(spread, start, size), pads };
}

/** A convolution; `bias` has one element an output channel. */
export function convolved(e: Emitter, x: Val, w: Val, attrs: Geometry, shape: FixedShape, bias?: Val): Val {
  const back = transposed(e, x, w, attrs, shape, bias);
  if (back !== undefined) return back;
  const ready = prepared(e, x, attrs);
  const attributes = {
    strides: attrs.strides,
    pads: ready.pads,
    dilations: attrs.rhsDilation,
    group: attrs.groups,
    kernel_shape: w.shape.slice(2),
  };
  const operands = [ready.x, w, ...(bias === undefined ? [] : [bias])];
  const via = e.carrier('Conv', x.dtype);
  const inputs = operands.map((operand) => e.cast(operand, via));
  return e.cast(e.node('Conv', inputs, { dtype: via, shape }, attributes), x.dtype);
}

/** A dilated operand is what a transposed convolution is for: its kernel is this one turned around, channels exchanged. */
function transposed(
  e: Emitter,
  x: Val,
  w: Val,
  { strides, padLow, padHigh, lhsDilation, rhsDilation, groups }: Geometry,
  shape: FixedShape,
  bias: Val | undefined,
): Val | undefined {
  if (lhsDilation.every(isOne) || !strides.every(isOne)) return undefined;
  const reach = w.shape.slice(2).map((size, i) => rhsDilation[i]! * (size - 1));
  const low = reach.map((n, i) => n - padLow[i]!);
  const ends = reach.map((n, i) => n - padHigh[i]!);
  const extra = ends.map((n) => Math.max(0, -n));
  const isLegal = low.every((n) => n >= 0) && extra.every((n, i) => n < lhsDilation[i]!);
  if (!isLegal || shape.includes(0)) return undefined;
  const [outputs, inputs, ...kernel] = w.shape as [number, number, ...number[]];
  const grouped = e.reshape(w, [groups, outputs / groups, inputs, ...kernel]);
  const turned = e.transpose(grouped, [0, 2, 1, ...kernel.map((_, i) => i + 3)]);
  const exchanged = e.reshape(turned, [groups * inputs, outputs / groups, ...kernel]);
  const flipped = e.slice(exchanged, [0, 0, ...kernel.map((size) => size - 1)], exchanged.shape, [
    1,
    1,
    ...kernel.map((size) => (size > 1 ? -1 : 1)),
  ]);
  const attributes = {
    strides: lhsDilation,
    pads: [...low, ...ends.map((n) => Math.max(0, n))],
    dilations: rhsDilation,
    group: groups,
    output_padding: extra,
    kernel_shape: kernel,
  };
  const operands = [x, flipped, ...(bias === undefined ? [] : [bias])];
  const via = e.carrier('ConvTranspose', x.dtype);
  const cast = operands.map((operand) => e.cast(operand, via));
  return e.cast(e.node('ConvTranspose', cast, { dtype: via, shape }, attributes), x.dtype);
}

/** Integers have no convolution that adds in their own width: each window times the kernel. */
function unfolded(e: Emitter, x: Val, w: Val, attrs: Geometry, shape: FixedShape): Val {
  const [batches, outputs, ...places] = shape as [number, number, ...number[]];
  const ready = prepared(e, x, attrs);
  const spatial = places.length;
  const pads = [ready.pads.slice(0, spatial), ready.pads.slice(spatial)].map((list) => [0, 0, ...list]);
  const none = x.shape.map(() => 0);
  const kernel = w.shape.slice(2);
  let seen = padded(e, ready.x, pads[0]!, pads[1]!, none, 0);
  kernel.forEach((size, i) => {
    const [stride, dilation] = [attrs.strides[i]!, attrs.rhsDilation[i]!];
    seen = windows(e, seen, i + 2, { count: places[i]!, size, stride, dilation });
  });
  // [N, G, C, S…, K…] with [G, O, C, K…].
  const { groups } = attrs;
  const channels = w.shape[1]!;
  const left = e.reshape(seen, [batches, groups, channels, ...places, ...kernel]);
  const right = e.reshape(w, [groups, outputs / groups, channels, ...kernel]);
  const axes = (from: number, list: readonly number[]): number[] => list.map((_, i) => from + i);
  const found = product(
    e,
    right,
    left,
    { batch: [0], free: [1], contract: [2, ...axes(3, kernel)] },
    { batch: [1], free: [0, ...axes(3, places)], contract: [2, ...axes(3 + spatial, kernel)] },
    [groups, outputs / groups, batches, ...places],
  );
  const turned = e.transpose(found, [2, 0, 1, ...axes(3, places)]);
  return e.reshape(turned, shape);
}

function conv({ e, full }: Scope, node: NodeOf<'conv'>): Val {
  const [lhs, rhs] = [node.inputs[0]!, node.inputs[1]!];
  if (sizeOf(dims(lhs)) === 0 || sizeOf(dims(rhs)) === 0) return e.scalar(0, node.dtype);
  const [x, w, shape] = [full(lhs), full(rhs), dims(node)];
  const isPointless = shape.length === 2;
  return isFloat(node.dtype) && !isPointless
    ? convolved(e, x, w, node.attrs, shape)
    : unfolded(e, x, w, node.attrs, shape);
}

export const contractions: Rows<'dot' | 'conv'> = { dot, conv };
