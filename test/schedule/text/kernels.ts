// Kernels as plain values for tests: nodes by their names, indices by identity (equal ones are one
// object), expressions by their numbers, so that kernels of different pools can be compared.

import { optimise, lowerGraph } from '../../../src/compile.ts';
import type { Graph, Node } from '../../../src/ir/graph.ts';
import type { IndexExpr } from '../../../src/ir/index-algebra/expr.ts';
import { argsOf, ExprPool, type Expr } from '../../../src/schedule/expression/expr.ts';
import type { Kernel } from '../../../src/schedule/kernel.ts';
import { pairDonations } from '../../../src/schedule/memory/donate.ts';
import type { Packs } from '../../../src/schedule/memory/pack.ts';
import type { Target } from '../../../src/schedule/target.ts';
import { namesOf } from '../../../src/schedule/text/print.ts';

export interface Scheduled {
  readonly graph: Graph;
  readonly kernels: readonly Kernel[];
  readonly packs: Packs;
}

/** The kernels of a graph; rank-0 parameters become scalars where `scalars`. */
export function scheduled(recorded: Graph, target: Target, scalars = false): Scheduled {
  const graph = optimise(recorded, target);
  const single = graph.parameters.filter(({ shape, dtype }) => shape.length === 0 && dtype === 'f32');
  const slots = new Map<Node, number>(scalars ? single.map((node, i) => [node as Node, i]) : []);
  const { schedule } = lowerGraph(graph, target, slots, pairDonations(new Map()));
  return { graph, kernels: schedule.kernels, packs: schedule.packs };
}

/** All that kernels and packs say, comparable. */
export function plain({ graph, kernels, packs }: Scheduled): unknown {
  const name = namesOf(graph, packs);
  const value = (it: unknown): unknown => {
    if (it instanceof ExprPool)
      return {
        all: it.all.map(ofExpr),
        dynamics: Array.from(it.dynamics, ([atom, expr]) => [ofIndex(atom), expr.id]),
      };
    if (Array.isArray(it)) return it.map(value);
    if (typeof it !== 'object' || it === null) return it;
    if ('attrs' in it) return name(it as Node);
    if ('fits' in it) return ofIndex(it as IndexExpr);
    if ('id' in it) return `e${(it as Expr).id}`;
    return Object.fromEntries(Object.entries(it).map(([key, held]) => [key, value(held)]));
  };
  const ofIndex = (index: IndexExpr): string => `index ${index.id}`;
  const ofExpr = (expr: Expr): unknown => {
    const { id, ...rest } = expr;
    const args = argsOf(expr).map((arg) => arg.id);
    const bare = Object.entries(rest).filter(([key]) => key !== 'args' && key !== 'yes' && key !== 'no');
    return { number: id, args, ...Object.fromEntries(bare.map(([key, held]) => [key, value(held)])) };
  };
  const members = Array.from(packs.values(), (pack) => value(pack));
  return { kernels: kernels.map(value), members };
}
