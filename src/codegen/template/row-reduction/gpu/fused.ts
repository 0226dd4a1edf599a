// Two reductions in one sweep, where the second would otherwise need a sweep after the result of
// the first (row-reduction/plan.ts finds such pairs).

import type { Node } from '../../../../ir/graph.ts';
import { constant, operation, type LoopBuilder } from '../../../loop/builder.ts';
import type { LoopOp, Value } from '../../../loop/loop.ts';
import { combine } from '../../shared/monoid.ts';
import { select, type RowFold, type State, type RowStep } from './fold.ts';
import type { Item } from '../plan.ts';
import { powerOfTwo } from '../softmax.ts';

const number = (value: number): Value => constant(value, 'f32');
const arithmetic =
  (op: LoopOp) =>
  (x: Value, y: Value): Value =>
    operation(op, [x, y], 'f32');
const [plus, minus, times, over] = [
  arithmetic('add'),
  arithmetic('sub'),
  arithmetic('mul'),
  arithmetic('div'),
];
const square = (x: Value): Value => times(x, x);

/**
 * m = max x and s = Σ exp(x − m), where s shrinks whenever m grows. While only −∞ was seen,
 * exponentials are taken around 0, so that s is 0; a row of −∞ alone is NaN in the end, as exp(−∞ +
 * ∞) is.
 */
export function onlineSoftmax(b: LoopBuilder, { max, sum }: Extract<Item, { kind: 'softmax' }>): RowFold {
  const isNone = (top: Value): Value => operation('eq', [top, number(-Infinity)], 'bool');
  const around = (top: Value): Value => b.let(select(isNone(top), number(0), top), 'around');
  const exp = (x: Value, base: Value): Value => powerOfTwo(b, b.let(minus(x, base), 'below'));
  const topOf = (values: readonly Value[]): Value =>
    values.reduce((x, y) => b.let(combine('max', x, y), 'top'));
  const together = ([m1, s1]: State, [m2, s2]: State): State => {
    const top = topOf([m1!, m2!]);
    const base = around(top);
    return [top, b.let(plus(times(s1!, exp(m1!, base)), times(s2!, exp(m2!, base))), 'sum')];
  };
  return {
    names: ['max', 'sum'],
    open: (width) => [
      b.var('max', constant(-Infinity, 'f32', width)),
      b.var('sum', constant(0, 'f32', width)),
    ],
    take: (state, steps) => {
      // Past the end an element is repeated: the maximum may see it twice, the sum must not.
      const values = steps.map(({ lowering }) => lowering.value(max.value));
      const top = topOf(state === undefined ? values : [state[0]!, ...values]);
      const base = around(top);
      const terms = values.map((value, i) => {
        const { valid } = steps[i]!;
        const term = b.let(exp(value, base), 'exp');
        return valid === undefined ? term : select(valid, term, number(0));
      });
      const more = terms.reduce(plus);
      const all = state === undefined ? more : plus(times(state[1]!, exp(state[0]!, base)), more);
      return [top, b.let(all, 'sum')];
    },
    combine: together,
    *join([m, s]) {
      const [top] = yield [{ monoid: 'max', value: m! }];
      const ownSum = b.let(times(s!, exp(m!, around(top!))), 'sum');
      const [total] = yield [{ monoid: 'sum', value: ownSum }];
      return new Map<Node, Value>([
        [max.node, b.let(top!, 'row_max')],
        [sum.node, b.let(select(isNone(top!), number(NaN), total!), 'row_sum')],
      ]);
    },
  };
}

/**
 * Moments around a value x₀ of the row, so that little cancels far from 0: n elements with t = Σ (x
 * − x₀) and q = Σ (x − x₀ − t/n)². Two parts together have q₁ + q₂ + (t₁/n₁ − t₂/n₂)²·n₁n₂/(n₁ +
 * n₂). Around a centre c, which is the mean but for its rounding, the squares are q + n(x₀ + t/n −
 * c)². Σ x is summed for itself: x₀ may be an outlier.
 */
export function runningMoments(
  b: LoopBuilder,
  { sum, squares, centre }: Extract<Item, { kind: 'moments' }>,
  extent: number,
  origin: Value,
): RowFold {
  const start = finiteOrZero(b, origin);
  const atLeastOne = (n: Value): Value =>
    n.kind === 'constant' ? n : operation('max', [n, number(1)], 'f32');
  const mean = (t: Value, n: Value): Value => over(t, atLeastOne(n));
  const names = ['sum', 'count', 'offsets', 'squares'];
  const named = (state: State): State => state.map((value, i) => b.let(value, names[i]!));
  const together = ([s1, n1, t1, q1]: State, [s2, n2, t2, q2]: State): State => {
    const n = b.let(plus(n1!, n2!), 'count');
    const meanDifference = b.let(minus(mean(t1!, n1!), mean(t2!, n2!)), 'apart');
    const weight = b.let(over(times(n1!, n2!), atLeastOne(n)), 'weight');
    const q = plus(plus(q1!, q2!), times(square(meanDifference), weight));
    return named([plus(s1!, s2!), n, plus(t1!, t2!), q]);
  };
  return {
    names,
    open: (width) => names.map((name) => b.var(name, constant(0, 'f32', name === 'count' ? 1 : width))),
    take: (state, steps) => {
      const within = (term: Value, { valid }: RowStep): Value =>
        valid === undefined ? term : select(valid, term, number(0));
      const values = steps.map((step) => step.lowering.value(sum.value));
      const s = values.map((value, i) => within(value, steps[i]!)).reduce(plus);
      const offsets = values.map((value, i) => b.let(within(minus(value, start), steps[i]!), 'offset'));
      const t = b.let(offsets.reduce(plus), 'offsets');
      const whole = steps.every(({ valid }) => valid === undefined);
      const n = whole
        ? number(steps.length)
        : b.let(steps.map((step) => within(number(1), step)).reduce(plus), 'count');
      const middle = b.let(over(t, n), 'mean');
      const q = offsets.map((offset, i) => within(square(b.let(minus(offset, middle), 'off')), steps[i]!));
      const own = named([s, n, t, q.reduce(plus)]);
      return state === undefined ? own : together(state, own);
    },
    combine: together,
    *join([s, n, t, q], perRow) {
      const [row, total] = yield [
        { monoid: 'sum', value: s! },
        { monoid: 'sum', value: t! },
      ];
      const middle = b.let(over(total!, number(extent)), 'mean');
      const own = times(n!, square(minus(mean(t!, n!), middle)));
      const [rest] = yield [{ monoid: 'sum', value: b.let(plus(q!, own), 'squares') }];
      const lowering = perRow();
      lowering.results.set(sum.node, b.let(row!, 'row_sum'));
      const off = b.let(plus(minus(start, lowering.value(centre)), middle), 'off');
      const around = plus(rest!, times(number(extent), square(off)));
      return new Map<Node, Value>([
        [sum.node, b.let(row!, 'row_sum')],
        [squares.node, b.let(around, 'row_squares')],
      ]);
    },
  };
}

/** By the bits: compilers may assume that no float is infinite or NaN. */
function finiteOrZero(b: LoopBuilder, x: Value): Value {
  const bits = operation('and', [operation('bitcast', [x], 'i32'), constant(0x7fffffff)], 'i32');
  const finite = operation('lt', [bits, constant(0x7f800000)], 'bool');
  return b.let(select(finite, x, number(0)), 'start');
}
