// A maximum of several terms on a core, as cores compare.

import type { Expr } from '../../../schedule/expression/expr.ts';
import type { LoweringOptions } from '../../expression/binding.ts';
import { constant, operation, type LoopBuilder } from '../../loop/builder.ts';
import type { Value } from '../../loop/loop.ts';

/**
 * max + 0 over several terms without minding the sign of zeros, and looking for NaN aside: cores
 * compare in one instruction, and take several for an exact maximum.
 */
export function maximumInstead(b: LoopBuilder): NonNullable<LoweringOptions['instead']> {
  return (expr, value) => {
    if (expr.kind !== 'op' || expr.op !== 'add' || expr.dtype !== 'f32') return undefined;
    const [maximum, zero] = expr.args as readonly [Expr, Expr];
    if (zero.kind !== 'constant' || zero.value !== 0) return undefined;
    const [first, ...others] = termsOf(maximum);
    if (first === undefined || others.length < 2) return undefined;
    let isNan: Value = constant(0, 'bool');
    const top = others.reduce((so, term) => {
      const next = value(term);
      isNan = b.let(operation('or', [isNan, operation('isNan', [next], 'bool')], 'bool'), 'is_nan');
      return b.let(operation('pmax', [so, next], 'f32'), 'max');
    }, value(first));
    const found = operation('where', [isNan, constant(NaN, 'f32'), top], 'f32');
    return b.let(operation('add', [found, constant(0, 'f32')], 'f32'), 'add');
  };
}

/** What a maximum is taken of, in order. */
function termsOf(expr: Expr): readonly Expr[] {
  if (expr.kind !== 'op' || expr.op !== 'max') return [expr];
  const [terms, last] = expr.args as readonly [Expr, Expr];
  return [...termsOf(terms), last];
}
