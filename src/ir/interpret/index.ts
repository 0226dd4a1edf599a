// Indexed reads and writes in the reference interpreter: gather, its adjoint scatter, its inverse
// permuteScatter, and scatters of updates that lie sorted.

import { decodeBlocks } from '../blocks/decode.ts';
import { wordsToRows } from '../blocks/layout.ts';
import { foldingDtype } from './fold.ts';
import { offsetsOf } from './view.ts';
import type { Attrs, ScatterMode } from '../ops.ts';
import { compileScalar } from './scalar.ts';
import { stridesOf, type FixedShape } from '../shape.ts';
import { isComplex } from '../dtype.ts';
import { castArray, emptyData, type HostArray } from '../value.ts';

/** Where each element of `indices` points in an operand of `shape`; −1 when outside the axis. */
function targets(shape: FixedShape, indices: HostArray, axis: number): Int32Array {
  const strides = stridesOf(shape);
  const stride = strides[axis]!;
  const out = offsetsOf(
    indices.shape,
    strides.map((other, i) => (i === axis ? 0 : other)),
  );
  for (let i = 0; i < out.length; i++) {
    const index = indices.data[i] as number;
    out[i] = index >= 0 && index < shape[axis]! ? out[i]! + index * stride : -1;
  }
  return out;
}

/** What rows of blocks stand for. */
export function dequantize(
  words: HostArray,
  shape: FixedShape,
  { format, columns }: Attrs<'dequantize'>,
): HostArray {
  const rows = wordsToRows(format, columns, words.data as Uint32Array);
  return { dtype: 'f32', shape, data: decodeBlocks(format, rows) };
}

/** out[i,j,k] = operand[i, indices[i,j,k], k] for axis 1; an index outside the axis reads 0. */
export function gather(operand: HostArray, indices: HostArray, axis: number): HostArray {
  const { dtype } = operand;
  const from = targets(operand.shape, indices, axis);
  const data = emptyData(dtype, from.length);
  for (let i = 0; i < from.length; i++) if (from[i]! >= 0) data[i] = operand.data[from[i]!]!;
  return { dtype, shape: indices.shape, data };
}

/**
 * A copy of `operand` with `updates` folded in where `indices` point, in C-order; updates outside
 * the axis are dropped. Floats fold in double and are rounded once at the end, like a reduction.
 */
export function scatter(
  operand: HostArray,
  indices: HostArray,
  updates: HostArray,
  axis: number,
  mode: ScatterMode,
): HostArray {
  const to = targets(operand.shape, indices, axis);
  const dtype = foldingDtype(operand.dtype);
  const data = castArray(operand, dtype).data.slice();
  const values = castArray(updates, dtype).data;
  const combine = mode === 'set' ? undefined : compileScalar(mode, dtype, dtype);
  for (let i = 0; i < to.length; i++) {
    const at = to[i]!;
    if (at >= 0) data[at] = combine === undefined ? values[i]! : combine(data[at]!, values[i]!);
  }
  return castArray({ dtype, shape: operand.shape, data }, operand.dtype);
}

/**
 * out[i, places[i,j,k], k] = values[i,j,k]; the places of each line are a permutation, so that
 * nothing is left out.
 */
export function permuteScatter(values: HostArray, places: HostArray, axis: number): HostArray {
  const { dtype, shape } = values;
  const to = targets(shape, places, axis);
  const data = emptyData(dtype, to.length);
  for (let i = 0; i < to.length; i++) if (to[i]! >= 0) data[to[i]!] = values.data[i]!;
  return { dtype, shape, data };
}

/** Each element of the operand with its segment of the updates folded in, in order. */
export function segmentReduce(
  operand: HostArray,
  starts: HostArray,
  order: HostArray,
  updates: HostArray,
  { axis, mode }: Attrs<'segmentReduce'>,
): HostArray {
  const dtype = foldingDtype(operand.dtype);
  const data = castArray(operand, dtype).data.slice();
  const values = castArray(updates, dtype).data;
  const combine = mode === 'set' ? undefined : compileScalar(mode, dtype, dtype);
  const [shape, size] = [operand.shape, order.shape[axis]!];
  const alongAxis = (of: FixedShape): Int32Array => offsetsOf(shape, stridesOf(of).with(axis, 0));
  const [startLines, updateLines] = [alongAxis(starts.shape), alongAxis(order.shape)];
  const [slotStride, startStride, updateStride] = [shape, starts.shape, order.shape].map(
    (of) => stridesOf(of)[axis]!,
  );
  const covered = (i: number): boolean =>
    order.shape.every((dim, a) => a === axis || Math.floor(i / stridesOf(shape)[a]!) % shape[a]! < dim);
  for (let i = 0; i < data.length; i++) {
    if (!covered(i)) continue;
    const slot = Math.floor(i / slotStride!) % shape[axis]!;
    const first = startLines[i]! + slot * startStride!;
    const last = Math.min(size, starts.data[first + startStride!] as number);
    for (let entry = Math.max(0, starts.data[first] as number); entry < last; entry++) {
      const from = Math.min(
        size - 1,
        Math.max(0, order.data[updateLines[i]! + entry * updateStride!] as number),
      );
      const value = values[updateLines[i]! + from * updateStride!]!;
      data[i] = combine === undefined ? value : combine(data[i]!, value);
    }
  }
  return castArray({ dtype, shape, data }, operand.dtype);
}

/** The first `n` elements along an axis, and zeros beyond. */
export function firstAlong(x: HostArray, n: number, axis: number): HostArray {
  const size = x.shape[axis]!;
  const inner =
    x.data.length /
    Math.max(
      1,
      x.shape.slice(0, axis + 1).reduce((a, dim) => a * dim, 1),
    );
  const kept = Math.min(Math.max(n, 0), size) * inner;
  const out = emptyData(x.dtype, x.data.length / (isComplex(x.dtype) ? 2 : 1));
  for (let line = 0; line < x.data.length; line += size * inner)
    for (let i = line; i < line + kept; i++) out[i] = x.data[i]!;
  return { ...x, data: out };
}
