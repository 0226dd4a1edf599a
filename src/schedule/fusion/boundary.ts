// The nodes that must be stored in memory, whichever nodes they share a kernel with.

import { isZero } from '../../ir/build.ts';
import { inputsOf } from '../../ir/control/iterate.ts';
import { topological, type Graph, type Node, type NodeOf } from '../../ir/graph.ts';

/** What a loop reads from memory: all of its inputs, but for carries that begin as zeros. */
export function readsOfLoop(node: NodeOf<'iterate'>): Set<Node> {
  const { carries, stacks, invariants } = inputsOf(node);
  return new Set([...carries.filter((carry) => !isZero(carry)), ...stacks, ...invariants]);
}

/** What must lie in memory whatever reads it: outputs, and what loops read. */
export function boundaryOf({ outputs }: Graph, order: readonly Node[] = topological(outputs)): Set<Node> {
  const loops = order.filter((node) => node.op === 'iterate');
  return new Set([...outputs, ...loops.flatMap((node) => [...readsOfLoop(node)])]);
}
