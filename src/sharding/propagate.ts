// Which layouts the values of a graph would have, from those that are known: a known split goes from operands to results and
// back along the factors of the rules, until nothing more follows. Nothing is decided here: partition.ts weighs
// what follows from this against the bytes that it costs. This is how GSPMD (Xu et al., 2021) completes shardings, without its
// priorities by hand: cheap ops pass splits on first.

import { dims, type Graph, type Node } from '../ir/graph.ts';
import { topological } from '../ir/graph.ts';
import type { Mesh } from '../ir/mesh/mesh.ts';
import { facts } from '../ir/ops.ts';
import { extended, splitBy, unassigned } from './assign.ts';
import { isWhole, whole, type Split } from '../ir/mesh/split.ts';
import type { ShardingRule } from './rule.ts';

/** The split that each node would have; nodes of which nothing is known are left out. */
export function expectedSplits(
  mesh: Mesh,
  graph: Graph,
  known: ReadonlyMap<Node, Split>,
  ruleOf: (node: Node) => ShardingRule | undefined,
): ReadonlyMap<Node, Split> {
  const found = new Map<Node, Split>([...known].filter(([, split]) => !isWhole(split)));
  if (found.size === 0) return found;
  const order = topological(graph.outputs);
  // Ops that do no sums pass splits on as they are: they go first, so that a product takes what both its neighbours have.
  const cheap = order.filter(({ op }) => facts(op).class !== 'fusionRoot');
  const passes = [cheap, cheap.toReversed(), order, order.toReversed()];
  for (let isChanged = true; isChanged; ) {
    isChanged = false;
    for (const nodes of passes) {
      for (const node of nodes) {
        const rule = ruleOf(node);
        if (rule !== undefined && pass(mesh, node, rule, found, known)) isChanged = true;
      }
    }
  }
  return found;
}

/** What follows at one node; whether anything does. */
function pass(
  mesh: Mesh,
  node: Node,
  rule: ShardingRule,
  found: Map<Node, Split>,
  known: ReadonlyMap<Node, Split>,
): boolean {
  const values = [node, ...node.inputs];
  const axes = [rule.result, ...rule.operands];
  const wishes = values.flatMap((value, i) => {
    const split = found.get(value);
    return split === undefined ? [] : [[axes[i]!, split] as const];
  });
  if (wishes.length === 0) return false;
  const assignment = extended(mesh, rule, unassigned(rule), wishes);
  let isChanged = false;
  for (const [i, value] of values.entries()) {
    // What is given stays, and whole values stay whole where somebody holds them so.
    if (known.has(value) || dims(value).length === 0) continue;
    const before = found.get(value) ?? whole(value.shape.length);
    const after = merged(before, splitBy(assignment, axes[i]!));
    if (after === undefined) continue;
    found.set(value, after);
    isChanged = true;
  }
  return isChanged;
}

/** A split with what another adds to axes that are whole; undefined where it adds nothing. */
function merged(before: Split, more: Split): Split | undefined {
  const used = new Set(before.flat());
  let isMore = false;
  const after = before.map((names, axis) => {
    const wish = more[axis]!;
    if (names.length > 0 || wish.length === 0 || wish.some((name) => used.has(name))) return names;
    wish.forEach((name) => used.add(name));
    isMore = true;
    return wish;
  });
  return isMore ? after : undefined;
}
