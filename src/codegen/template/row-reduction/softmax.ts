// Softmax in f32: x minus the row's maximum is at most 0, so its exponential needs no overflow
// checks, and division by a sum of at least 1 becomes a product with its reciprocal.

import type { ElementwiseOp } from '../../../ir/ops.ts';
import { argsOf, type Expr } from '../../../schedule/expression/expr.ts';
import type { RowStage, Write } from '../../../schedule/kernel.ts';
import { constant, operation, type LoopBuilder } from '../../loop/builder.ts';
import type { LoweringOptions } from '../../expression/binding.ts';
import type { Value } from '../../loop/loop.ts';
import { centreOf, isSumOfSoftmax } from './plan.ts';

/** The largest finite number of f32. */
const largestFloat = (2 - 2 ** -23) * 2 ** 127;

/** e^x as 2^(x·log₂ e). */
export function powerOfTwo(b: LoopBuilder, x: Value): Value {
  const power = operation('mul', [x, constant(Math.LOG2E, 'f32')], 'f32');
  return b.let(operation('exp2', [b.let(power, 'power')], 'f32'), 'exp');
}

/**
 * exp(x − max x) as 2^((x − max x)·log₂ e), whose error grows with the exponent while the result
 * shrinks: 1e-6 of it at e^−17. Quotients of a sum of these are products with its reciprocal.
 * `shifts`: the same for x minus what logsumexp has in the place of a maximum.
 */
export function softmaxInstead(
  b: LoopBuilder,
  stages: readonly RowStage[],
  shifts: boolean = false,
): NonNullable<LoweringOptions['instead']> {
  const isBelow = (expr: Expr): boolean =>
    stages.some((stage) => {
      if (stage.arg || stage.monoid !== 'max') return false;
      const centre = centreOf(expr, stage);
      return centre !== undefined && (isMaximum(centre, stage) || (shifts && isShift(centre, stage)));
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

function isMaximum(expr: Expr, { node }: RowStage): boolean {
  return expr.kind === 'result' && expr.node === node;
}

/**
 * Whether a value is `where(…, m, where(0 < m, largest, 0))` of a row's maximum m, whatever the condition
 * is: no element of the row is greater, but +∞, and those of a row with NaN, whose sum is NaN.
 */
function isShift(expr: Expr, max: RowStage): boolean {
  if (expr.kind !== 'op' || expr.op !== 'where') return false;
  const [, top, beyond] = expr.args as readonly [Expr, Expr, Expr];
  if (!isMaximum(top, max) || beyond.kind !== 'op' || beyond.op !== 'where') return false;
  const [isAbove, largest, zero] = beyond.args as readonly [Expr, Expr, Expr];
  if (isAbove.kind !== 'op' || isAbove.op !== 'lt') return false;
  const [origin, bound] = isAbove.args as readonly [Expr, Expr];
  const isNumber = (value: Expr, number: number): boolean =>
    value.kind === 'constant' && value.value === number;
  return isMaximum(bound, max) && isNumber(origin, 0) && isNumber(zero, 0) && isNumber(largest, largestFloat);
}

/** Operations that give NaN for NaN. */
const strict: ReadonlySet<ElementwiseOp> = new Set([
  'add',
  'sub',
  'mul',
  'div',
  'neg',
  'abs',
  'exp',
  'log',
  'sqrt',
]);

/**
 * Whether all that is made of a row's maximum is NaN when the row's sum of exp(x − max) is, as it
 * is for a row with NaN: then a maximum that passes NaN over gives the same results.
 */
export function isPoisoned(max: RowStage, stages: readonly RowStage[], writes: readonly Write[]): boolean {
  if (max.arg || max.monoid !== 'max' || max.dtype !== 'f32') return false;
  const sums = stages.filter((stage) => isSumOfSoftmax(stage.node, [max, stage]));
  const isNan = remembering((expr, again) => {
    if (expr.kind === 'result') return sums.some(({ node }) => node === expr.node);
    return expr.kind === 'op' && strict.has(expr.op) && expr.args.some(again);
  });
  const uses = remembering((expr, again) =>
    expr.kind === 'result' ? expr.node === max.node : argsOf(expr).some(again),
  );
  const values = [...stages.filter((stage) => stage !== max && !sums.includes(stage)), ...writes];
  return sums.length > 0 && values.every(({ value }) => !uses(value) || isNan(value));
}

/** A question to expressions that is asked once of each. */
function remembering(ask: (expr: Expr, again: (expr: Expr) => boolean) => boolean): (expr: Expr) => boolean {
  const known = new Map<Expr, boolean>();
  const answer = (expr: Expr): boolean => {
    const before = known.get(expr);
    if (before !== undefined) return before;
    const made = ask(expr, answer);
    known.set(expr, made);
    return made;
  };
  return answer;
}
