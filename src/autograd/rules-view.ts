// Derivatives of the views. A view reads each element of its input from somewhere, so its adjoint
// adds every cotangent to where its value came from: permutes invert, broadcasts sum, slices pad,
// windows overlap and add.

import { add, full, permute, reduce, reshape, slice, sumTo } from '../ir/build.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../ir/graph.ts';
import type { ViewOp } from '../ir/ops.ts';
import { sizeOf, type FixedShape } from '../ir/shape.ts';
import type { VjpRule } from './cotangent.ts';

/** Zeros around and between the elements of `x`; no zeros give `x` back. */
export function padZeros(
  b: GraphBuilder,
  x: Node,
  low: FixedShape,
  high: FixedShape,
  interior: FixedShape = low.map(() => 0),
): Node {
  const idle = dims(x).every((dim, i) => low[i] === 0 && high[i] === 0 && (interior[i] === 0 || dim < 2));
  return idle ? x : (b.add('pad', [x], { low, high, interior, value: 0 }) as Node);
}

/** `x` read backwards along `axes`. */
export function flip(b: GraphBuilder, x: Node, axes: readonly number[]): Node {
  const shape = dims(x);
  const turns = (axis: number): boolean => axes.includes(axis) && shape[axis]! > 1;
  return slice(
    b,
    x,
    shape.map((dim, axis) => (turns(axis) ? dim - 1 : 0)),
    shape,
    shape.map((_, axis) => (turns(axis) ? -1 : 1)),
  );
}

/** Element `i` of the result is element `i + by` of `x` along `axis`, and 0 beyond its ends. */
export function shift(b: GraphBuilder, x: Node, axis: number, by: number): Node {
  const shape = dims(x);
  const far = Math.min(Math.abs(by), shape[axis]!);
  const only = (value: number): number[] => shape.map((_, i) => (i === axis ? value : 0));
  const kept = shape.map((dim, i) => (i === axis ? dim - far : dim));
  const part = slice(b, x, only(by > 0 && far < shape[axis]! ? far : 0), kept);
  return padZeros(b, part, only(by > 0 ? 0 : far), only(by > 0 ? far : 0));
}

/** One axis of `x` cut off or filled with zeros at its end, to `size`. */
function resize(b: GraphBuilder, x: Node, axis: number, size: number): Node {
  const shape = dims(x);
  const none = shape.map(() => 0);
  if (size < shape[axis]!) return slice(b, x, none, shape.with(axis, size));
  return padZeros(b, x, none, none.with(axis, size - shape[axis]!));
}

function sliceRule(b: GraphBuilder, node: NodeOf<'slice'>, g: Node): Node {
  return placeSlice(b, g, dims(node.inputs[0]!), node.attrs);
}

/** `g` where a slice of this shape read its elements, and zeros elsewhere. */
export function placeSlice(
  b: GraphBuilder,
  g: Node,
  shape: readonly number[],
  { start, size, step }: Pick<NodeOf<'slice'>['attrs'], 'start' | 'size' | 'step'>,
): Node {
  const turned = step.flatMap((s, axis) => (s < 0 ? [axis] : []));
  const stride = step.map((s, axis) => (size[axis]! > 1 ? Math.abs(s) : 1));
  const reach = size.map((n, axis) => (n === 0 ? 0 : (n - 1) * stride[axis]! + 1));
  const low = start.map((s, axis) => {
    if (size[axis] === 0) return 0;
    return step[axis]! < 0 ? s - (reach[axis]! - 1) : s;
  });
  const high = shape.map((dim, axis) => dim - low[axis]! - reach[axis]!);
  return padZeros(
    b,
    flip(b, g, turned),
    low,
    high,
    stride.map((s) => s - 1),
  );
}

/**
 * Up to this many window positions are added one by one; more are laid out as a matrix and reduced.
 */
const unrolledPositions = 8;

