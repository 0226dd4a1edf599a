// Quantised blocks in host memory (the layout is format.ts's): the scale of a block is the smallest
// f16 by which its largest magnitude is at most 127 steps, so that no element is off by more than
// half a step.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { f16FromBits, f16ToBits } from '../../ir/value.ts';
import { aBlockSize, q8Header } from './format.ts';

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
