// Weights of an attention kernel as powers of two.

import type { Expr } from '../../../schedule/expression/expr.ts';
import type { Body } from '../../../schedule/kernel.ts';
import type { LoopBuilder } from '../../loop/builder.ts';
import type { LoweringOptions } from '../../expression/binding.ts';
import { powerOfTwo } from '../row-reduction/softmax.ts';

/** exp(x − max), whose error may grow with the exponent, by a power of two. */
export function shiftedPower(
  b: LoopBuilder,
  { online }: Extract<Body, { kind: 'attention' }>,
): NonNullable<LoweringOptions['instead']> {
  return (expr, value) => {
    if (expr.kind !== 'op' || expr.op !== 'exp' || expr.dtype !== 'f32') return undefined;
    const [power] = expr.args as readonly [Expr];
    const shift = power.kind === 'op' && power.op === 'sub' ? power.args[1] : undefined;
    const isShifted = shift?.kind === 'result' && shift.node === online?.max.node;
    return isShifted ? powerOfTwo(b, value(power)) : undefined;
  };
}
