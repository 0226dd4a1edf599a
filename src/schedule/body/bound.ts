// Bounds of folds: from which index along an axis the terms of a kernel change nothing. Takes the expressions
// of a kernel. Masks make them 0, or another identity of the fold, beyond a number that a run gives. The loop
// over the axis ends there. The masks stay, so a template may run further, up to the end of the axis. Only
// terms that are exactly the identity of the monoid are skipped: a product with 0 is not one if the other
// side may be NaN or infinite.

import { isFloat, isInteger, type DType } from '../../ir/dtype.ts';
import {
  addIndex,
  atomsOf,
  coefficientOf,
  constantIndex,
  scaleIndex,
  type IndexExpr,
} from '../../ir/index-algebra/expr.ts';
import type { Monoid } from '../../ir/ops.ts';
import type { Expr, ExprPool } from '../expression/expr.ts';
import type { Axis, RowStage } from '../kernel.ts';

type Bound = Expr | undefined;

/** What a monoid leaves as it is. */
function isIdentity({ value }: Extract<Expr, { kind: 'constant' }>, monoid: Monoid, dtype: DType): boolean {
  switch (monoid) {
    case 'sum':
    case 'or':
      return Number(value) === 0;
    case 'prod':
    case 'and':
      return Number(value) === 1;
    case 'max':
      return dtype === 'bool' ? Number(value) === 0 : value === -Infinity;
    case 'min':
      return dtype === 'bool' ? Number(value) === 1 : value === Infinity;
    default:
      return monoid satisfies never;
  }
}

/**
 * Finds bounds along one axis: i32 expressions in [0, extent] of scalars, of the index along `batch`, and of
 * the index along `row`, with which they do not decrease. `lenient`: a factor 0 makes a product 0, as where causal
 * masks leave out keys.
 */
export class BoundFinder {
  readonly #pool: ExprPool;
  readonly #axis: Axis;
  readonly #row: Axis | undefined;
  readonly #batch: Axis | undefined;
  readonly #lenient: boolean;
  readonly #stages: readonly RowStage[];

  constructor(
    pool: ExprPool,
    axis: Axis,
    stages: readonly RowStage[] = [],
    {
      row,
      batch,
      lenient = false,
    }: { readonly row?: Axis; readonly batch?: Axis; readonly lenient?: boolean } = {},
  ) {
    this.#batch = batch;
    this.#pool = pool;
    this.#axis = axis;
    this.#stages = stages;
    this.#row = row;
    this.#lenient = lenient;
  }

