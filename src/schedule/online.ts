// Online softmax (Milakov & Gimelshein, 2018): sums of terms e^(x − max) can be kept while the maximum is still being found, if
// they are multiplied by e^(old − new) whenever it grows. This finds out which sums of a streaming kernel are of that form.

import type { Node } from '../ir/graph.ts';
import { atomsOf, type Guard, type IndexExpr } from '../ir/index-expr.ts';
import { argsOf, type Expr, type ExprPool } from './expr.ts';
import type { Axis, OuterProduct, RowStage } from './kernel.ts';

/** A factor that does not depend on the key, applied once to the finished sum. */
export interface Scale {
  readonly op: 'mul' | 'div';
  readonly by: Expr;
}

/** A sum's term without the factors that are constant along the keys. */
export interface Term {
  readonly core: Expr;
  readonly scales: readonly Scale[];
  /** The term has the factor e^(x − max): the sum shrinks as the maximum grows. */
  readonly shifts: boolean;
}

/** A kernel whose sums can all be kept in one sweep, together with the maximum that shifts them. */
export interface Online {
  readonly max: RowStage;
  /** Terms of the other stages, and of the products, in order. */
  readonly stages: readonly (Term & { readonly stage: RowStage })[];
  readonly outers: readonly Term[];
}

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
  const sums: (Term & { stage: RowStage })[] = [];
  for (const stage of stages) {
    if (stage === max) continue;
    const term = stage.monoid === 'sum' ? split.term(stage.value) : undefined;
    if (term === undefined || term.scales.length > 0) return undefined;
    sums.push({ ...term, stage });
  }
  const products: Term[] = [];
  for (const { weight } of outers) {
    const term = split.term(weight);
    if (term === undefined) return undefined;
    products.push(term);
  }
  return { max, stages: sums, outers: products };
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

  /** expr = core · scales, with the maximum only in e^(x − max), at most once as a factor. */
  term(expr: Expr): Term | undefined {
    if (!this.#usesStage(expr)) return { core: expr, scales: [], shifts: false };
    if (expr.kind === 'select') {
      const yes = this.term(expr.yes);
      if (yes === undefined || !isZero(expr.no)) return undefined;
      return { ...yes, core: this.#pool.make({ ...expr, yes: yes.core }) };
    }
    if (expr.kind !== 'op') return undefined;
    const { op, args, dtype } = expr;
    const [a, b, c] = args;
    const wrap = (term: Term | undefined, inner: (core: Expr) => readonly Expr[]): Term | undefined =>
      term && { ...term, core: this.#pool.op(op, inner(term.core), dtype) };
    switch (op) {
      case 'exp':
        return this.#isShifted(a!) ? { core: expr, scales: [], shifts: true } : undefined;
      case 'neg':
      case 'cast':
        return wrap(this.term(a!), (core) => [core]);
      case 'div':
        if (this.#isOfRow(b!)) return scaled(this.term(a!), { op: 'div', by: b! });
        return this.#usesStage(b!) ? undefined : wrap(this.term(a!), (core) => [core, b!]);
      case 'where': {
        if (this.#usesStage(a!)) return undefined;
        if (isZero(c!)) return wrap(this.term(b!), (core) => [a!, core, c!]);
        return isZero(b!) ? wrap(this.term(c!), (core) => [a!, b!, core]) : undefined;
      }
      case 'mul': {
        if (this.#isOfRow(a!)) return scaled(this.term(b!), { op: 'mul', by: a! });
        if (this.#isOfRow(b!)) return scaled(this.term(a!), { op: 'mul', by: b! });
        const [x, y] = [this.term(a!), this.term(b!)];
        if (x === undefined || y === undefined || (x.shifts && y.shifts)) return undefined;
        const core = this.#pool.op('mul', [x.core, y.core], dtype);
        return { core, scales: [...x.scales, ...y.scales], shifts: x.shifts || y.shifts };
      }
      default:
        return undefined;
    }
  }

  /** x − max, where x knows nothing of the row's results. */
  #isShifted(expr: Expr): boolean {
    if (expr.kind !== 'op' || expr.op !== 'sub') return false;
    const [x, max] = expr.args;
    return max!.kind === 'result' && max!.node === this.#max.node && !this.#usesStage(x!);
  }

  #usesStage(expr: Expr): boolean {
    const known = this.#folded.get(expr);
    if (known !== undefined) return known;
    const uses =
      expr.kind === 'result' ? this.#stages.has(expr.node) : argsOf(expr).some((arg) => this.#usesStage(arg));
    this.#folded.set(expr, uses);
    return uses;
  }

  /** Constant along the keys: made of the row's results and of what is read for the row. */
  #isOfRow(expr: Expr): boolean {
    switch (expr.kind) {
      case 'result':
        return this.#stages.has(expr.node);
      case 'read':
      case 'index':
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

function scaled(term: Term | undefined, scale: Scale): Term | undefined {
  return term && { ...term, scales: [...term.scales, scale] };
}
