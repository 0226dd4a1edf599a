// Convolutions as ONNX nodes: Conv, ConvTranspose where the operand is dilated, and windows times
// kernels for what they are not for.

import { isFloat } from '../../ir/dtype.ts';
import { dims, type Node, type NodeOf } from '../../ir/graph.ts';
import { sizeOf, type FixedShape } from '../../ir/shape.ts';
import * as sn from '../../tensor/ops/product/conv.ts';
import { product } from './contractions.ts';
import type { AttributeValues, ModelEmitter, Val } from './emitter.ts';
import { operandsOf } from './pattern.ts';
import type { ExportRows, ExportScope } from './row.ts';
import { padded, windows } from './views.ts';

type Geometry = NodeOf<'conv'>['attrs'];

const isOne = (n: number): boolean => n === 1;

/** The operand dilated, and cut where the padding is negative; what padding is left. */
function prepared(
  e: ModelEmitter,
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

/** Operands in a dtype that has a kernel, and the result in the operands' own dtype. */
function carried(
  e: ModelEmitter,
  op: 'Conv' | 'ConvTranspose',
  operands: readonly (Val | undefined)[],
  type: Pick<Val, 'dtype' | 'shape'>,
  attributes: AttributeValues,
): Val {
  const dtype = e.carrier(op, type.dtype);
  const inputs = operands.flatMap((operand) => (operand === undefined ? [] : [e.cast(operand, dtype)]));
  return e.cast(e.node(op, inputs, { dtype, shape: type.shape }, attributes), type.dtype);
}

/** A convolution of floats; `bias` has one element an output channel. */
export function convolved(scope: ExportScope, node: NodeOf<'conv'>, bias?: Val): Val {
  const { e, full } = scope;
  const { attrs } = node;
  const type = { dtype: node.dtype, shape: dims(node) };
  const [x, w] = [full(node.inputs[0]!), full(node.inputs[1]!)];
  const back = turnedBack(attrs, w.shape);
  if (back !== undefined) {
    const kernel = kernelOf(scope, node, back) ?? exchanged(e, w, attrs.groups);
    const attributes = {
      strides: attrs.lhsDilation,
      pads: [...back.low, ...back.high],
      dilations: attrs.rhsDilation,
      group: attrs.groups,
      output_padding: back.extra,
      ...kernelShape(e, kernel),
    };
    return carried(e, 'ConvTranspose', [x, kernel, bias], type, attributes);
  }
  const ready = prepared(e, x, attrs);
  const attributes = {
    strides: attrs.strides,
    pads: ready.pads,
    dilations: attrs.rhsDilation,
    group: attrs.groups,
    ...kernelShape(e, w),
  };
  return carried(e, 'Conv', [ready.x, w, bias], type, attributes);
}

/** The sizes of windows; with open sizes runtimes take them from the weights, as the standard has it. */
function kernelShape(e: ModelEmitter, w: Val): { readonly kernel_shape?: readonly number[] } {
  return e.open ? {} : { kernel_shape: w.shape.slice(2) };
}

/** What a transposed convolution cuts off its result, and adds at the end. */
interface Back {
  readonly low: number[];
  readonly high: number[];
  readonly extra: number[];
}

/**
 * A dilated operand is what a transposed convolution is for; undefined where it is none that the
 * format has.
 */
function turnedBack(
  { strides, padLow, padHigh, lhsDilation, rhsDilation }: Geometry,
  kernel: FixedShape,
): Back | undefined {
  if (lhsDilation.every(isOne) || !strides.every(isOne)) return undefined;
  const reach = kernel.slice(2).map((size, i) => rhsDilation[i]! * (size - 1));
  const low = reach.map((n, i) => n - padLow[i]!);
  const ends = reach.map((n, i) => n - padHigh[i]!);
  const extra = ends.map((n) => Math.max(0, -n));
  const isLegal = low.every((n) => n >= 0) && extra.every((n, i) => n < lhsDilation[i]!);
  return isLegal ? { low, high: ends.map((n) => Math.max(0, n)), extra } : undefined;
}

const operations = [sn.convTranspose1d, sn.convTranspose2d, sn.convTranspose3d];

/**
 * The kernel that a transposed convolution was called with; undefined where the node is of no such
 * call.
 */
function kernelOf(
  { full, patterns }: ExportScope,
  node: NodeOf<'conv'>,
  { low, high, extra }: Back,
): Val | undefined {
  const { lhsDilation, rhsDilation, groups } = node.attrs;
  const [x, w] = [dims(node.inputs[0]!), dims(node.inputs[1]!)];
  const call = operations[w.length - 3];
  if (call === undefined) return undefined;
  const options = {
    stride: lhsDilation,
    dilation: rhsDilation,
    groups,
    padding: low.map((n, i) => [n, high[i]!] as const),
    outputPadding: extra,
  };
  const { dtype } = node;
  const found = operandsOf(
    node as Node,
    {
      key: `ConvTranspose ${JSON.stringify(options)}`,
      operands: [
        { dtype, shape: x },
        { dtype, shape: [w[1]! * groups, w[0]! / groups, ...w.slice(2)] },
      ],
      call: (image, kernel) => call(image!, kernel!, undefined, options),
    },
    patterns,
  );
  return found === undefined ? undefined : full(found[1]!);
}

/** A kernel turned around, its channels exchanged within each group. */
function exchanged(e: ModelEmitter, w: Val, groups: number): Val {
  const [outputs, inputs, ...kernel] = w.shape as [number, number, ...number[]];
  const grouped = e.reshape(w, [groups, outputs / groups, inputs, ...kernel]);
  const turned = e.transpose(grouped, [0, 2, 1, ...kernel.map((_, i) => i + 3)]);
  const whole = e.reshape(turned, [groups * inputs, outputs / groups, ...kernel]);
  const last = kernel.map((size) => size - 1);
  return e.slice(whole, [0, 0, ...last], whole.shape, [1, 1, ...kernel.map((size) => (size > 1 ? -1 : 1))]);
}

/** Integers have no convolution that adds in their own width: each window times the kernel. */
function unfolded(e: ModelEmitter, x: Val, w: Val, attrs: Geometry, shape: FixedShape): Val {
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

function conv(scope: ExportScope, node: NodeOf<'conv'>): Val {
  const { e, full } = scope;
  const [lhs, rhs] = [node.inputs[0]!, node.inputs[1]!];
  const shape = dims(node);
  if (sizeOf(dims(lhs)) === 0 || sizeOf(dims(rhs)) === 0) return e.scalar(0, node.dtype);
  if (isFloat(node.dtype) && shape.length > 2) return convolved(scope, node);
  return unfolded(e, full(lhs), full(rhs), node.attrs, shape);
}

export const convolutions: ExportRows<'conv'> = { conv };
