// What a kernel reads of a stack of which data names one slice: an iteration of a loop reads its slice, not
// the whole.

import { dtypeBytes } from '../ir/dtype.ts';
import { nodeBytes, type Node } from '../ir/graph.ts';
import { atomsOf, type IndexExpr } from '../ir/index-algebra/expr.ts';
import { argsOf, indicesOf, type Expr, type ExprPool } from './expression/expr.ts';

/**
 * Bytes of the nodes that are read at a slice only, which the same data names at every point of the
 * kernel.
 */
export function sliceBytes(pool: ExprPool): Map<Node, number> {
  const { dynamics } = pool;
  const found = new Map<Node, number>();
  if (dynamics.size === 0) return found;
  const isFixed = (atom: IndexExpr): boolean => {
    const seen = new Set<Expr>([dynamics.get(atom)!]);
    for (const expr of seen) {
      if (indicesOf(expr).some((index) => atomsOf(index).length > 0)) return false;
      for (const arg of argsOf(expr)) seen.add(arg);
    }
    return true;
  };
  const whole = new Set<Node>();
  for (const expr of pool.all) {
    if (expr.kind !== 'read') continue;
    const atoms = atomsOf(expr.index);
    const named = atoms.filter((atom) => dynamics.has(atom));
    if (named.length === 0 || !named.every(isFixed)) whole.add(expr.node);
    const points = atoms
      .filter((atom) => !dynamics.has(atom))
      .reduce((product, { lo, hi }) => product * (hi - lo + 1), 1);
    const bytes = points * dtypeBytes(expr.node.dtype);
    found.set(expr.node, Math.min(nodeBytes(expr.node), (found.get(expr.node) ?? 0) + bytes));
  }
  for (const node of whole) found.delete(node);
  return found;
}
