// Registers: what elements are computed in once they are read.

import { lowered, type DType, type RealDType } from '../../ir/dtype.ts';
import type { RegisterType, Value } from './loop.ts';

const registers: Readonly<Record<RealDType, RegisterType>> = {
  f32: 'f32',
  f16: 'f32',
  bf16: 'f32',
  i32: 'i32',
  i16: 'i32',
  i8: 'i32',
  u32: 'u32',
  u16: 'u32',
  u8: 'u32',
  bool: 'bool',
  f64: 'f64',
  i64: 'i64',
  u64: 'u64',
};

/** The register type that elements of a storage dtype are widened to. */
export function widened(dtype: DType): RegisterType {
  return registers[lowered(dtype)];
}

/** Whether a register, or a lane, has 64 bits. */
export function isLong(type: RegisterType): type is 'f64' | 'i64' | 'u64' {
  return type === 'f64' || type === 'i64' || type === 'u64';
}

/** One lane of a vector; a scalar is the same in all. */
export function laneOf(value: Value, lane: number): Value {
  return value.width === 1 ? value : { kind: 'lane', arg: value, lane, type: value.type, width: 1 };
}
