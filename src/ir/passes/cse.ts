// Common subexpressions: rebuilding a graph with one builder interns every node, so that equal
// expressions, wherever they were recorded, become one (hash-consing). Run after `canonicalise`,
// which gives equal things equal spellings.

import { rewrite, type Graph } from '../graph.ts';

/** Makes equal nodes one node. */
export function shareSubexpressions(graph: Graph): Graph {
  return rewrite(graph, () => undefined);
}
