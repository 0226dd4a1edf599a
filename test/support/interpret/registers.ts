// Registers of an invocation in the Loop interpreter, and numbers as they hold them.

import type { Scalar } from '../../../src/ir/value.ts';
import type { RegisterType } from '../../../src/codegen/loop/loop.ts';

/**
 * Registers of one invocation: numbers, but bigints in those of i64 and u64. Only operations know
 * of these, and find out by the register's type; whatever else a Loop does with registers
 * (addresses, conditions, counters), it does with numbers.
 */
export type Frame = number[];
/** One lane of a value. */
export type Lane = (frame: Frame) => number;

/** A number as a register holds it (see `Frame`). */
export function intoRegister(type: RegisterType, value: number | bigint): number {
  return scalarOf(type, value) as number;
}

function scalarOf(type: RegisterType, given: number | bigint): Scalar {
  if (type === 'i64') return BigInt.asIntN(64, BigInt(given));
  if (type === 'u64') return BigInt.asUintN(64, BigInt(given));
  const value = Number(given);
  switch (type) {
    case 'f64':
      return value;
    case 'f32':
      return Math.fround(value);
    case 'i32':
      return value | 0;
    case 'u32':
      return value >>> 0;
    case 'bool':
      return value === 0 ? 0 : 1;
    default:
      return type satisfies never;
  }
}
