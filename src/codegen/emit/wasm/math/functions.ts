// What operations on values of one type are replaced by: functions of their operands, and those of an angle that is reduced before.

import type { LoopOp, Value } from '../../../loop/loop.ts';
import type { Angle } from './reduced.ts';
import type { Terms } from './terms.ts';

export interface Functions {
  readonly unary: Partial<Record<LoopOp, (m: Terms, x: Value) => Value>>;
  readonly binary: Partial<Record<LoopOp, (m: Terms, a: Value, b: Value) => Value>>;
  readonly ofAngle: Partial<Record<LoopOp, (m: Terms, angle: Angle) => Value>>;
}
