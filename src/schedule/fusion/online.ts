// Online softmax (Milakov & Gimelshein, 2018): sums of terms e^(x − max) can be kept while the
// maximum is still being found, if they are multiplied by e^(old − new) whenever it grows. This
// finds out which sums of a streaming kernel are of that form.

import { isFloat } from '../../ir/dtype.ts';
import type { Node } from '../../ir/graph.ts';
import { atomsOf, type Guard, type IndexExpr } from '../../ir/index-algebra/expr.ts';
import { argsOf, type Expr, type ExprPool } from '../expression/expr.ts';
import type { Axis, Online, OuterProduct, RowStage, Scale, SumTerm } from '../kernel.ts';

/** The one-sweep form of a kernel, if its stages and products allow it. */
export function onlineForm(
  stages: readonly RowStage[],
  outers: readonly OuterProduct[],
  key: Axis,
  pool: ExprPool,
): Online | undefined {
  const max = stages.find(({ monoid, pass }) => monoid === 'max' && pass === 0);
  if (max === undefined || (stages.length === 1 && outers.every(({ pass }) => pass === 0))) return undefined;
  const split = new Splitter(max, new Set(stages.map(({ node }) => node as Node)), key, pool);
  const sums: (SumTerm & { stage: RowStage })[] = [];
  for (const stage of stages) {
    if (stage === max) continue;
    const term = stage.monoid === 'sum' ? split.term(stage.value) : undefined;
    if (term === undefined || term.scales.length > 0) return undefined;
    sums.push({ ...term, stage });
  }
  const products: SumTerm[] = [];
  for (const { weight } of outers) {
    const term = split.term(weight);
    if (term === undefined) return undefined;
    products.push(term);
  }
  return { max, stages: sums, outers: products };
}

/** A choice of x where a condition holds, and of a constant elsewhere. */
interface Mask {
  readonly when: Expr;
  readonly x: Expr;
  readonly otherwise: number;
}

class Splitter {
  readonly #max: RowStage;
  readonly #stages: ReadonlySet<Node>;
  readonly #key: Axis;
  readonly #pool: ExprPool;
  readonly #folded = new Map<Expr, boolean>();

  constructor(max: RowStage, stages: ReadonlySet<Node>, key: Axis, pool: ExprPool) {
    this.#max = max;
    this.#stages = stages;
    this.#key = key;
    this.#pool = pool;
  }