  /** Elements from there on change nothing in a reduction. */
  ofStage({ arg, monoid, value, dtype }: RowStage): Bound {
    if (arg) return undefined;
    const bound = this.#constantBeyond(value, (constant) => isIdentity(constant, monoid, dtype));
    if (bound !== undefined) return bound;
    if (monoid === 'sum') return this.vanishing(value);
    if (monoid !== 'min' && monoid !== 'max') return undefined;
    // One element behind the bound shows what all others there are.
    const plain = this.#constantBeyond(value, ({ value: number }) => !Number.isNaN(Number(number)));
    return (
      plain &&
      this.#op(
        'add',
        this.#clamped(plain, this.#number(0), this.#number(this.#axis.extent - 1)),
        this.#number(1),
      )
    );
  }

  /** Both sides of a product are 0 from there on; of integers, one. */
  ofProduct(lhs: Expr, rhs: Expr): Bound {
    return this.#product(this.vanishing(lhs), this.vanishing(rhs), isInteger(lhs.dtype));
  }

  /** Both bounds hold. */
  both(a: Bound, b: Bound): Bound {
    return a === undefined || b === undefined ? (a ?? b) : this.#op('min', a, b);
  }

  /** From there on both hold. */
  either(a: Bound, b: Bound): Bound {
    if (a === undefined || b === undefined) return undefined;
    if (isNothing(a)) return b;
    return isNothing(b) ? a : this.#op('max', a, b);
  }

  /** From there on the expression is 0. */
  vanishing(expr: Expr): Bound {
    if (expr.kind === 'constant') return Number(expr.value) === 0 ? this.#number(0) : undefined;
    if (expr.kind !== 'op') return undefined;
    const [a, b, c] = expr.args;
    switch (expr.op) {
      case 'where': {
        const [yes, no] = [this.vanishing(b!), this.vanishing(c!)];
        const whole = this.either(yes, no);
        const kept = no && this.either(this.fails(a!), no);
        const dropped = yes && this.either(this.holds(a!), yes);
        return kept ?? dropped ?? whole;
      }
      case 'mul':
        return this.#product(this.vanishing(a!), this.vanishing(b!), this.#lenient || isInteger(expr.dtype));
      case 'div':
        return this.#lenient ? this.vanishing(a!) : undefined;
      case 'add':
      case 'sub':
        return this.either(this.vanishing(a!), this.vanishing(b!));
      case 'neg':
      case 'abs':
      case 'cast':
        return this.vanishing(a!);
      case 'exp':
        return this.#shifted(a!);
      default:
        return undefined;
    }
  }

  /** e^(x − max x), where x is −∞: 0, but for a row of nothing else, whose first element is NaN. */
  #shifted(power: Expr): Bound {
    if (power.kind !== 'op' || power.op !== 'sub') return undefined;
    const [x, max] = power.args;
    if (max!.kind !== 'result') return undefined;
    const stage = this.#stages.find(({ node }) => node === max!.node);
    if (stage === undefined || stage.arg || stage.monoid !== 'max' || stage.value !== x) return undefined;
    const bound = this.#constantBeyond(x, ({ value }) => value === -Infinity);
    return bound && this.#op('max', bound, this.#number(1));
  }

  #product(a: Bound, b: Bound, one: boolean): Bound {
    return one ? this.both(a, b) : this.either(a, b);
  }

  /** From there on the expression is one of these constants. */
  #constantBeyond(expr: Expr, accepts: (constant: Extract<Expr, { kind: 'constant' }>) => boolean): Bound {
    if (expr.kind !== 'op') return undefined;
    const [a, b, c] = expr.args;
    const isOne = (at: Expr): boolean => at.kind === 'constant' && accepts(at);
    if (expr.op === 'where') return isOne(c!) ? this.fails(a!) : isOne(b!) ? this.holds(a!) : undefined;
    // Casts among floats keep what an identity can be: 0, 1 and infinities.
    const keeps = expr.op === 'cast' && isFloat(expr.dtype) && isFloat(a!.dtype);
    const isSame = (at: Extract<Expr, { kind: 'constant' }>): boolean =>
      [0, 1, Infinity, -Infinity].includes(Number(at.value)) && accepts(at);
    return keeps ? this.#constantBeyond(a!, isSame) : undefined;
  }

  /** From there on the condition is false. */
  fails(condition: Expr): Bound {
    return this.#decided(condition, false);
  }

  /** From there on the condition is true. */
  holds(condition: Expr): Bound {
    return this.#decided(condition, true);
  }

  /** Where a comparison of a place begins to fail, before which it holds everywhere. */
  threshold(condition: Expr): Bound {
    if (condition.kind !== 'op' || (condition.op !== 'lt' && condition.op !== 'le')) return undefined;
    const [place, limit] = condition.args;
    return this.#reached(place!, limit!, condition.op === 'le' ? 1 : 0);
  }

  #decided(condition: Expr, as: boolean): Bound {
    if (condition.kind !== 'op') return undefined;
    const [a, b] = condition.args;
    switch (condition.op) {
      case 'and':
      case 'or': {
        if (condition.dtype !== 'bool') return undefined;
        const [left, right] = [this.#decided(a!, as), this.#decided(b!, as)];
        return (condition.op === 'and') === as ? this.either(left, right) : this.both(left, right);
      }
      case 'not':
        return this.#decided(a!, !as);
      // place < limit fails from the limit on, limit ≤ place holds from there on.
      case 'lt':
        return as ? this.#reached(b!, a!, 1) : this.#reached(a!, b!, 0);
      case 'le':
        return as ? this.#reached(b!, a!, 0) : this.#reached(a!, b!, 1);
      default:
        return undefined;
    }
  }

  /** The first element whose `place` is `limit + more`, or greater. */
  #reached(place: Expr, limit: Expr, more: 0 | 1): Bound {
    if (place.kind !== 'index' || place.dtype !== 'i32' || !this.#isBefore(limit)) return undefined;
    const steps = coefficientOf(place.index, this.#axis.atom) ?? 0;
    if (this.#axis.extent <= 1 || steps <= 0) return undefined;
    const rest = addIndex(place.index, scaleIndex(this.#axis.atom, -steps));
    if (!atomsOf(rest).every((atom) => atom === this.#batch?.atom)) return undefined;
    // Clamped before anything is added, so that nothing wraps around.
    const first = this.#index(rest, -more);
    const last = this.#index(rest, steps * this.#axis.extent - more);
    const within = this.#op('sub', this.#clamped(limit, first, last), first);
    if (steps === 1) return within;
    return this.#op('div', this.#op('add', within, this.#number(steps - 1)), this.#number(steps));
  }

  /** An index and some more, as a number. */
  #index(from: IndexExpr, more: number): Expr {
    const index = addIndex(from, constantIndex(more));
    if (index.kind === 'const') return this.#number(index.value);
    return this.#pool.make({ kind: 'index', index, dtype: 'i32' });
  }

  /** Whether a number is known before the loop, and does not decrease along the rows. */
  #isBefore(expr: Expr): boolean {
    if (expr.dtype !== 'i32') return false;
    switch (expr.kind) {
      case 'constant':
      case 'scalar':
        return true;
      case 'index':
        return this.#row !== undefined && this.#beside(expr.index, this.#row) !== undefined;
      case 'op': {
        const [a, b] = expr.args;
        if (['add', 'min', 'max'].includes(expr.op)) return this.#isBefore(a!) && this.#isBefore(b!);
        if (expr.op === 'sub') return this.#isBefore(a!) && isOfScalars(b!);
        return isOfScalars(expr);
      }
      default:
        return false;
    }
  }

  /** The constant that an index is, beside the axis's own. */
  #beside(index: IndexExpr, { atom, extent }: Axis): number | undefined {
    if (extent <= 1 || !atomsOf(index).includes(atom as never)) return undefined;
    const rest = addIndex(index, scaleIndex(atom, -1));
    return rest.kind === 'const' ? rest.value : undefined;
  }

  #clamped(expr: Expr, low: Expr, high: Expr): Expr {
    return this.#op('min', this.#op('max', expr, low), high);
  }

  #number(value: number): Expr {
    return this.#pool.constant(value, 'i32');
  }

  #op(op: 'min' | 'max' | 'add' | 'sub' | 'div', a: Expr, b: Expr): Expr {
    if (a === b && (op === 'min' || op === 'max')) return a;
    if (op === 'sub' && b.kind === 'constant' && Number(b.value) === 0) return a;
    // max(a, max(a, c)) is what the inner one is.
    if (op === 'max' && b.kind === 'op' && b.op === 'max' && b.args.includes(a)) return b;
    if (a.kind === 'constant' && b.kind === 'constant') {
      const [x, y] = [Number(a.value), Number(b.value)];
      return this.#number(
        { min: Math.min(x, y), max: Math.max(x, y), add: x + y, sub: x - y, div: Math.trunc(x / y) }[op],
      );
    }
    return this.#pool.op(op, [a, b], 'i32');
  }
}

