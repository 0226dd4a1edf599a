// Work whose result nothing reads. A graph holds only what its outputs reach, so every pass drops
// dead nodes; unused parameters stay, because callers count on their positions. This pass drops
// parts that are dead, by the rules of selections.ts: a slice that reads only some pieces of a concatenation,
// or only one side of a padding's edge. What only a barrier waits for is dead as well: the barrier then waits for the
// latest of what that is computed from and something else reads.

import { GraphBuilder, readInputs, topological, type Graph, type Node, type NodeOf } from '../graph.ts';
import { onBehalf } from '../origin/origin.ts';
import { rulePass, selectionRules } from './rules.ts';

const dropDeadParts: (graph: Graph) => Graph = rulePass('removeDeadCode', [], selectionRules.removeDeadCode);

/** Drops what no output reads. */
export function removeDeadCode(graph: Graph): Graph {
  return awaitLive(dropDeadParts(graph));
}

/** Barriers that wait for nothing but what outputs read. */
function awaitLive(graph: Graph): Graph {
  const order = topological(graph.outputs);
  if (!order.some(({ op }) => op === 'barrier')) return graph;
  const live = new Set<Node>(graph.outputs);
  for (const node of live) for (const input of readInputs(node)) live.add(input);
  if (live.size === order.length) return graph;
  /** Of each node the latest live one among itself and what it is computed from. */
  const latest = new Map<Node, Node>();
  for (const node of order) {
    const before = node.inputs.map((input) => latest.get(input)).filter((input) => input !== undefined);
    const last = live.has(node) ? node : before.sort((x, y) => y.id - x.id)[0];
    if (last !== undefined) latest.set(node, last);
  }
  const b = new GraphBuilder();
  const made = new Map<Node, Node>(graph.parameters.map((node) => [node as Node, b.copy(node as Node, [])]));
  for (const node of order) {
    if (!live.has(node) || made.has(node)) continue;
    const [value, event] = node.inputs as readonly [Node, Node];
    const inputs = node.op === 'barrier' ? [value, latest.get(event) ?? value] : node.inputs;
    made.set(
      node,
      onBehalf('rewrite', node, () =>
        b.copy(
          node,
          inputs.map((input) => made.get(input)!),
        ),
      ),
    );
  }
  return {
    parameters: graph.parameters.map((node) => made.get(node as Node) as NodeOf<'parameter'>),
    outputs: graph.outputs.map((node) => made.get(node)!),
  };
}
