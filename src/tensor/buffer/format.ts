// What the elements of a buffer are: a dtype, or blocks of quantised integers (q8). In: a format and
// a number of elements; out: bytes. A block of q8 is a word with a scale (f16 in its low half, zeros
// in the high one) and as many i8 as the block has elements; the last block is filled with zeros. The
// scale is the smallest f16 by which the block's largest magnitude is at most 127 steps, so that no
// element is off by more than half a step.

import * as arg from '../../ir/arguments.ts';
import { showValue, TensorError } from '../../errors.ts';
import { dtypeBytes, dtypeKind, isDType, type DType } from '../../ir/dtype.ts';
import { f16FromBits, f16ToBits } from '../../ir/value.ts';

/** Elements in blocks that share a scale: 8 bits each, and a word a block. */
export interface Q8 {
  readonly kind: 'q8';
  /** Elements of a block, a multiple of 4. */
  readonly blockSize: number;
}

/** What a buffer's elements are. */
export type Format = DType | Q8;

/** Bytes in front of a block: the scale, and as many zeros. */
export const q8Header = 4;

/** Whole words of elements. */
export const aBlockSize: arg.Kind<number> = arg.kind(
  'a multiple of 4, from 4 on',
  (value) => Number.isSafeInteger(value) && (value as number) > 0 && (value as number) % 4 === 0,
  () => '32',
);
const takesQ8 = arg.takes<typeof q8>(['the block size', arg.optional(aBlockSize)]);

/** The format of quantised blocks of so many elements, 32 by default. */
export function q8(blockSize: number = 32): Q8 {
  takesQ8('q8', blockSize);
  return { kind: 'q8', blockSize };
}

/** A dtype's name, or what `q8(…)` gives. */
export const aFormat: arg.Kind<Format> = {
  accepts: (value) => arg.dtype.accepts(value) || isQ8(value),
  refuse(op, what, value): never {
    if (typeof value === 'string') return arg.dtype.refuse(op, what, value);
    throw new TensorError('E_DTYPE', op, `no format is ${showValue(value)}`, "'f32', …, or q8(32)");
  },
};

/** Whether a format is of quantised blocks. */
export function isQ8(value: unknown): value is Q8 {
  if (typeof value !== 'object' || value === null || !('kind' in value) || !('blockSize' in value))
    return false;
  return value.kind === 'q8' && aBlockSize.accepts(value.blockSize);
}

export function sameFormat(a: Format, b: Format): boolean {
  return a === b || (isQ8(a) && isQ8(b) && a.blockSize === b.blockSize);
}

/** `f32`, `q8(32)`. */
export function showFormat(format: Format): string {
  return isQ8(format) ? `q8(${format.blockSize})` : format;
}

/** Bytes of a block: 4 more than its elements. Throws E_DTYPE at formats without blocks. */
export function q8BlockStride(format: Format): number {
  if (isQ8(format)) return q8Header + format.blockSize;
  throw new TensorError('E_DTYPE', 'q8BlockStride', `${showValue(format)} has no blocks`, 'q8(32)');
}

/** Bytes of one element, by its format alone; 0 of blocks, whose elements have none of their own. */
export function elemSize(format: Format): number {
  takesFormat('elemSize', format);
  return isQ8(format) ? 0 : dtypeBytes(format);
}

const takesFormat = arg.takes<typeof elemSize>(['the dtype', aFormat]);

/** What a format is. */
export interface FormatInfo {
  readonly name: string;
  readonly kind: 'bool' | 'int' | 'uint' | 'float' | 'complex' | 'quantised';
  /** Bytes of an element; 1 of quantised ones, scales aside. */
  readonly byteSize: number;
  readonly isQuantized: boolean;
}

/** What a dtype, or a format of blocks, is: its kind and its size. */
export function describeFormat(format: Format): FormatInfo {
  takesFormat('describeFormat', format);
  const name = showFormat(format);
  if (isQ8(format)) return { name, kind: 'quantised', byteSize: 1, isQuantized: true };
  return { name, kind: dtypeKind(format), byteSize: dtypeBytes(format), isQuantized: false };
}