/** From where on nothing changes any of a row's reductions. */
export function boundOfRows(pool: ExprPool, column: Axis, stages: readonly RowStage[]): Bound {
  const find = new BoundFinder(pool, column, stages);
  return stages.map((stage) => find.ofStage(stage)).reduce((a, b) => find.either(a, b));
}

/** From where on nothing changes any of the products of one left side. */
export function boundOfProducts(pool: ExprPool, k: Axis, lhs: Expr, sides: readonly Expr[]): Bound {
  const find = new BoundFinder(pool, k);
  return sides.map((rhs) => find.ofProduct(lhs, rhs)).reduce((a, b) => find.either(a, b));
}

/**
 * Comparisons of a row's expressions that hold at all elements below `end`, which is the row's bound or
 * what that is but for an empty row; undefined where there are none.
 */
export function certainBelow(
  pool: ExprPool,
  column: Axis,
  bound: Expr,
): { readonly end: Expr; readonly conditions: ReadonlySet<Expr> } | undefined {
  const find = new BoundFinder(pool, column);
  const parts = bound.kind === 'op' && bound.op === 'max' ? [bound, ...bound.args] : [bound];
  const ends = new Map<Expr, Set<Expr>>();
  for (const expr of pool.all) {
    const end = find.threshold(expr);
    if (end !== undefined && parts.includes(end)) ends.set(end, (ends.get(end) ?? new Set()).add(expr));
  }
  const [most] = [...ends].sort(([, a], [, b]) => b.size - a.size);
  return most && { end: most[0], conditions: most[1] };
}

/** The bound 0, which no other is below. */
function isNothing(bound: Expr): boolean {
  return bound.kind === 'constant' && Number(bound.value) === 0;
}

/** Whether an i32 is made of run-time scalars and constants alone. */
export function isOfScalars(expr: Expr): boolean {
  if (expr.kind === 'constant' || expr.kind === 'scalar') return true;
  return expr.kind === 'op' && expr.op !== 'bitcast' && expr.args.every(isOfScalars);
}
