// Large matrix algorithms as panels and products (ir/passes/blocks.ts), of the sizes that fit a
// kernel of the target.

import { dims, rewrite, type Graph, type Node } from '../../ir/graph.ts';
import { inBlocks, type Panels } from '../../ir/passes/blocks.ts';
import { sizeOf } from '../../ir/shape.ts';
import { packsOperands } from '../machine.ts';
import type { Target } from '../target.ts';

function panelsOf(target: Target): Panels {
  return packsOperands(target)
    ? { cholesky: 256, triangle: 64, columns: 16 }
    : { cholesky: 64, triangle: 64, columns: 32 };
}

/** Rewrites large matrix algorithms to small ones and products. */
export function splitFactors(graph: Graph, target: Target): Graph {
  const panels = panelsOf(target);
  return rewrite(graph, (node, inputs, b) => {
    if (node.op !== 'factor' || sizeOf(dims(node as Node)) === 0) return undefined;
    return inBlocks(b, node.attrs.kind, inputs, panels);
  });
}
