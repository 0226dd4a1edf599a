// Element types that operators are written in. Where the standard leaves a type out, or ONNX
// Runtime's CPU has no kernel for it, a wider type carries it there and back: exactly, as integers
// wrap on the way back and 16-bit floats are computed in f32 anyway.

import type { DType } from '../../ir/dtype.ts';

type Carriers = Readonly<Partial<Record<DType, DType>>>;

const floats: Carriers = { bf16: 'f32' };
/** Sums of 32 bits in 64, since runtimes may saturate what they sum. */
const folds: Carriers = { i8: 'i64', u8: 'i64', i16: 'i64', u16: 'i64', i32: 'i64', u32: 'i64', bf16: 'f32' };
const extrema: Carriers = { i16: 'i32', u16: 'i32', u32: 'i64', bf16: 'f32' };
const updates: Carriers = { f16: 'f32', bf16: 'f32' };

/**
 * By operator; a dtype that is not listed is written as it is. u64 is never ordered as i64: see
 * `ordered` in folds.ts.
 */
const table: Readonly<Record<string, Carriers>> = {
  ArgMax: { ...extrema, bool: 'u8' },
  ArgMin: { ...extrema, bool: 'u8' },
  BitShift: { i8: 'u8', i16: 'u32', u16: 'u32', i32: 'u32', i64: 'u64' },
  Clip: { i16: 'i32', u16: 'i32', bf16: 'f32' },
  CumSum: { ...folds, u64: 'i64' },
  Expand: floats,
  Less: { ...floats, bool: 'u8' },
  LessOrEqual: { ...floats, bool: 'u8' },
  MatMul: { i8: 'i32', u8: 'i32', i16: 'i32', u16: 'i32', bf16: 'f32' },
  Max: { i16: 'i32', u16: 'i32', bf16: 'f32' },
  Min: { i16: 'i32', u16: 'i32', bf16: 'f32' },
  Pad: { i16: 'i32', u16: 'i32', bf16: 'f32' },
  ReduceMax: extrema,
  ReduceMin: extrema,
  ReduceSum: folds,
  ScatterElements: updates,
  TopK: { u16: 'i32', bool: 'u8', u32: 'i64', bf16: 'f32' },
  Where: { i8: 'i32', i16: 'i32', u16: 'i32', bool: 'u8', u32: 'i64', u64: 'i64', bf16: 'f32' },
};

/** Operators that only move elements have them all. */
const movers: ReadonlySet<string> = new Set([
  'Concat',
  'Gather',
  'GatherElements',
  'Reshape',
  'Slice',
  'Transpose',
]);

/** The dtype in which an operator is written for elements of a dtype. */
export function carrierOf(op: string, dtype: DType): DType {
  if (movers.has(op)) return dtype;
  return (table[op] ?? floats)[dtype] ?? dtype;
}
