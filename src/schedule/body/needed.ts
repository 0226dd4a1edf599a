// Finds the points of a kernel that are needed: if readers need everything that it writes only below some
// number, along an axis of its indices. Templates skip what lies wholly beyond.

import { dims, type Need, type Node } from '../../ir/graph.ts';
import { isOfScalars } from './bound.ts';
import type { Evaluator } from '../expression/evaluate.ts';
import type { Expr } from '../expression/expr.ts';
import type { Body, Needed } from '../kernel.ts';
import type { KernelPlan } from './plan.ts';

/** The body with what of its points is needed. */
export function withNeeds(
  body: Body,
  plan: KernelPlan,
  evaluator: Evaluator,
  demand: ReadonlyMap<Node, readonly Need[]>,
): Body {
  if (
    body.kind !== 'map' &&
    body.kind !== 'row-reduction' &&
    body.kind !== 'contract' &&
    body.kind !== 'attention'
  )
    return body;
  const needed = plan.pieces.length > 0 ? [] : neededOf(plan, evaluator, demand);
  return needed.length === 0 ? body : { ...body, needed };
}

function neededOf(
  plan: KernelPlan,
  evaluator: Evaluator,
  demand: ReadonlyMap<Node, readonly Need[]>,
): readonly Needed[] {
  const { pool } = evaluator;
  const number = (value: number): Expr => pool.constant(value, 'i32');
  const op = (name: 'min' | 'max' | 'add', a: Expr, b: Expr): Expr => pool.op(name, [a, b], 'i32');
  /** n + more within [0, size], of which nothing on the way wraps around. */
  const endOf = ({ ends }: Need, size: number): Expr | undefined => {
    const each = ends.map(({ n, more }) => {
      const value = evaluator.value(n, []);
      if (!isOfScalars(value)) return undefined;
      const within = op('min', op('max', value, number(0 - more)), number(size - more));
      return more === 0 ? within : op('add', within, number(more));
    });
    return each.reduce((a, b) => a && b && op('max', a, b));
  };
  const perNode = Array.from(plan.writes, ([node, at]) =>
    (demand.get(node) ?? []).flatMap((need): Needed[] => {
      // A permutation writes at other places along its axis than those it reads.
      if (node.op === 'permuteScatter' && node.attrs.axis === need.axis) return [];
      const end = endOf(need, dims(node)[need.axis]!);
      return end === undefined || at[need.axis]!.kind === 'const' ? [] : [{ at: at[need.axis]!, end }];
    }),
  );
  return perNode.reduce((some, others) =>
    some.flatMap(({ at, end }) => {
      const other = others.find((need) => need.at === at);
      return other === undefined ? [] : [{ at, end: other.end === end ? end : op('max', end, other.end) }];
    }),
  );
}
