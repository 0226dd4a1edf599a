// What holds a value of a register type: a number type of WebAssembly, or lanes of it in a v128.
// Lanes of 64 bits come in pairs (rewrite/halves.ts). A bool is 0 or 1, and in vectors a mask of 32
// bits a lane, whatever the lanes beside it have.

import { operandsOf } from '../../loop/builder.ts';
import type { RegisterType, Value } from '../../loop/loop.ts';
import { isLong } from '../../loop/register.ts';
import type { ValueType } from './module/instructions.ts';

export type NumberType = 'i32' | 'i64' | 'f32' | 'f64';
export type LaneShape = 'i32x4' | 'i64x2' | 'f32x4' | 'f64x2';

const numbers = {
  f32: 'f32',
  i32: 'i32',
  u32: 'i32',
  bool: 'i32',
  f64: 'f64',
  i64: 'i64',
  u64: 'i64',
} as const satisfies Record<RegisterType, NumberType>;

const shapes = { i32: 'i32x4', i64: 'i64x2', f32: 'f32x4', f64: 'f64x2' } as const;

/** The type of one lane on its own. */
export function numberType(type: RegisterType): NumberType {
  return numbers[type];
}

/** How a v128 is cut into lanes of the type. */
export function laneShape(type: RegisterType): LaneShape {
  return shapes[numbers[type]];
}

/** What holds a value of a register type and width. */
export function valueType({ type, width }: Pick<Value, 'type' | 'width'>): ValueType {
  return width > 1 ? 'v128' : numbers[type];
}

export function isUnsigned(type: RegisterType): boolean {
  return type === 'u32' || type === 'u64' || type === 'bool';
}

const view = new DataView(new ArrayBuffer(8));

/** The bits of a constant in one lane: one word, or two, the low one first. */
export function wordsOf({ value, exact, type }: Extract<Value, { kind: 'constant' }>): readonly number[] {
  switch (type) {
    case 'f32':
      view.setFloat32(0, value, true);
      break;
    case 'f64':
      view.setFloat64(0, value, true);
      break;
    case 'i64':
    case 'u64':
      view.setBigInt64(0, BigInt.asIntN(64, exact ?? BigInt(value)), true);
      break;
    case 'i32':
    case 'u32':
      view.setInt32(0, value, true);
      break;
    case 'bool':
      view.setInt32(0, -Number(value !== 0), true);
      break;
    default:
      return type satisfies never;
  }
  const low = view.getUint32(0, true);
  return isLong(type) ? [low, view.getUint32(4, true)] : [low];
}

/** Whether a v128 does not hold a value. */
export function isTooWide({ type, width }: Value): boolean {
  return width === 4 && isLong(type);
}

/** Whether a value, or a part of it, fits no v128. */
export function needsHalving(value: Value): boolean {
  return isTooWide(value) || operandsOf(value).some(needsHalving);
}
