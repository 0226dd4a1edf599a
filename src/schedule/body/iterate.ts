// Kernels without loops of their own: collectives, which a device does itself, and loops of kernels. A loop reads and writes whole buffers, and what it does in between is a
// program of its own, made of the loop's region (codegen/lower/iteration.ts).

import { nodeBytes, type CollectiveNode, type Node, type NodeOf } from '../../ir/graph.ts';
import { constantIndex } from '../../ir/index-algebra/expr.ts';
import { nodeFlops } from '../cost.ts';
import type { Body, Kernel } from '../kernel.ts';
import { operandOf, readsOfCollective, readsOfLoop } from '../fusion/boundary.ts';
import { ExprPool } from '../expression/expr.ts';

/** The kernel that stands for a loop, of which `results` are wanted. */
export function loopKernel(node: NodeOf<'iterate'>, results: readonly Node[]): Kernel {
  return wholeKernel({ kind: 'iterate', node, results }, [...readsOfLoop(node)], results);
}

/** The kernel that stands for a collective. */
export function collectiveKernel(node: CollectiveNode): Kernel {
  const body = { kind: 'collective', node, operand: operandOf(node) } as const;
  return wholeKernel(body, readsOfCollective(node), [node as Node]);
}

function wholeKernel(
  body: Extract<Body, { readonly kind: 'iterate' | 'collective' }>,
  reads: readonly Node[],
  results: readonly Node[],
): Kernel {
  const pool = new ExprPool();
  // What is stored is the body's own: the expression stands for it.
  const value = pool.make({ kind: 'constant', value: 0, dtype: 'i32' });
  return {
    name: '',
    kind: body.kind,
    body,
    reads,
    writes: results.map((result) => ({ node: result, index: constantIndex(0), value })),
    pool,
    nodes: results,
    flops: nodeFlops(body.node as Node),
    bytes: [...reads, ...results].reduce((sum, held) => sum + nodeBytes(held), 0),
  };
}