  /**
   * expr = core · scales, with the maximum only in e^(x − max), at most once as a factor; all that is
   * `given` holds where it counts.
   */
  term(expr: Expr, given: readonly Expr[] = []): SumTerm | undefined {
    if (!this.#usesStage(expr)) return { core: expr, scales: [], shifts: false };
    if (expr.kind === 'select') {
      const yes = this.term(expr.yes);
      if (yes === undefined || !isZero(expr.no)) return undefined;
      const [all, none] = [this.#pool.constant(1, 'bool'), this.#pool.constant(0, 'bool')];
      const inside = this.#pool.make({ ...expr, yes: all, no: none, dtype: 'bool' });
      return this.#guarded(yes, inside, this.#pool.make({ ...expr, yes: yes.core }), given);
    }
    if (expr.kind !== 'op') return undefined;
    const { op, args, dtype } = expr;
    const [a, b, c] = args;
    const wrap = (term: SumTerm | undefined, inner: (core: Expr) => readonly Expr[]): SumTerm | undefined =>
      term && { ...term, core: this.#pool.op(op, inner(term.core), dtype) };
    switch (op) {
      case 'exp':
        return this.#isShifted(a!, given) ? { core: expr, scales: [], shifts: true } : undefined;
      case 'neg':
        return wrap(this.term(a!, given), (core) => [core]);
      case 'cast':
        // A cast to integers is a step function, which does not commute with scales.
        return isFloat(dtype) ? wrap(this.term(a!, given), (core) => [core]) : undefined;
      case 'div':
        if (this.#isOfRow(b!)) return scaled(this.term(a!, given), { op: 'div', by: b! });
        return this.#usesStage(b!) ? undefined : wrap(this.term(a!, given), (core) => [core, b!]);
      case 'where': {
        if (this.#usesStage(a!)) return undefined;
        const [kept, inner] = isZero(c!)
          ? [a!, this.term(b!, [...given, a!])]
          : [this.#not(a!), this.term(c!)];
        if (inner === undefined || !(isZero(c!) || isZero(b!))) return undefined;
        const args = isZero(c!) ? [a!, inner.core, c!] : [a!, b!, inner.core];
        return this.#guarded(inner, kept, this.#pool.op(op, args, dtype), given);
      }
      case 'mul': {
        if (this.#isOfRow(a!)) return scaled(this.term(b!, given), { op: 'mul', by: a! });
        if (this.#isOfRow(b!)) return scaled(this.term(a!, given), { op: 'mul', by: b! });
        const [x, y] = [this.term(a!, given), this.term(b!, given)];
        if (x === undefined || y === undefined || (x.shifts && y.shifts)) return undefined;
        const guard = this.#both(x.guard, y.guard);
        const core = this.#pool.op('mul', [x.core, y.core], dtype);
        const scales = [...x.scales, ...y.scales];
        return { core, scales, shifts: x.shifts || y.shifts, ...(guard && { guard }) };
      }
      default:
        return undefined;
    }
  }

  /** A term that is selected by a condition, as `core`, where all that is `given` holds. */
  #guarded(term: SumTerm, condition: Expr, core: Expr, given: readonly Expr[]): SumTerm {
    const masks = this.#masks;
    const at = masks.findIndex(({ when }) => when === condition);
    const isHidden = at >= 0 && masks.slice(0, at).every(({ when }) => given.includes(when));
    // If such a maximum is −∞, no key is masked, and e^(x − max) is not known to be 0.
    const always = term.scales.length === 0 && isHidden && masks[at]!.otherwise > -Infinity;
    const guard = always ? undefined : this.#both(term.guard, condition);
    const { scales, shifts } = term;
    return { core, scales, shifts, ...(guard && { guard }) };
  }

  #both(a: Expr | undefined, b: Expr | undefined): Expr | undefined {
    if (a === undefined || b === undefined || a === b) return a ?? b;
    return this.#pool.op('and', [a, b], 'bool');
  }

  #not(condition: Expr): Expr {
    return this.#pool.op('not', [condition], 'bool');
  }

  /**
   * The maximum over x where a condition holds, and of a constant elsewhere; and that x may be such a
   * choice again: from the outermost to the innermost.
   */
  get #masks(): readonly Mask[] {
    const masks: Mask[] = [];
    for (let at = this.#max.value; at.kind === 'op' && at.op === 'where';) {
      const [when, x, otherwise] = at.args;
      if (otherwise!.kind !== 'constant') break;
      masks.push({ when: when!, x: x!, otherwise: Number(otherwise!.value) });
      at = x!;
    }
    return masks;
  }

  /**
   * x − max, where the maximum is taken over the same x, at least where all that is `given` holds:
   * while the maximum is −∞, so is x.
   */
  #isShifted(expr: Expr, given: readonly Expr[]): boolean {
    if (expr.kind !== 'op' || expr.op !== 'sub') return false;
    const [x, max] = expr.args;
    if (max!.kind !== 'result' || max!.node !== this.#max.node) return false;
    if (x === this.#max.value) return true;
    const masks = this.#masks;
    const inner = masks.findIndex((mask) => mask.x === x);
    return inner >= 0 && masks.slice(0, inner + 1).every(({ when }) => given.includes(when));
  }

  #usesStage(expr: Expr): boolean {
    const known = this.#folded.get(expr);
    if (known !== undefined) return known;
    const uses =
      expr.kind === 'result' ? this.#stages.has(expr.node) : argsOf(expr).some((arg) => this.#usesStage(arg));
    this.#folded.set(expr, uses);
    return uses;
  }

  /** Constant along the keys: computed only from results of the row and from reads at the row. */
  #isOfRow(expr: Expr): boolean {
    switch (expr.kind) {
      case 'result':
        return this.#stages.has(expr.node);
      case 'read':
      case 'index':
      case 'decode':
      case 'random':
        return !this.#followsKey(expr.index) && argsOf(expr).every((arg) => this.#isOfRow(arg));
      case 'select':
        return (
          !guardAtoms(expr.guard).includes(this.#key.atom) && argsOf(expr).every((a) => this.#isOfRow(a))
        );
      case 'op':
        return expr.args.every((arg) => this.#isOfRow(arg));
      case 'scalar':
      case 'constant':
        return true;
      default:
        return expr satisfies never;
    }
  }

  #followsKey(index: IndexExpr): boolean {
    return atomsOf(index).some((atom) => atom === this.#key.atom || atom.kind === 'dynamic');
  }
}

function guardAtoms(guard: Guard): readonly IndexExpr[] {
  return guard.flatMap(({ expr }) => [...atomsOf(expr)]);
}

function isZero(expr: Expr): boolean {
  return expr.kind === 'constant' && Number(expr.value) === 0;
}

function scaled(term: SumTerm | undefined, scale: Scale): SumTerm | undefined {
  return term && { ...term, scales: [...term.scales, scale] };
}
