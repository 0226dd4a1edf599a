// Tensors as callers give and get them: typed arrays by dtype, elements in rows. f16 and bf16 are given by their bits.

import { SinterError } from '../errors.ts';
import type { ElementType } from '../runtime/program.ts';
import type { EntryInput, TensorType } from './manifest.ts';

/** The elements of a tensor. */
export type Data =
  | Uint8Array<ArrayBuffer>
  | Int8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Int16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | BigUint64Array<ArrayBuffer>
  | BigInt64Array<ArrayBuffer>
  | Float32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>;

interface ArrayType {
  readonly name: string;
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer): Data;
}

const arrays: Readonly<Record<ElementType, ArrayType>> = {
  bool: Uint8Array,
  i8: Int8Array,
  u8: Uint8Array,
  i16: Int16Array,
  u16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  f32: Float32Array,
  f64: Float64Array,
};

/** Bytes of a tensor's elements. */
export function bytesOf({ dtype, shape }: TensorType): number {
  return arrays[dtype].BYTES_PER_ELEMENT * shape.reduce((size, extent) => size * extent, 1);
}

/** Bytes as elements; they are the caller's alone. */
export function fromBytes({ dtype }: TensorType, bytes: Uint8Array): Data {
  return new arrays[dtype](bytes.slice().buffer);
}

/** What an input holds, as bytes, whole words of them. Throws E_VALUE where it does not fit. */
export function toBytes(entry: string, input: EntryInput & { kind: 'tensor' }, given: unknown): Uint8Array {
  const { name, dtype, shape } = input;
  const array = arrays[dtype];
  const expected = bytesOf(input);
  const found = given instanceof array ? given : undefined;
  if (found?.byteLength !== expected) {
    const count = expected / array.BYTES_PER_ELEMENT;
    const got = ArrayBuffer.isView(given)
      ? `${given.constructor.name} of ${(given as Data).length}`
      : `${given === null ? 'null' : typeof given}`;
    throw new SinterError(
      'E_VALUE',
      `${entry}: ${name} is ${dtype}[${shape.join(', ')}]: expected ${array.name} of ${count}, got ${got}`,
    );
  }
  const bytes = new Uint8Array(found.buffer, found.byteOffset, expected);
  if (expected % 4 === 0) return bytes;
  const whole = new Uint8Array(4 * Math.ceil(expected / 4));
  whole.set(bytes);
  return whole;
}
