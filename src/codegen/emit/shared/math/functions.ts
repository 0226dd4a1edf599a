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

type ArcOp = 'asin' | 'acos' | 'atan';

/** Functions of angles, and those that give angles. */
export interface AngleFunctions {
  readonly unary: Readonly<Record<ArcOp, OfOne>>;
  readonly binary: Readonly<Record<'atan2', OfTwo>>;
  readonly ofAngle: Readonly<Record<AngleOp, OfAngle>>;
}

/** All other functions on floats of one type. */
export interface CommonFunctions {
  readonly unary: Readonly<Record<Exclude<Math & UnaryOp, AngleOp | ArcOp>, OfOne>>;
  readonly binary: Readonly<Record<Exclude<Math & BinaryOp, 'atan2'>, OfTwo>>;
}

/** All functions on floats of one type. */
export interface FloatFunctions extends AngleFunctions, CommonFunctions {
  readonly unary: AngleFunctions['unary'] & CommonFunctions['unary'];
  readonly binary: AngleFunctions['binary'] & CommonFunctions['binary'];
}
