// A plan says which nodes one kernel computes and writes; its evaluator gives the expression of
// every node inside that kernel.

import type { Node } from '../../ir/graph.ts';
import { dims } from '../../ir/graph.ts';
import { linearize } from '../../ir/index-algebra/expr.ts';
import { facts, isElementwise } from '../../ir/ops.ts';
import { sameIndices } from '../fusion/align.ts';
import { Evaluator, type Indices } from '../expression/evaluate.ts';
import { ExprPool, type Expr } from '../expression/expr.ts';
import type { Axis } from '../kernel.ts';
import { isThroughView, type FusionGroup, type PartOfWhole } from '../fusion/place.ts';

/** A part of a concatenation, with its indices at the point of the kernel that writes it. */
export interface PlacedPart extends PartOfWhole {
  readonly at: Indices;
}

/** What one kernel computes, before its expressions exist. */
export interface KernelPlan {
  readonly fusionGroup: FusionGroup | undefined;
  /** Nodes written, with their indices at the kernel's point. */
  readonly writes: ReadonlyMap<Node, Indices>;
  /** Parts of concatenations, written into the buffer of the whole. */
  readonly pieces: readonly PlacedPart[];
  /** Map plans: the flat axis. */
  readonly axis: Axis | undefined;
}

/**
 * Gives the expression of every node inside one kernel: own members inline, body results, run-time
 * scalars, memory reads. `onRepeat` is called with nodes that the kernel writes and also needs at
 * another point; if it returns true, their inputs are not evaluated. Nodes for which `isElsewhere`
 * holds are computed elsewhere and are not expanded.
 */
export function kernelEvaluator(
  plan: KernelPlan,
  inMemory: (node: Node) => boolean,
  scalars: ReadonlyMap<Node, number>,
  onRead: (node: Node) => void,
  onRepeat: (node: Node) => boolean = () => false,
  isElsewhere: (node: Node, at: Indices) => boolean = () => false,
): Evaluator {
  const pool = new ExprPool();
  const fusionRoots = new Set<Node>(plan.fusionGroup?.fusionRoots);
  const members: ReadonlyMap<Node, Indices> = plan.fusionGroup?.members ?? plan.writes;
  const read = (node: Node, at: Indices): Expr => {
    onRead(node);
    return pool.make({ kind: 'read', node, index: linearize(at, dims(node)), dtype: node.dtype });
  };
  const evaluator: Evaluator = new Evaluator(pool, (node, at) => {
    const slot = scalars.get(node);
    if (slot !== undefined) return pool.make({ kind: 'scalar', slot, dtype: node.dtype });
    if (isElsewhere(node, at)) return pool.make({ kind: 'result', node, dtype: node.dtype });
    const own = members.get(node);
    if (own !== undefined && sameIndices(own, at)) {
      if (fusionRoots.has(node)) return pool.make({ kind: 'result', node, dtype: node.dtype });
      const aligned = plan.fusionGroup !== undefined && !plan.fusionGroup.hosted.has(node);
      return evaluateMember(node, own, members, aligned, evaluator);
    }
    // A result at another point than the kernel's is not in memory yet: nodes that storage added to
    // the kernel are computed again there.
    const isAdded =
      own !== undefined && (plan.fusionGroup === undefined || plan.fusionGroup.hosted.has(node));
    const leaves = isAdded && onRepeat(node);
    return leaves || (inMemory(node) && !isAdded) ? read(node, at) : undefined;
  });
  return evaluator;
}

/**
 * A node of this kernel at its own indices. Inputs of an aligned member that are members too are
 * taken at theirs, so no index map has to be inverted; a node that storage added to the kernel is
 * computed as if it were free.
 */
function evaluateMember(
  node: Node,
  at: Indices,
  members: ReadonlyMap<Node, Indices>,
  aligned: boolean,
  evaluator: Evaluator,
): Expr | undefined {
  if (!aligned) return undefined;
  const kind = facts(node.op).class;
  if (kind === 'view' && node.inputs.length === 1) {
    const inner = members.get(node.inputs[0]!);
    return inner !== undefined && isThroughView(node) ? evaluator.value(node.inputs[0]!, inner) : undefined;
  }
  if (!isElementwise(node.op)) return undefined;
  const args = node.inputs.map((input) => evaluator.value(input, members.get(input) ?? at));
  return evaluator.pool.op(node.op, args, node.dtype);
}
