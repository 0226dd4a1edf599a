// Views in the reference interpreter. Each is one strided copy: permute, broadcast, slice and
// window read the input at affine offsets, pad and concat write it at affine offsets.

import type { Attrs } from '../ops.ts';
import { sizeOf, stridesOf, type FixedShape } from '../shape.ts';
import { emptyData, fromReal, type HostArray, type HostData } from '../value.ts';

/**
 * Offsets Σ indexᵢ·strideᵢ of all indices of `shape` in C-order. Walking two such lists (kept and
 * folded axes, say) iterations any nest of loops into two flat ones.
 */
export function offsetsOf(shape: FixedShape, strides: readonly number[]): Int32Array {
  const out = new Int32Array(sizeOf(shape));
  if (out.length === 0) return out;
  let filled = 1;
  // Grow from the last axis: the block found so far is repeated, shifted by each further index.
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    for (let i = 1; i < shape[axis]!; i++) {
      const shift = i * strides[axis]!;
      for (let j = 0; j < filled; j++) out[i * filled + j] = out[j]! + shift;
    }
    filled *= shape[axis]!;
  }
  return out;
}

/** The strides of the given axes, in their order. */
export function pick(values: readonly number[], axes: readonly number[]): number[] {
  return axes.map((axis) => values[axis]!);
}

/** Copies between two affine layouts of one shape. */
function copyStrided(
  shape: FixedShape,
  from: HostData,
  fromStart: number,
  fromStrides: readonly number[],
  to: HostData,
  toStart: number,
  toStrides: readonly number[],
): void {
  if (sizeOf(shape) === 0) return;
  const last = shape.length - 1;
  const [length, fromStep, toStep] = [shape[last] ?? 1, fromStrides[last] ?? 0, toStrides[last] ?? 0];
  const rows = shape.slice(0, -1);
  const [fromRows, toRows] = [offsetsOf(rows, fromStrides), offsetsOf(rows, toStrides)];
  const [source, target] = [from as Float64Array, to as Float64Array];
  for (let row = 0; row < fromRows.length; row++) {
    let [read, write] = [fromStart + fromRows[row]!, toStart + toRows[row]!];
    for (let i = 0; i < length; i++) {
      target[write] = source[read]!;
      read += fromStep;
      write += toStep;
    }
  }
}

function readStrided(x: HostArray, shape: FixedShape, start: number, strides: readonly number[]): HostArray {
  const data = emptyData(x.dtype, sizeOf(shape));
  copyStrided(shape, x.data, start, strides, data, 0, stridesOf(shape));
  return { dtype: x.dtype, shape, data };
}

export function permute(x: HostArray, order: readonly number[]): HostArray {
  return readStrided(x, pick(x.shape, order), 0, pick(stridesOf(x.shape), order));
}

export function broadcast(x: HostArray, shape: FixedShape): HostArray {
  const strides = stridesOf(x.shape);
  const missing = shape.length - x.shape.length;
  const stretched = shape.map((_, axis) =>
    x.shape[axis - missing] === 1 ? 0 : (strides[axis - missing] ?? 0),
  );
  return readStrided(x, shape, 0, stretched);
}

export function slice(x: HostArray, start: FixedShape, size: FixedShape, step: readonly number[]): HostArray {
  const strides = stridesOf(x.shape);
  const first = start.reduce((sum, index, axis) => sum + index * strides[axis]!, 0);
  return readStrided(
    x,
    size,
    first,
    strides.map((stride, axis) => stride * step[axis]!),
  );
}

export function window(x: HostArray, shape: FixedShape, attrs: Attrs<'window'>): HostArray {
  const strides = stridesOf(x.shape);
  const along = strides[attrs.axis]!;
  const counted = strides.map((stride, axis) => (axis === attrs.axis ? stride * attrs.stride : stride));
  return readStrided(x, shape, 0, [...counted, along * attrs.dilation]);
}

export function pad(x: HostArray, shape: FixedShape, attrs: Attrs<'pad'>): HostArray {
  const { low, interior, value } = attrs;
  const data = emptyData(x.dtype, sizeOf(shape));
  data.fill(fromReal(x.dtype)(value) as never);
  const strides = stridesOf(shape);
  const start = low.reduce((sum, count, axis) => sum + count * strides[axis]!, 0);
  const spread = strides.map((stride, axis) => stride * (interior[axis]! + 1));
  copyStrided(x.shape, x.data, 0, stridesOf(x.shape), data, start, spread);
  return { dtype: x.dtype, shape, data };
}

export function concat(parts: readonly HostArray[], shape: FixedShape, axis: number): HostArray {
  const { dtype } = parts[0]!;
  const data = emptyData(dtype, sizeOf(shape));
  const strides = stridesOf(shape);
  let start = 0;
  for (const part of parts) {
    copyStrided(part.shape, part.data, 0, stridesOf(part.shape), data, start, strides);
    start += part.shape[axis]! * strides[axis]!;
  }
  return { dtype, shape, data };
}
