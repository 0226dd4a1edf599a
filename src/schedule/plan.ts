// A plan says which nodes one kernel computes and writes; its evaluator gives every node its meaning inside that kernel.

import type { Node } from '../ir/graph.ts';
import { dims } from '../ir/graph.ts';
import { linearize } from '../ir/index-expr.ts';
import { facts } from '../ir/ops.ts';
import type { Cluster } from './cluster.ts';
import { Evaluator, type Indices } from './evaluate.ts';
import { ExprPool, type Expr } from './expr.ts';
import type { Axis } from './kernel.ts';

/** What one kernel computes, before its expressions exist. */
export interface Plan {
  readonly cluster: Cluster | undefined;
  /** Nodes written, with their indices at the kernel's point. */
  readonly writes: ReadonlyMap<Node, Indices>;
  /** Map plans: the flat axis. */
  readonly axis: Axis | undefined;
}

export function sameIndices(a: Indices, b: Indices): boolean {
  return a.length === b.length && a.every((index, axis) => index === b[axis]);
}

/** Gives every node its meaning inside one kernel: own members inline, body results, run-time scalars, memory reads. */
export function kernelEvaluator(
  plan: Plan,
  inMemory: (node: Node) => boolean,
  scalars: ReadonlyMap<Node, number>,
  onRead: (node: Node) => void,
): Evaluator {
  const pool = new ExprPool();
  const anchors = new Set<Node>(plan.cluster?.anchors);
  const members: ReadonlyMap<Node, Indices> = plan.cluster?.members ?? plan.writes;
  const read = (node: Node, at: Indices): Expr => {
    onRead(node);
    return pool.make({ kind: 'read', node, index: linearize(at, dims(node)), dtype: node.dtype });
  };
  const evaluator: Evaluator = new Evaluator(pool, (node, at) => {
    const slot = scalars.get(node);
    if (slot !== undefined) return pool.make({ kind: 'scalar', slot, dtype: node.dtype });
    const own = members.get(node);
    if (own !== undefined && sameIndices(own, at)) {
      if (anchors.has(node)) return pool.make({ kind: 'result', node, dtype: node.dtype });
      return evaluateMember(node, own, members, evaluator);
    }
    return inMemory(node) ? read(node, at) : undefined;
  });
  return evaluator;
}

/** A member at its own indices: inputs that are members too are taken at theirs, so no index map has to be inverted. */
function evaluateMember(
  node: Node,
  at: Indices,
  members: ReadonlyMap<Node, Indices>,
  evaluator: Evaluator,
): Expr | undefined {
  const kind = facts(node.op).class;
  if (kind === 'view' && node.inputs.length === 1) {
    const inner = members.get(node.inputs[0]!);
    const through = node.op === 'reshape' || node.op === 'permute' || node.op === 'broadcast';
    return inner !== undefined && through ? evaluator.value(node.inputs[0]!, inner) : undefined;
  }
  if (kind !== 'unary' && kind !== 'binary' && kind !== 'ternary') return undefined;
  const args = node.inputs.map((input) => evaluator.value(input, members.get(input) ?? at));
  return evaluator.pool.make({ kind: 'op', op: node.op as never, args, dtype: node.dtype });
}
