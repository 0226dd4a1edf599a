// What operations on values of one type are replaced by: functions of their operands, and those of
// an angle that is reduced before. Tables of floats have all that the rows of ir/ops.ts call
// `math`: a missing one is a type error.

import type { BinaryOp, UnaryOp, WrittenAs } from '../../../../ir/ops.ts';
import type { LoopOp, Value } from '../../../loop/loop.ts';
import type { Angle } from './reduced.ts';
import type { Terms } from './terms.ts';

type OfOne = (m: Terms, x: Value) => Value;
type OfTwo = (m: Terms, a: Value, b: Value) => Value;
type OfAngle = (m: Terms, angle: Angle) => Value;
type Math = WrittenAs<'wasm', 'math'>;
type AngleOp = 'sin' | 'cos' | 'tan';

/** Functions on values of some type. */
export interface Functions {
  readonly unary: Partial<Record<LoopOp, OfOne>>;
  readonly binary: Partial<Record<LoopOp, OfTwo>>;
  readonly ofAngle: Partial<Record<LoopOp, OfAngle>>;
}

type RareUnaryOp = 'asin' | 'acos' | 'atan' | 'log' | 'log1p' | 'log2';

/** Logarithms, powers, functions of angles, and those that give angles. */
export interface RareFloatFunctions {
  readonly unary: Readonly<Record<RareUnaryOp, OfOne>>;
  readonly binary: Readonly<Record<Math & BinaryOp, OfTwo>>;
  readonly ofAngle: Readonly<Record<AngleOp, OfAngle>>;
}

/** Operations of which a chunk has the functions. */
export type RareMathOp = RareUnaryOp | (Math & BinaryOp) | AngleOp;

/** All other functions on floats of one type. */
export interface CommonFunctions {
  readonly unary: Readonly<Record<Exclude<Math & UnaryOp, AngleOp | RareUnaryOp>, OfOne>>;
}

/** All functions on floats of one type. */
export interface FloatFunctions extends RareFloatFunctions, CommonFunctions {
  readonly unary: RareFloatFunctions['unary'] & CommonFunctions['unary'];
}
