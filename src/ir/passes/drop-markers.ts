// Takes out the ops that only autograd looks at: once gradients are derived, `stopGradient` and
// `customVjp` are the identity on their first input, and what only a custom rule wanted is no
// longer needed.

import { rewrite, type Graph } from '../graph.ts';
import { facts } from '../ops.ts';

/** Replaces markers by the values they mark. */
export function dropMarkers(graph: Graph): Graph {
  return rewrite(graph, (node, inputs) => (facts(node.op).class === 'marker' ? inputs[0] : undefined));
}
