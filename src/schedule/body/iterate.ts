// Loops among kernels: a loop reads and writes whole buffers, and what it does in between is a
// program of its own, made of the loop's region (codegen/lower/iteration.ts).

import type { Node, NodeOf } from '../../ir/graph.ts';
import { constantIndex } from '../../ir/index-algebra/expr.ts';
import { nodeBytes, nodeFlops } from '../cost.ts';
import type { Kernel } from '../kernel.ts';
import { readsOfLoop } from '../fusion/boundary.ts';
import { ExprPool } from '../expression/expr.ts';

/** The kernel that stands for a loop, of which `results` are wanted. */
export function loopKernel(node: NodeOf<'iterate'>, results: readonly Node[]): Kernel {
  const reads = [...readsOfLoop(node)];
  const pool = new ExprPool();
  // What a loop stores is its own: the expression stands for it.
  const value = pool.make({ kind: 'constant', value: 0, dtype: 'i32' });
  return {
    name: '',
    kind: 'iterate',
    body: { kind: 'iterate', node, results },
    reads,
    writes: results.map((result) => ({ node: result, index: constantIndex(0), value })),
    pool,
    nodes: results,
    flops: nodeFlops(node as Node),
    bytes: [...reads, ...results].reduce((sum, held) => sum + nodeBytes(held), 0),
  };
}
