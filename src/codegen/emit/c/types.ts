// Types as C writes them: registers, vectors of them, and what elements are in memory.

import { lowered, type DType, type RealDType } from '../../../ir/dtype.ts';
import type { RegisterType } from '../../loop/loop.ts';

const scalars: Readonly<Record<RegisterType, string>> = {
  f32: 'float',
  i32: 'int32_t',
  u32: 'uint32_t',
  bool: '_Bool',
  f64: 'double',
  i64: 'int64_t',
  u64: 'uint64_t',
};

/** The type of one lane on its own. */
export function scalarType(type: RegisterType): string {
  return scalars[type];
}

/** What the lanes of a vector are: bools are masks, all bits or none. */
export function laneType(type: RegisterType): Exclude<RegisterType, 'bool'> {
  return type === 'bool' ? 'i32' : type;
}

/** What an element is in memory: 16-bit floats are their bits, bools are bytes. */
const elements: Readonly<Record<RealDType, string>> = {
  f32: 'float',
  f64: 'double',
  i32: 'int32_t',
  u32: 'uint32_t',
  i64: 'int64_t',
  u64: 'uint64_t',
  i16: 'int16_t',
  u16: 'uint16_t',
  i8: 'int8_t',
  u8: 'uint8_t',
  f16: 'uint16_t',
  bf16: 'uint16_t',
  bool: 'uint8_t',
};

/** The C type of one element of a buffer. */
export function elementType(dtype: DType): string {
  return elements[lowered(dtype)];
}
