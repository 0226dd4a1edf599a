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
import { lead, type Batch, type BatchRule, type BatchedOperand, type VmapRow } from './rule.ts';
import { onLines } from './rules-index.ts';
import { batchRules } from './rules.ts';

/**
 * For each of `nodes` what it is for all `size` examples, the batch as its leading axis; undefined
 * where it is the same for all of them. `tracers` says of the nodes that stand for one example
 * what they stand for; `special` may give some nodes another value, before their inputs are asked.
 */
export function batched(
  b: GraphBuilder,
  nodes: readonly Node[],
  tracers: ReadonlyMap<Node, Node>,
  size: number,
  special: (node: Node) => Node | undefined = () => undefined,
): (Node | undefined)[] {
  const batch: Batch = { b, size };
  const found = new Map<Node, Node>(tracers);
  // Ids grow from inputs to users: nothing older than the oldest tracer can depend on one.
  let oldest = Infinity;
  for (const node of tracers.keys()) oldest = Math.min(oldest, node.id);
  for (const node of topological(nodes, ({ id }) => id < oldest)) {
    if (node.id < oldest || found.has(node)) continue;
    const given = special(node);
    if (given !== undefined) found.set(node, given);
    else if (node.inputs.some((input) => found.has(input))) {
      const operands = node.inputs.map((input): BatchedOperand => {
        const whole = found.get(input);
        return { node: whole ?? input, isMapped: whole !== undefined };
      });
      found.set(
        node,
        onBehalf('rewrite', node, () => onBatch(batch, node, operands)),
      );
    }
  }
  return nodes.map((node) => found.get(node));
}

function onBatch(batch: Batch, node: Node, operands: readonly BatchedOperand[]): Node {
  const result = apply(batch, node, operands);
  if (result.dtype === node.dtype && sameShape(result.shape, [batch.size, ...node.shape])) return result;
  const problem = `${node.op} of ${batch.size} examples, ${showType(node)} each, became ${showType(result)}`;
  throw new CompilerBug('vmap', problem);
}

function apply(batch: Batch, node: Node, operands: readonly BatchedOperand[]): Node {
  const { b } = batch;
  const row = batchRules[node.op] as VmapRow;
  const add = (nodes: readonly Node[], attrs: Attrs): Node => b.add(node.op as Op, nodes, attrs) as Node;
  switch (row) {
    case 'custom':
      return customOnBatch(batch, node as NodeOf<'customVjp'>, operands, batched);
    case 'loop':
      return loopOnBatch(batch, node as NodeOf<'iterate'>, operands, batched);
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
