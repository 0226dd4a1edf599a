// Guards: conjunctions of `lo ≤ index ≤ hi`, under which a read or write happens (padding,
// concatenation, ragged tiles). In: ranges over index expressions. Out: what the expressions'
// bounds do not already prove, in one normal form, so that equal conditions compare equal and are
// tested once.

import { gcd, scaleIndex, splitRadix, offsetIndex, substitute, weightedSum } from './simplify.ts';
import {
  compareIndex,
  evaluateIndex,
  floorMod,
  showIndex,
  type IndexExpr,
  type Leaf,
  type LeafName,
} from './node.ts';

/**
 * lo ≤ expr ≤ hi. A side that the bounds of `expr` prove equals that bound (`lo === expr.lo`): it
 * needs no test.
 */
export interface IndexBound {
  readonly expr: IndexExpr;
  readonly lo: number;
  readonly hi: number;
}

/**
 * All of the ranges hold; the empty guard is always true. One range an expression, in a fixed
 * order.
 */
export type Guard = readonly IndexBound[];

/**
 * The guard of `lo ≤ expr ≤ hi` (±Infinity leaves a side open); empty when always true, 'never'
 * when impossible.
 */
export function within(expr: IndexExpr, lo: number, hi: number): Guard | 'never' {
  if (lo > hi || lo > expr.hi || hi < expr.lo) return 'never';
  if (lo <= expr.lo && hi >= expr.hi) return [];
  const range = { expr, lo: Math.max(lo, expr.lo) + 0, hi: Math.min(hi, expr.hi) + 0 }; // −0 is 0
  const simpler = simplify(range);
  return simpler === undefined ? [range] : within(simpler.expr, simpler.lo, simpler.hi);
}

/** An equivalent range over a smaller expression, or undefined for the normal form. */
function simplify({ expr, lo, hi }: IndexBound): IndexBound | undefined {
  // lo ≤ x // n ≤ hi  ⇔  n·lo ≤ x ≤ n·hi + n − 1
  if (expr.kind === 'div') return { expr: expr.of, lo: lo * expr.by, hi: hi * expr.by + expr.by - 1 };
  if (expr.kind !== 'sum') return undefined;
  const { terms, offset } = expr;
  if (offset !== 0) return { expr: offsetIndex(expr, -offset), lo: lo - offset, hi: hi - offset };
  if (terms[0]!.factor < 0) return { expr: scaleIndex(expr, -1), lo: -hi, hi: -lo };
  // lo ≤ g·y ≤ hi  ⇔  ⌈lo / g⌉ ≤ y ≤ ⌊hi / g⌋
  const common = terms.reduce((divisor, term) => gcd(divisor, Math.abs(term.factor)), 0);
  if (common > 1) {
    const smaller = weightedSum(terms.map(({ factor, atom }) => [factor / common, atom] as const));
    return { expr: smaller, lo: Math.ceil(lo / common), hi: Math.floor(hi / common) };
  }
  // 0 ≤ s ≤ m < g: lo ≤ g·y + s ≤ hi ⇔ ⌈lo / g⌉ ≤ y ≤ ⌊hi / g⌋ where no y has some s on either side of
  // a bound: lo % g is 0 or above m, and hi % g at least m. A proven side stays open.
  const openBelow = lo <= expr.lo;
  const openAbove = hi >= expr.hi;
  const split = splitRadix(expr, 0, (radix, most) => {
    const first = floorMod(lo, radix);
    return (openBelow || first === 0 || first > most) && (openAbove || floorMod(hi, radix) >= most);
  });
  if (split === undefined) return undefined;
  return {
    expr: split.high,
    lo: openBelow ? -Infinity : Math.ceil(lo / split.radix),
    hi: openAbove ? Infinity : Math.floor(hi / split.radix),
  };
}

/** Both guards at once; 'never' when they exclude each other. */
export function andGuards(a: Guard | 'never', b: Guard | 'never'): Guard | 'never' {
  if (a === 'never' || b === 'never') return 'never';
  if (a.length === 0) return b;
  if (b.length === 0) return a;
  const ranges = new Map<IndexExpr, IndexBound>(a.map((range) => [range.expr, range]));
  for (const range of b) {
    const { lo, hi } = ranges.get(range.expr) ?? range;
    const both = { expr: range.expr, lo: Math.max(lo, range.lo), hi: Math.min(hi, range.hi) };
    if (both.lo > both.hi) return 'never';
    ranges.set(range.expr, both);
  }
  return [...ranges.values()].sort((x, y) => compareIndex(x.expr, y.expr));
}

/** The guard after replacing leaves, as `substitute` does; sides that were proven stay open. */
export function substituteGuard(
  guard: Guard | 'never',
  map: ReadonlyMap<IndexExpr, IndexExpr>,
): Guard | 'never' {
  if (guard === 'never') return 'never';
  return guard
    .map(({ expr, lo, hi }) =>
      within(substitute(expr, map), lo <= expr.lo ? -Infinity : lo, hi >= expr.hi ? Infinity : hi),
    )
    .reduce(andGuards, []);
}

/** Whether every range holds for given values of the leaves. */
export function evaluateGuard(guard: Guard | 'never', env: (atom: Leaf) => number): boolean {
  if (guard === 'never') return false;
  return guard.every(({ expr, lo, hi }) => {
    const value = evaluateIndex(expr, env);
    return lo <= value && value <= hi;
  });
}

/**
 * Readable text, only the sides that need a test: `1 <= i*2 + k <= 8 && j <= 3`; `true` when empty.
 */
export function printGuard(guard: Guard | 'never', name: LeafName = (leaf) => leaf.name): string {
  if (guard === 'never') return 'never';
  return guard.map((range) => printRange(range, name)).join(' && ') || 'true';
}

function printRange({ expr, lo, hi }: IndexBound, name: LeafName): string {
  const text = showIndex(expr, name);
  if (lo === hi) return `${text} == ${lo}`;
  if (lo <= expr.lo) return `${text} <= ${hi}`;
  return hi >= expr.hi ? `${text} >= ${lo}` : `${lo} <= ${text} <= ${hi}`;
}