/** Bytes of so many elements without any rounding of the whole. Throws E_VALUE beyond exact numbers. */
export function packedBytes(op: string, format: Format, count: number): number {
  const bytes = isQ8(format)
    ? Math.ceil(count / format.blockSize) * q8BlockStride(format)
    : count * dtypeBytes(format);
  if (Number.isSafeInteger(bytes + 3)) return bytes;
  throw new TensorError('E_VALUE', op, `${count} elements of ${showFormat(format)} are too many bytes`);
}

const takesByteSize = arg.takes<typeof deviceByteSize>(['the dtype', aFormat], ['the count', arg.count(0)]);

/**
 * Bytes that so many elements take on a device: what they take packed, in whole words. 0 for none,
 * though a buffer has 4 at least.
 */
export function deviceByteSize(format: Format, count: number): number {
  takesByteSize('deviceByteSize', format, count);
  return Math.ceil(packedBytes('deviceByteSize', format, count) / 4) * 4;
}

/** The format of a name or descriptor that is known to be one. */
export function isPlain(format: Format): format is DType {
  return typeof format === 'string' && isDType(format);
}

const someFloats: arg.Kind<Float32Array> = arg.kind(
  'a Float32Array',
  (value) => value instanceof Float32Array,
  () => 'Float32Array.from(…)',
);
const takesEncode = arg.takes<typeof encodeQ8>(
  ['the values', someFloats],
  ['the block size', arg.optional(aBlockSize)],
);
const takesDecode = arg.takes<typeof decodeQ8>(
  ['the bytes', arg.bytes],
  ['the count', arg.count(0)],
  ['the block size', arg.optional(aBlockSize)],
);

const steps = 127;
const largestScale = 65_504;

/** Blocks of so many elements; the last is filled with zeros. Throws E_VALUE at what has no scale. */
export function encodeQ8(values: Float32Array, blockSize: number = 32): Uint8Array<ArrayBuffer> {
  takesEncode('encodeQ8', values, blockSize);
  const stride = q8Header + blockSize;
  const bytes = new Uint8Array(Math.ceil(values.length / blockSize) * stride);
  const view = new DataView(bytes.buffer);
  for (let block = 0; block * blockSize < values.length; block++) {
    const part = values.subarray(block * blockSize, (block + 1) * blockSize);
    const bits = scaleOf(part, block);
    const scale = f16FromBits(bits);
    view.setUint32(block * stride, bits, true);
    part.forEach((value, i) => {
      view.setInt8(block * stride + q8Header + i, scale === 0 ? 0 : Math.round(value / scale));
    });
  }
  return bytes;
}

/** The bits of the smallest f16 that brings all values within the steps. */
function scaleOf(values: Float32Array, block: number): number {
  const far = values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  if (!(far <= largestScale * steps)) {
    const problem = `block ${block} has a value of ${far}: the largest that a scale reaches is ${largestScale * steps}`;
    throw new TensorError('E_VALUE', 'encodeQ8', problem);
  }
  const nearest = f16ToBits(far / steps);
  return f16FromBits(nearest) * steps < far ? nearest + 1 : nearest;
}

/** The first `count` elements of blocks, each its integer times the scale of its block. */
export function decodeQ8(bytes: Uint8Array, count: number, blockSize: number = 32): Float32Array {
  takesDecode('decodeQ8', bytes, count, blockSize);
  const stride = q8Header + blockSize;
  const needed = Math.ceil(count / blockSize) * stride;
  if (bytes.length < needed) {
    const problem = `${count} elements in blocks of ${blockSize} take ${needed} bytes, got ${bytes.length}`;
    throw new TensorError('E_VALUE', 'decodeQ8', problem);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Float32Array.from({ length: count }, (_, i) => {
    const at = Math.floor(i / blockSize) * stride;
    return f16FromBits(view.getUint16(at, true)) * view.getInt8(at + q8Header + (i % blockSize));
  });
}
