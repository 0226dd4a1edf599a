// What each expression of a row kernel depends on: the position in the row, results of reductions,
// or memory.

import type { Node } from '../../../ir/graph.ts';
import { atomsOf, type IndexExpr, type Leaf } from '../../../ir/index-algebra/expr.ts';
import { argsOf, indicesOf, type Expr, type ExprPool } from '../../../schedule/expression/expr.ts';

/** Answers about the expressions of one pool. */
export interface RowFacts {
  /** Whether the value differs along the row. */
  varies(expr: Expr): boolean;
  /** The reductions whose results the value depends on, also through gathered indices. */
  results(expr: Expr): ReadonlySet<Node>;
  /**
   * Reads at places along the row that every evaluation makes; those under a guard may lie outside
   * their tensor.
   */
  reads(expr: Expr): ReadonlySet<Expr>;
  /** Operations and reads to evaluate the expressions once. */
  work(exprs: readonly Expr[]): number;
}

export function rowFacts(pool: ExprPool, column: IndexExpr): RowFacts {
  const along = (index: IndexExpr): boolean =>
    atomsOf(index).some((atom) => atom === column || (pool.dynamics.has(atom) && varies(dynamic(atom))));
  const dynamic = (atom: Leaf): Expr => pool.dynamics.get(atom)!;
  /** Everything an expression is computed from, gathered indices included. */
  const parts = (expr: Expr): readonly Expr[] => [
    ...argsOf(expr),
    ...indicesOf(expr)
      .flatMap((index) => atomsOf(index))
      .filter((atom) => pool.dynamics.has(atom))
      .map(dynamic),
  ];
  const memoised = <T>(compute: (expr: Expr) => T): ((expr: Expr) => T) => {
    const memo = new Map<Expr, T>();
    return (expr) => {
      const known = memo.get(expr);
      if (known !== undefined) return known;
      const made = compute(expr);
      memo.set(expr, made);
      return made;
    };
  };
  const varies: (expr: Expr) => boolean = memoised(
    (expr) => indicesOf(expr).some(along) || argsOf(expr).some(varies),
  );
  const results: (expr: Expr) => ReadonlySet<Node> = memoised((expr) => {
    const found = new Set<Node>(expr.kind === 'result' ? [expr.node] : []);
    for (const part of parts(expr)) for (const node of results(part)) found.add(node);
    return found;
  });
  const reads: (expr: Expr) => ReadonlySet<Expr> = memoised((expr) => {
    if (expr.kind === 'read') return new Set(along(expr.index) ? [expr] : []);
    const always = expr.kind === 'select' ? [expr.no] : argsOf(expr);
    return new Set(always.flatMap((arg) => [...reads(arg)]));
  });
  const work = (exprs: readonly Expr[]): number => {
    const seen = new Set<Expr>();
    const visit = (expr: Expr): void => {
      if (seen.has(expr)) return;
      seen.add(expr);
      parts(expr).forEach(visit);
    };
    exprs.forEach(visit);
    return [...seen].filter(({ kind }) => kind !== 'constant' && kind !== 'scalar' && kind !== 'result')
      .length;
  };
  return { varies, results, reads, work };
}
