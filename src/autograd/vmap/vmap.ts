// Batching as a graph transform: from nodes that compute one example, nodes that compute all of
// them. One walk up the ids, one rule per node; what does not depend on a mapped value stays as it
// is, and is computed once. The result is ordinary IR: it is fused and differentiated like any.

import { CompilerBug } from '../../errors.ts';
import { topological, type GraphBuilder, type Node, type NodeOf } from '../../ir/graph.ts';
import { showType } from '../../ir/infer.ts';
import { onBehalf } from '../../ir/origin/origin.ts';
import type { Attrs, Op } from '../../ir/ops.ts';
import { sameShape } from '../../ir/shape.ts';
import { customOnBatch } from './custom.ts';
import { loopOnBatch } from './loop.ts';
import {
  lead,
  type Batch,
  type BatchRule,
  type BatchedOperand,
  type Batching,
  type Together,
  type VmapRow,
} from './rule.ts';
import { onLines } from './rules-index.ts';
import { batchRules } from './rules.ts';

/**
 * For each of `nodes` what it is for all `size` examples, the batch as its leading axis; undefined
 * where it is the same for all of them. `tracers` says of the nodes that stand for one example
 * what they stand for; `special` may give some nodes another value, before their inputs are asked. `together` says what
 * examples do together, in the bodies of loops and in rules too.
 */
export function batched(
  b: GraphBuilder,
  nodes: readonly Node[],
  tracers: ReadonlyMap<Node, Node>,
  size: number,
  special: (node: Node) => Node | undefined = () => undefined,
  together?: Together,
): (Node | undefined)[] {
  const batch: Batch = { b, size, together };
  const found = new Map<Node, Node>(tracers);
  // Ids grow from inputs to users: nothing older than the oldest tracer can depend on one. What examples do together may
  // differ between them without one.
  let oldest = together === undefined ? Infinity : 0;
  for (const node of tracers.keys()) oldest = Math.min(oldest, node.id);
  for (const node of topological(nodes, ({ id }) => id < oldest)) {
    if (node.id < oldest || found.has(node)) continue;
    const given = special(node);
    if (given !== undefined) found.set(node, given);
    else if (together !== undefined || node.inputs.some((input) => found.has(input))) {
      const operands = node.inputs.map((input): BatchedOperand => {
        const whole = found.get(input);
        return { node: whole ?? input, isMapped: whole !== undefined };
      });
      const whole = onBehalf('rewrite', node, () => onBatch(batch, node, operands));
      if (whole !== undefined) found.set(node, whole);
    }
  }
  return nodes.map((node) => found.get(node));
}

function onBatch(batch: Batch, node: Node, operands: readonly BatchedOperand[]): Node | undefined {
  const result = batch.together?.onAll(batch, node, operands) ?? byRule(batch, node, operands);
  if (result === undefined) return undefined;
  if (result.dtype === node.dtype && sameShape(result.shape, [batch.size, ...node.shape])) return result;
  const problem = `${node.op} of ${batch.size} examples, ${showType(node)} each, became ${showType(result)}`;
  throw new CompilerBug('vmap', problem);
}

/** By the row of its op; undefined where all examples have the same. */
function byRule(batch: Batch, node: Node, operands: readonly BatchedOperand[]): Node | undefined {
  // Inside of loops and rules examples may do something together.
  const isOpen = batch.together !== undefined && (node.op === 'iterate' || node.op === 'customVjp');
  return isOpen || operands.some(({ isMapped }) => isMapped) ? apply(batch, node, operands) : undefined;
}

function apply(batch: Batch, node: Node, operands: readonly BatchedOperand[]): Node {
  const { b } = batch;
  const row = batchRules[node.op] as VmapRow;
  const inner: Batching = (of, nodes, tracers, size) =>
    batched(of, nodes, tracers, size, undefined, batch.together);
  const add = (nodes: readonly Node[], attrs: Attrs): Node => b.add(node.op as Op, nodes, attrs) as Node;
  switch (row) {
    case 'custom':
      return customOnBatch(batch, node as NodeOf<'customVjp'>, operands, inner);
    case 'loop':
      return loopOnBatch(batch, node as NodeOf<'iterate'>, operands, inner);
    case 'source':
      throw new CompilerBug('vmap', `${node.op} has inputs`);
    case 'elementwise':
      return b.copy(
        node,
        operands.map((operand) => lead(batch, operand)),
      );
    case 'axis': {
      const { axis } = node.attrs as { readonly axis: number };
      return add(
        operands.map((operand) => lead(batch, operand)),
        { ...node.attrs, axis: axis + 1 } as Attrs,
      );
    }
    case 'lines':
      return onLines(batch, operands, (nodes) => add(nodes, node.attrs));
    default:
      return (row satisfies BatchRule)(batch, node as never, operands);
  }
}
