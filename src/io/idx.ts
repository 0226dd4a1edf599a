// idx, the format of the MNIST files: two zero bytes, a type code, the rank, big-endian 32-bit
// sizes, big-endian values.

import { ParseError, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { dtypeBytes, type DType } from '../ir/dtype.ts';
import { showShape } from '../ir/shape.ts';
import { checkHostTensor, hostTensor, packedBytes, packedView, swapEndian, type HostTensor } from './host.ts';

const codes: ReadonlyMap<DType, number> = new Map([
  ['u8', 0x08],
  ['i8', 0x09],
  ['i16', 0x0b],
  ['i32', 0x0c],
  ['f32', 0x0d],
  ['f64', 0x0e],
]);

const takesReadIdx = arg.takes<typeof readIdx>(['the file', arg.bytes]);

/** Reads an idx file (`gunzip` it first where it ends in .gz). Throws ParseError E_FORMAT. */
export function readIdx(bytes: Uint8Array): HostTensor {
  takesReadIdx('readIdx', bytes);
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) throw broken('the file is gzipped: gunzip it first');
  if (bytes.length < 4) throw broken(`the file ends in the magic number, at byte ${bytes.length}`);
  if (bytes[0] !== 0 || bytes[1] !== 0) throw broken('byte 0: the file does not begin with two zero bytes');
  const dtype = [...codes].find(([, code]) => code === bytes[2])?.[0];
  if (dtype === undefined) throw broken(`byte 2: unknown type code 0x${bytes[2]!.toString(16)}`);
  const rank = bytes[3]!;
  const start = 4 + 4 * rank;
  if (bytes.length < start)
    throw broken(`the file ends in the sizes: ${bytes.length - 4} of ${4 * rank} bytes`);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  const shape = Array.from({ length: rank }, (_, axis) => view.getUint32(4 + 4 * axis));
  const expected = packedBytes(dtype, shape);
  const found = bytes.length - start;
  if (expected !== found) {
    throw broken(`${showShape(shape, dtype)} takes ${expected ?? 'too many'} bytes, the file holds ${found}`);
  }
  const data = packedView(bytes, start, bytes.length, dtype);
  const width = dtypeBytes(dtype);
  return { dtype, shape, data: width === 1 ? data : swapEndian(data, width) };
}

const takesWriteIdx = arg.takes<typeof writeIdx>(['the tensor', hostTensor]);

/**
 * An idx file of `tensor`. Throws E_DTYPE for a dtype the format lacks, E_LIMIT for a rank or size
 * it cannot hold.
 */
export function writeIdx(tensor: HostTensor): Uint8Array {
  takesWriteIdx('writeIdx', tensor);
  const { dtype, shape, data } = tensor;
  checkHostTensor('writeIdx', tensor);
  const code = codes.get(dtype);
  if (code === undefined) {
    throw new TensorError(
      'E_DTYPE',
      'writeIdx',
      `idx has no ${dtype}`,
      `one of ${[...codes.keys()].join(', ')}`,
    );
  }
  if (shape.length > 255 || shape.some((size) => size > 0xffff_ffff)) {
    throw new TensorError('E_LIMIT', 'writeIdx', `idx cannot hold the shape ${showShape(shape)}`);
  }
  const start = 4 + 4 * shape.length;
  const out = new Uint8Array(start + data.length);
  out.set([0, 0, code, shape.length]);
  const view = new DataView(out.buffer);
  shape.forEach((size, axis) => view.setUint32(4 + 4 * axis, size));
  out.set(swapEndian(data, dtypeBytes(dtype)), start);
  return out;
}

function broken(problem: string): ParseError {
  return new ParseError('E_FORMAT', 'idx', problem);
}
