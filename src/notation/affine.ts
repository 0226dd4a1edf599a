// Index expressions that are sums of indices times whole numbers: the values that they reach.

import type { Resolved, Variable } from './resolve.ts';

/** Σ factor · variable + constant; no factor is 0. */
export interface AffineIndex {
  readonly terms: ReadonlyMap<Variable, number>;
  readonly constant: number;
}

function combine(x: AffineIndex, y: AffineIndex, factor: number): AffineIndex {
  const terms = new Map(x.terms);
  for (const [variable, times] of y.terms) {
    const sum = (terms.get(variable) ?? 0) + times * factor;
    if (sum === 0) terms.delete(variable);
    else terms.set(variable, sum);
  }
  return { terms, constant: x.constant + y.constant * factor };
}

const none: AffineIndex = { terms: new Map(), constant: 0 };

/** The expression as such a sum; undefined where it is none. */
export function affineOf(expr: Resolved): AffineIndex | undefined {
  switch (expr.kind) {
    case 'number':
      return Number.isInteger(expr.value) ? { ...none, constant: expr.value } : undefined;
    case 'variable':
      return { terms: new Map([[expr.variable, 1]]), constant: 0 };
    case 'unary': {
      const x = expr.op === '-' ? affineOf(expr.x) : undefined;
      return x && combine(none, x, -1);
    }
    case 'binary': {
      const [x, y] = [affineOf(expr.x), affineOf(expr.y)];
      if (x === undefined || y === undefined) return undefined;
      if (expr.op === '+') return combine(x, y, 1);
      if (expr.op === '-') return combine(x, y, -1);
      if (expr.op !== '*') return undefined;
      if (y.terms.size === 0) return combine(none, x, y.constant);
      return x.terms.size === 0 ? combine(none, y, x.constant) : undefined;
    }
    case 'access':
    case 'call':
    case 'reduction':
    case 'choice':
      return undefined;
  }
}

/** The least and the greatest value over all indices; undefined where one of them takes none. */
export function reach(
  { terms, constant }: AffineIndex,
  sizeOf: (variable: Variable) => number,
): readonly [low: number, high: number] | undefined {
  let [low, high] = [constant, constant];
  for (const [variable, factor] of terms) {
    const last = sizeOf(variable) - 1;
    if (last < 0) return undefined;
    low += Math.min(0, factor * last);
    high += Math.max(0, factor * last);
  }
  return [low, high];
}
