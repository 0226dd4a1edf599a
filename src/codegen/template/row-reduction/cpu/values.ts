// Values along a row that one sweep stores for later sweeps, where one thread computes a row alone:
// those that cost more to compute again than to store and load. Values that are only loads are
// loaded again.

import { dtypeBytes } from '../../../../ir/dtype.ts';
import {
  coefficientOf,
  constantIndex,
  substitute,
  type IndexExpr,
} from '../../../../ir/index-algebra/expr.ts';
import type { ElementwiseOp } from '../../../../ir/ops.ts';
import { argsOf, type Expr } from '../../../../schedule/expression/expr.ts';
import type { Axis, Write } from '../../../../schedule/kernel.ts';
import { splat, type LoopBuilder } from '../../../loop/builder.ts';
import { laneAtom, registerOf, type Lowering } from '../../../expression/lowering.ts';
import type { LoopBuffer, Value, Width } from '../../../loop/loop.ts';
import { bufferName, type Frame } from '../../shared/frame.ts';
import type { RowFacts } from '../facts.ts';

/** Operations that are one instruction, or few. */
const light: ReadonlySet<ElementwiseOp> = new Set([
  'add',
  'sub',
  'mul',
  'neg',
  'abs',
  'min',
  'max',
  'and',
  'or',
  'xor',
  'not',
  'lt',
  'le',
  'eq',
  'ne',
  'where',
  'cast',
  'bitcast',
]);

/** Instructions that evaluating an expression takes, about. */
export function effortOf(exprs: readonly Expr[]): number {
  const seen = new Set<Expr>();
  const visit = (expr: Expr): number => {
    if (seen.has(expr)) return 0;
    seen.add(expr);
    const own = expr.kind === 'op' && !light.has(expr.op) ? 16 : expr.kind === 'constant' ? 0 : 1;
    return argsOf(expr).reduce((sum, arg) => sum + visit(arg), own);
  };
  return exprs.reduce((sum, expr) => sum + visit(expr), 0);
}

/** Effort from which on a value is left for later sweeps. */
export const worthKeeping = 8;

/** What is always evaluated where an expression is. */
const alwaysOf = (expr: Expr): readonly Expr[] => (expr.kind === 'select' ? [expr.no] : argsOf(expr));

/** The values that later sweeps take from earlier ones. */
export function valuesToKeep(sweeps: readonly (readonly Expr[])[], facts: RowFacts): readonly Expr[] {
  const known = new Set<Expr>();
  const kept = new Set<Expr>();
  const fits = (expr: Expr): boolean =>
    (expr.kind === 'op' || expr.kind === 'random') &&
    ['f32', 'i32', 'u32'].includes(registerOf(expr.dtype)) &&
    facts.varies(expr) &&
    effortOf([expr]) >= worthKeeping;
  for (const exprs of sweeps) {
    const seen = new Set<Expr>();
    const visit = (expr: Expr): void => {
      if (seen.has(expr)) return;
      seen.add(expr);
      if (known.has(expr) && fits(expr)) {
        kept.add(expr);
        return;
      }
      alwaysOf(expr).forEach(visit);
    };
    exprs.forEach(visit);
    const learn = (expr: Expr): void => {
      if (known.has(expr)) return;
      known.add(expr);
      alwaysOf(expr).forEach(learn);
    };
    exprs.forEach(learn);
  }
  // What an expression is made of comes first.
  return [...kept].sort((a, b) => a.id - b.id);
}

/**
 * Where a value waits: in an array of the workgroup, or in the place of a result that is not read
 * before it is written.
 */
export type Home = { readonly array: string } | { readonly result: Write; readonly buffer: string };

/**
 * Homes for values. The place of a result is best: it is loaded into the cache while there is still
 * much to compute.
 */
export function homesOf(
  kept: readonly Expr[],
  frame: Frame,
  column: Axis,
  writes: readonly Write[],
): readonly Home[] {
  const free = writes.filter(({ node, index }) => {
    const bound = frame.bound.find(({ nodes }) => nodes.includes(node));
    return (
      bound?.nodes.length === 1 && dtypeBytes(node.dtype) === 4 && coefficientOf(index, column.atom) === 1
    );
  });
  const name = bufferName(frame);
  return kept.map((expr, i): Home => {
    const at = free.findIndex(({ node }) => node.dtype === expr.dtype);
    if (at < 0) return { array: `kept_${i}` };
    const [result] = free.splice(at, 1);
    return { result: result!, buffer: name(result!.node) };
  });
}

/** The arrays of those that have one, of so many elements. */
export function homeArrays(
  kept: readonly Expr[],
  homes: readonly Home[],
  size: number,
): readonly LoopBuffer[] {
  return homes.flatMap((home, i): LoopBuffer[] =>
    'array' in home
      ? [
          {
            name: home.array,
            space: 'workgroup',
            dtype: registerOf(kept[i]!.dtype),
            size,
            access: 'read_write',
          },
        ]
      : [],
  );
}

export class RowValues {
  readonly #b: LoopBuilder;
  readonly #kept: readonly Expr[];
  readonly #homes: readonly Home[];
  /** What finished sweeps have left. */
  readonly #left = new Set<Expr>();

  constructor(b: LoopBuilder, kept: readonly Expr[], homes: readonly Home[]) {
    this.#b = b;
    this.#kept = kept;
    this.#homes = homes;
  }

  /**
   * Before a sweep's expressions are lowered at some place, `slot` of an array: takes what is
   * there, and leaves what is not.
   */
  exchange(lowering: Lowering, slot: IndexExpr, width: Width, exprs: readonly Expr[]): void {
    const b = this.#b;
    const wanted = new Set<Expr>();
    const visit = (expr: Expr): void => {
      if (wanted.has(expr)) return;
      wanted.add(expr);
      if (!this.#left.has(expr)) alwaysOf(expr).forEach(visit);
    };
    exprs.forEach(visit);
    const firstOf = (index: IndexExpr): IndexExpr =>
      substitute(index, new Map([[laneAtom, constantIndex(0)]]));
    for (const [i, expr] of this.#kept.entries()) {
      if (!wanted.has(expr)) continue;
      const home = this.#homes[i]!;
      const inArray = 'array' in home;
      const buffer = inArray ? home.array : home.buffer;
      const first = firstOf(inArray ? slot : lowering.place(home.result.index));
      const index = inArray && width === 4 ? lowering.quad(first) : lowering.index(first);
      if (this.#left.has(expr)) {
        const type = registerOf(expr.dtype);
        const value: Value = { kind: 'load', buffer, index, aligned: inArray && width === 4, type, width };
        lowering.held.set(expr, b.let(value, 'kept'));
      } else b.store(buffer, index, splat(lowering.value(expr), width), true);
    }
  }

  /** After a sweep that evaluated `exprs`. */
  swept(exprs: readonly Expr[]): void {
    const visit = (expr: Expr): void => {
      if (this.#left.has(expr)) return;
      if (this.#kept.includes(expr)) this.#left.add(expr);
      alwaysOf(expr).forEach(visit);
    };
    exprs.forEach(visit);
  }
}
