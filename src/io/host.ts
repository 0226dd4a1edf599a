// Tensors as plain host data, which is what file formats are read into and written from, and the
// byte work the formats share: sizes checked before anything is allocated, big-endian values
// turned, views made safe for typed arrays.

import { showValue as showGiven, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { dtypeBytes, type DType } from '../ir/dtype.ts';
import { checkShape, showShape } from '../ir/shape.ts';

/** A tensor's type and its values: packed little-endian bytes in C-order, bool as 0 or 1. */
export interface HostTensor<D extends DType = DType> {
  readonly dtype: D;
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

/** A tensor as host data. */
export const hostTensor: arg.Kind<HostTensor> = {
  accepts: (value) =>
    typeof value === 'object' &&
    value !== null &&
    'data' in value &&
    arg.isBytes(value.data) &&
    'dtype' in value &&
    arg.dtype.accepts(value.dtype) &&
    'shape' in value &&
    arg.isNumberList(value.shape),
  refuse(op, what, value): never {
    const isTensor = typeof value === 'object' && value !== null && 'requiresGrad' in value;
    const problem = `${what} must be { dtype, shape, data } with data in bytes, got ${showGiven(value)}`;
    throw new TensorError('E_VALUE', op, problem, isTensor ? 'await toHostTensor(tensor)' : undefined);
  },
};

/** Names and tensors, in the order given. Throws E_VALUE at anything else. */
export function entriesOf(op: string, tensors: unknown): (readonly [string, HostTensor])[] {
  const isIterable = typeof tensors === 'object' && tensors !== null && Symbol.iterator in tensors;
  if (!isIterable || arg.isBytes(tensors)) {
    const problem = `expects tensors by name, as a Map or pairs, got ${showGiven(tensors)}`;
    throw new TensorError('E_VALUE', op, problem, 'Object.entries(…) of an object');
  }
  const entries = [...(tensors as Iterable<readonly [string, HostTensor]>)];
  for (const entry of entries)
    if (!pair.accepts(entry)) pair.refuse(op, 'a pair of a name and a tensor', entry);
  return entries;
}

const pair = arg.tupleOf<readonly [string, HostTensor]>(arg.text, hostTensor);

/**
 * Bytes that a tensor takes; undefined when a size is no whole number or the total is past exact
 * counting.
 */
export function packedBytes(dtype: DType, shape: readonly number[]): number | undefined {
  let bytes = dtypeBytes(dtype);
  for (const dim of shape) {
    if (!Number.isSafeInteger(dim) || dim < 0) return undefined;
    if (dim === 0) bytes = 0;
    bytes *= dim;
    if (!Number.isSafeInteger(bytes)) return undefined;
  }
  return bytes;
}

/**
 * Throws E_SHAPE unless `tensor` holds exactly the bytes that its dtype and shape ask for; writers
 * call it first.
 */
export function checkHostTensor(op: string, tensor: HostTensor, name = ''): void {
  checkShape(op, tensor.shape);
  const expected = packedBytes(tensor.dtype, tensor.shape);
  if (expected !== tensor.data.length) {
    const what = `${name === '' ? '' : `${name}: `}${showShape(tensor.shape, tensor.dtype)}`;
    throw new TensorError('E_SHAPE', op, `${what} takes ${expected} bytes, not ${tensor.data.length}`);
  }
}

/**
 * Bytes `begin..end` as tensor data: shared with `bytes` where its place in memory suits a typed
 * array, else copied.
 */
export function packedView(bytes: Uint8Array, begin: number, end: number, dtype: DType): Uint8Array {
  // Not `subarray` and `slice` of `bytes` itself: Node's Buffer overrides them, and its `slice`
  // does not copy.
  const view = new Uint8Array(bytes.buffer, bytes.byteOffset + begin, end - begin);
  if (dtype === 'bool' && view.some((byte) => byte > 1)) return view.map((byte) => (byte === 0 ? 0 : 1));
  return view.byteOffset % dtypeBytes(dtype) === 0 ? view : view.slice();
}

/** A value of a file's header for an error message: short whatever its depth and length. */
export function showValue(value: unknown, depth = 0): string {
  if (Array.isArray(value)) {
    if (depth > 1) return '[…]';
    const items = value.slice(0, 8).map((item) => showValue(item, depth + 1));
    return `[${items.join(',')}${value.length > 8 ? ',…' : ''}]`;
  }
  if (typeof value === 'object' && value !== null) return '{…}';
  return value === undefined ? 'missing' : JSON.stringify(value).slice(0, 80);
}

/**
 * A copy with the bytes of every `width`-byte element reversed: big-endian to little-endian and
 * back.
 */
export function swapEndian(bytes: Uint8Array, width: number): Uint8Array {
  const out = new Uint8Array(bytes.length);
  for (let start = 0; start < bytes.length; start += width) {
    for (let i = 0; i < width; i++) out[start + i] = bytes[start + width - 1 - i]!;
  }
  return out;
}

/** A copy in C-order of `bytes`, whose elements stand in Fortran order (first axis fastest). */
export function fromFortranOrder(bytes: Uint8Array, shape: readonly number[], width: number): Uint8Array {
  const out = new Uint8Array(bytes.length);
  // Axes of size 1 move nothing; without them the rank is at most log2 of the size, so each step is
  // cheap.
  const sizes = shape.filter((size) => size !== 1);
  const strides: number[] = [];
  let stride = width;
  for (const size of sizes) {
    strides.push(stride);
    stride *= size;
  }
  const place = new Array<number>(sizes.length).fill(0);
  let source = 0;
  for (let target = 0; target < out.length; target += width) {
    for (let i = 0; i < width; i++) out[target + i] = bytes[source + i]!;
    for (let axis = sizes.length - 1; axis >= 0; axis--) {
      source += strides[axis]!;
      place[axis]! += 1;
      if (place[axis]! < sizes[axis]!) break;
      source -= strides[axis]! * sizes[axis]!;
      place[axis] = 0;
    }
  }
  return out;
}
