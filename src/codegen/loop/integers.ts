// Whole numbers in registers: positions made of rows and columns, and taken apart again.

import type { Value } from './loop.ts';
import { addInts, constant, mulInts, operation, type LoopBuilder } from './builder.ts';

/** i32 quotient and remainder of a nonnegative value by a constant, and what to call them. */
export function divideInts(
  b: LoopBuilder,
  value: Value,
  by: number,
  names: readonly [string, string],
): readonly [Value, Value] {
  if (by === 1) return [value, constant(0)];
  return [
    b.let(operation('div', [value, constant(by)], 'i32'), names[0]),
    b.let(operation('mod', [value, constant(by)], 'i32'), names[1]),
  ];
}

/** a·by + c */
export function place(a: Value, by: number, c: Value): Value {
  return addInts(mulInts(a, constant(by)), c);
}
