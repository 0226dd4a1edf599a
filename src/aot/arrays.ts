// Which typed array callers of a bundle give and get for each dtype. The bundle runtime has a table
// of its own: it imports nothing of the compiler.

import { partType, type DType } from '../ir/dtype.ts';
import type { ElementType } from '../runtime/program.ts';

/** The elements of a tensor. */
export type TypedElements = ArrayBufferView & { readonly length: number };

interface ArrayType {
  readonly name: string;
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer): TypedElements;
}

/** Bytes in the array that callers of a bundle give for this dtype: the parts of complex numbers by turns. */
export function elementsOf(dtype: DType, bytes: Uint8Array): TypedElements {
  return new bundleArrays[partType(dtype)](bytes.slice().buffer);
}

/** f16 and bf16 are given by their bits. */
export const bundleArrays: Readonly<Record<ElementType, ArrayType>> = {
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