/** Overlap-add is the adjoint of taking windows. */
function windowRule(b: GraphBuilder, node: NodeOf<'window'>, g: Node): Node {
  return overlapAdd(b, g, node.attrs, dims(node.inputs[0]!));
}

/**
 * Overlap-add: element `i·stride + k·dilation` of an axis of `shape` is the sum of every
 * g[.., i, .., k] whose window holds it.
 */
export function overlapAdd(
  b: GraphBuilder,
  g: Node,
  windows: NodeOf<'window'>['attrs'],
  shape: FixedShape,
): Node {
  const { axis, size, stride, dilation } = windows;
  const count = dims(g)[axis]!;
  const last = shape.length;
  if (sizeOf(dims(g)) === 0) return full(b, shape, 0, g.dtype);

  if (dilation === 1 && stride >= size) {
    // Windows do not overlap: they lie side by side, `stride − size` unread elements after each.
    const padded = resize(b, g, last, stride);
    const besides = permute(
      b,
      padded,
      [...shape.keys()].flatMap((i) => (i === axis ? [i, last] : [i])),
    );
    return resize(b, reshape(b, besides, shape.with(axis, count * stride)), axis, shape[axis]!);
  }
  const spread = (count - 1) * stride + 1;
  if (size <= unrolledPositions) {
    const none = shape.map(() => 0);
    const position = (k: number): Node => {
      const start = [...none, k];
      const one = reshape(b, slice(b, g, start, dims(g).with(last, 1)), shape.with(axis, count));
      const low = k * dilation;
      const high = shape[axis]! - low - spread;
      return padZeros(b, one, none.with(axis, low), none.with(axis, high), none.with(axis, stride - 1));
    };
    let sum = position(0);
    for (let k = 1; k < size; k++) sum = add(b, sum, position(k));
    return sum;
  }
  // The skew: rows k of a [size, reach + dilation] matrix, read as rows of `reach`, are each pushed
  // right by k·dilation.
  const reach = spread + (size - 1) * dilation;
  const others = [...shape.keys()].filter((i) => i !== axis);
  const outer = others.map((i) => shape[i]!);
  const rows = permute(b, g, [...others, last, axis]);
  const at = outer.length;
  const none = dims(rows).map(() => 0);
  const wide = padZeros(
    b,
    rows,
    none,
    none.with(at + 1, reach + dilation - spread),
    none.with(at + 1, stride - 1),
  );
  const flat = resize(b, reshape(b, wide, [...outer, size * (reach + dilation)]), at, size * reach);
  const summed = reduce(b, 'sum', reshape(b, flat, [...outer, size, reach]), [at]);
  const back = [...shape.keys()].map((i) => (i === axis ? at : others.indexOf(i)));
  return resize(b, permute(b, summed, back), axis, shape[axis]!);
}

/** Rules of the views. */
export const viewRules: { readonly [K in ViewOp]: VjpRule<K> } = {
  reshape: (b, { inputs }, g) => [reshape(b, g, dims(inputs[0]!))],
  permute: (b, { attrs }, g) => [
    permute(
      b,
      g,
      attrs.order.map((_, axis) => attrs.order.indexOf(axis)),
    ),
  ],
  broadcast: (b, { inputs }, g) => [sumTo(b, g, dims(inputs[0]!))],
  slice: (b, node, g) => [sliceRule(b, node, g)],
  // The padding value is a constant; the elements between are read back.
  pad: (b, { inputs, attrs }, g) => [
    slice(
      b,
      g,
      attrs.low,
      dims(inputs[0]!),
      attrs.interior.map((n) => n + 1),
    ),
  ],
  concat: (b, { inputs, attrs: { axis } }, g, wanted) => {
    let offset = 0;
    return inputs.map((input, i) => {
      const shape = dims(input);
      const start = shape.map(() => 0).with(axis, offset);
      offset += shape[axis]!;
      return wanted[i] === true ? slice(b, g, start, shape) : undefined;
    });
  },
  window: (b, node, g) => [windowRule(b, node, g)],
};
