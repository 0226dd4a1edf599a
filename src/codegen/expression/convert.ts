// Values from one register type to another, and results as their dtype stores them.

import { dtypeBytes, integerRange, isFloat, lowered, type DType } from '../../ir/dtype.ts';
import { constant, operation } from '../loop/builder.ts';
import type { RegisterType, Value } from '../loop/loop.ts';

/** A whole number as constants of the type are given. */
export function wide(value: number, dtype: DType): number | bigint {
  return dtypeBytes(dtype) === 8 && !isFloat(dtype) ? BigInt(value) : value;
}

/**
 * Brings a value computed in 32 bits into a narrow storage type: floats round, integers wrap. Every
 * other type is kept as it is.
 */
export function rounded(value: Value, to: DType): Value {
  const { type } = value;
  const dtype = lowered(to);
  switch (dtype) {
    case 'f16':
      return operation('roundF16', [value], 'f32');
    case 'bf16':
      return operation('roundBf16', [value], 'f32');
    case 'i8':
    case 'i16': {
      const spare = constant(32 - 8 * dtypeBytes(dtype), type);
      return operation('shr', [operation('shl', [value, spare], type), spare], type);
    }
    case 'u8':
    case 'u16':
      return operation('and', [value, constant(2 ** (8 * dtypeBytes(dtype)) - 1, type)], type);
    case 'f32':
    case 'f64':
    case 'i32':
    case 'i64':
    case 'u32':
    case 'u64':
    case 'bool':
      return value;
    default:
      return dtype satisfies never;
  }
}

/**
 * Whether a register is wider than the elements of the type are, so that results have to be brought
 * back.
 */
export const isNarrow = (dtype: DType): boolean => dtypeBytes(dtype) < 4 && dtype !== 'bool';

/**
 * A float as a narrow integer: the register's conversion truncates and saturates, at bounds that
 * are wider.
 */
export function clamped(value: Value, dtype: DType): Value {
  const [low, high] = integerRange(dtype).map((bound) => constant(Number(bound), value.type));
  return operation('max', [operation('min', [value, high!], value.type), low!], value.type);
}

export function convert(value: Value, type: RegisterType, dtype: DType): Value {
  return rounded(converted(value, type), dtype);
}

/**
 * In another register. A known integer is a known float: emitters have to see a zero among the
 * factors.
 */
export function converted(value: Value, type: RegisterType): Value {
  if (value.type === type) return value;
  if (value.kind === 'constant' && value.type === 'i32' && type === 'f32')
    return constant(Math.fround(value.value | 0), type, value.width);
  return operation('cast', [value], type);
}
