// Softmax on a core: what differs from x by the row's maximum needs no bounds, and a sum that is 1 at least may be divided by once.

import type { Expr } from '../../schedule/expr.ts';
import type { RowStage } from '../../schedule/kernel.ts';
import { constant, operation, type LoopBuilder } from '../builder.ts';
import type { LoweringOptions } from '../lower.ts';
import type { Value } from '../loop.ts';
import { centreOf, isSumOfSoftmax } from './row-plan.ts';

/** e^x as 2^(x·log₂ e). */
export function powerOfTwo(b: LoopBuilder, x: Value): Value {
  const power = operation('mul', [x, constant(Math.LOG2E, 'f32')], 'f32');
  return b.let(operation('exp2', [b.let(power, 'power')], 'f32'), 'exp');
}

/** exp(x − max x) as 2^((x − max x)·log₂ e), whose error grows with the exponent while the result shrinks: 1e-6 of it at e^−17.
 *  Quotients of a sum of these are products with its reciprocal. */
export function softmaxInstead(
  b: LoopBuilder,
  stages: readonly RowStage[],
): NonNullable<LoweringOptions['instead']> {
  const isBelow = (expr: Expr): boolean =>
    stages.some((stage) => {
      if (stage.arg || stage.monoid !== 'max') return false;
      const centre = centreOf(expr, stage);
      return centre?.kind === 'result' && centre.node === stage.node;
    });
  return (expr, value) => {
    if (expr.kind !== 'op' || expr.dtype !== 'f32') return undefined;
    const [first, second] = expr.args;
    if (expr.op === 'exp' && isBelow(first!)) return powerOfTwo(b, value(first!));
    if (expr.op === 'div' && second?.kind === 'result' && isSumOfSoftmax(second.node, stages)) {
      const share = b.let(operation('recip', [value(second)], 'f32'), 'share');
      return b.let(operation('mul', [value(first!), share], 'f32'), 'div');
    }
    return undefined;
  };
}
