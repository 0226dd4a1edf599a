// Types as CUDA C writes them: registers, short vectors of them, and what elements are in memory.

import { lowered, type DType, type RealDType } from '../../../ir/dtype.ts';
import { isLong } from '../../loop/register.ts';
import type { RegisterType, Width } from '../../loop/loop.ts';

const scalars: Readonly<Record<RegisterType, string>> = {
  f32: 'float',
  i32: 'int',
  u32: 'unsigned',
  bool: 'bool',
  f64: 'double',
  i64: 'i64',
  u64: 'u64',
};

/** Vectors that CUDA itself has; the others are structs of the prelude. */
const vectors: Partial<Record<RegisterType, string>> = { f32: 'float', i32: 'int', u32: 'uint' };

/** `float`, `float4`, `bool2`, `f64x4`. */
export function typeName(type: RegisterType, width: Width): string {
  if (width === 1) return scalars[type];
  return isLong(type) ? packName(type, width) : `${vectors[type] ?? type}${width}`;
}

/** What an element is in memory: 16-bit floats are their bits, bools are bytes. */
const elements: Readonly<Record<RealDType, string>> = {
  f32: 'float',
  f64: 'double',
  i32: 'int',
  u32: 'unsigned',
  i64: 'i64',
  u64: 'u64',
  i16: 'short',
  u16: 'u16',
  i8: 'i8',
  u8: 'u8',
  f16: 'f16',
  bf16: 'bf16',
  bool: 'u8',
};

/** The C type of one element of a buffer. */
export function elementName(dtype: DType): string {
  return elements[lowered(dtype)];
}

/** The C type of consecutive elements that are reached by one access. */
export function packName(dtype: DType, width: Exclude<Width, 1>): string {
  const vector = dtype === 'bool' ? undefined : vectors[dtype as RegisterType];
  return vector === undefined ? `${dtype === 'bool' ? 'u8' : dtype}x${width}` : `${vector}${width}`;
}

/** Names of the lanes. */
export const lanes: readonly string[] = ['x', 'y', 'z', 'w'];
