// The expression language that fills kernels: scalar DAGs over the elementwise ops, reads at index
// expressions, and body results. Interned per kernel, so equal expressions are one object.

import type { BlockFormat } from '../../ir/blocks/format.ts';
import type { DType } from '../../ir/dtype.ts';
import type { Node } from '../../ir/graph.ts';
import { printGuard, printIndex, type Guard, type IndexExpr } from '../../ir/index-algebra/expr.ts';
import type { ElementwiseOp } from '../../ir/ops.ts';
import { codeSize } from './code-size.ts';

interface Typed {
  /** Numbered per pool, arguments before users. */
  readonly id: number;
  readonly dtype: DType;
}

export type Expr = Typed &
  (
    | { readonly kind: 'op'; readonly op: ElementwiseOp; readonly args: readonly Expr[] }
    /** Element `index` (flat, row-major) of a stored node. */
    | { readonly kind: 'read'; readonly node: Node; readonly index: IndexExpr }
    /** `yes` where the guard holds, else `no`; `yes` may read only there. */
    | { readonly kind: 'select'; readonly guard: Guard; readonly yes: Expr; readonly no: Expr }
    /** An index as a number (iota). */
    | { readonly kind: 'index'; readonly index: IndexExpr }
    /** What the kernel's body computed for this fusion root node at the current point. */
    | { readonly kind: 'result'; readonly node: Node }
    /** A run-time scalar. */
    | { readonly kind: 'scalar'; readonly slot: number }
    | { readonly kind: 'constant'; readonly value: number | bigint }
    /** What blocks say of a column: args are the words that hold its value (body/blocks.ts). */
    | {
        readonly kind: 'decode';
        readonly format: BlockFormat;
        readonly args: readonly Expr[];
        readonly index: IndexExpr;
      }
    /** Word of Philox at flat element `index`; args are key lo, key hi, counter lo, counter hi. */
    | { readonly kind: 'random'; readonly args: readonly Expr[]; readonly index: IndexExpr }
  );

/** An expression before it has its number. */
export type Bare = Expr extends infer E ? (E extends Expr ? Omit<E, 'id'> : never) : never;

/**
 * Interns the expressions of one kernel and names the run-time indices (of gathers) that their
 * reads depend on.
 */
export class ExprPool {
  readonly #table = new Map<string, Expr>();
  readonly #indexIds = new Map<IndexExpr, number>();
  /** The i32 expression behind each dynamic index atom. */
  readonly dynamics: Map<IndexExpr, Expr> = new Map();
  #count = 0;
  #work = 0;

  get size(): number {
    return this.#count;
  }

  /** Every expression, in the order of their numbers. */
  get all(): readonly Expr[] {
    return [...this.#table.values()];
  }

  /** The sum of the operations' code sizes. */
  get work(): number {
    return this.#work;
  }

  /** Whether any expression reads a run-time scalar. */
  get usesScalars(): boolean {
    return this.some((expr) => expr.kind === 'scalar');
  }

  /** Whether the test holds for any expression. */
  some(test: (expr: Expr) => boolean): boolean {
    for (const expr of this.#table.values()) if (test(expr)) return true;
    return false;
  }

  indexId(index: IndexExpr): number {
    const known = this.#indexIds.get(index);
    if (known !== undefined) return known;
    this.#indexIds.set(index, this.#indexIds.size);
    return this.#indexIds.size - 1;
  }

  make(expr: Bare): Expr {
    const key = this.#key(expr);
    const known = this.#table.get(key);
    if (known !== undefined) return known;
    const made = { ...expr, id: this.#count } as Expr;
    this.#count += 1;
    this.#work +=
      expr.kind === 'op'
        ? codeSize(expr.op, expr.dtype)
        : expr.kind === 'random'
          ? codeSize('randomBits', 'u32')
          : expr.kind === 'decode'
            ? codeSize('dequantize', 'f32')
            : 1;
    this.#table.set(key, made);
    return made;
  }

  op(op: ElementwiseOp, args: readonly Expr[], dtype: DType): Expr {
    return this.make({ kind: 'op', op, args, dtype });
  }

  constant(value: number | bigint, dtype: DType): Expr {
    return this.make({ kind: 'constant', value, dtype });
  }

  /** Every expression, in the order in which they were made. */
  [Symbol.iterator](): Iterator<Expr> {
    return this.#table.values();
  }

  #key(expr: Bare): string {
    switch (expr.kind) {
      case 'op':
        return `${expr.op}:${expr.dtype}:${ids(expr.args)}`;
      case 'read':
        return `read:${expr.node.id}:${this.indexId(expr.index)}`;
      case 'select': {
        const guard = expr.guard
          .map((range) => `${this.indexId(range.expr)}/${range.lo}/${range.hi}`)
          .join('&');
        return `select:${guard}:${expr.yes.id}:${expr.no.id}`;
      }
      case 'index':
        return `index:${expr.dtype}:${this.indexId(expr.index)}`;
      case 'result':
        return `result:${expr.node.id}`;
      case 'scalar':
        return `scalar:${expr.slot}`;
      case 'constant':
        return `constant:${expr.dtype}:${Object.is(expr.value, -0) ? '-0' : String(expr.value)}`;
      case 'decode':
        return `decode:${expr.format}:${ids(expr.args)}:${this.indexId(expr.index)}`;
      case 'random':
        return `random:${ids(expr.args)}:${this.indexId(expr.index)}`;
      default:
        return expr satisfies never;
    }
  }
}

function ids(list: readonly Expr[]): string {
  return list.map((item) => item.id).join(',');
}

/** Direct arguments of an expression. */
export function argsOf(expr: Expr): readonly Expr[] {
  switch (expr.kind) {
    case 'op':
    case 'decode':
    case 'random':
      return expr.args;
    case 'select':
      return [expr.yes, expr.no];
    case 'read':
    case 'index':
    case 'result':
    case 'scalar':
    case 'constant':
      return [];
    default:
      return expr satisfies never;
  }
}

/**
 * The indices that an expression itself has: the index of a read, an index as a value, and guards.
 */
export function indicesOf(expr: Expr): readonly IndexExpr[] {
  switch (expr.kind) {
    case 'read':
    case 'index':
    case 'decode':
    case 'random':
      return [expr.index];
    case 'select':
      return expr.guard.map((range) => range.expr);
    case 'op':
    case 'result':
    case 'scalar':
    case 'constant':
      return [];
    default:
      return expr satisfies never;
  }
}

/** One-line form for reports and tests, e.g. `mul(x[i], 2)`. */
export function printExpr(expr: Expr, nameOf: (node: Node) => string): string {
  const list = (args: readonly Expr[]): string => args.map((arg) => printExpr(arg, nameOf)).join(', ');
  switch (expr.kind) {
    case 'op':
      return `${expr.op}(${list(expr.args)})`;
    case 'read':
      return `${nameOf(expr.node)}[${printIndex(expr.index)}]`;
    case 'select':
      return `select(${printGuard(expr.guard)}, ${printExpr(expr.yes, nameOf)}, ${printExpr(expr.no, nameOf)})`;
    case 'index':
      return printIndex(expr.index);
    case 'result':
      return `result(${nameOf(expr.node)})`;
    case 'scalar':
      return `scalar${expr.slot}`;
    case 'constant':
      return String(expr.value);
    case 'decode':
      return `decode ${expr.format}(${list(expr.args)}, ${printIndex(expr.index)})`;
    case 'random':
      return `random(${list(expr.args)}, ${printIndex(expr.index)})`;
    default:
      return expr satisfies never;
  }
}
