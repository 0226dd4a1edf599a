// The functions of doubles, by the operations they stand for.

import type { FloatFunctions } from './functions.ts';
import { cos, sin, tan } from './double-angle.ts';
import { acos, asin, atan, atan2 } from './double-arc.ts';
import { cosh, erf, exp, exp2, expm1, sinh, tanh } from './double-exp.ts';
import { log, log1p, log2, pow } from './double-log.ts';
import { sign } from './integer.ts';

export const doubles: FloatFunctions = {
  unary: { sign, exp, exp2, expm1, log, log2, log1p, asin, acos, atan, sinh, cosh, tanh, erf },
  binary: { pow, atan2 },
  ofAngle: { sin, cos, tan },
};
