// The form in which graphs are spelled and patterns are looked for: what the compiler's own first
// passes make of a graph.

import { graphOf } from '../../ir/text/region.ts';
import { topological, type Graph, type NodeOf } from '../../ir/graph.ts';
import { canonicalise } from '../../ir/passes/canonicalise.ts';
import { shareSubexpressions } from '../../ir/passes/cse.ts';
import { dropBarriers, dropMarkers } from '../../ir/passes/drop-markers.ts';
import { foldConstants } from '../../ir/passes/fold.ts';
import { lowerComplex } from '../../ir/passes/lower-complex.ts';
import { simplify } from '../../ir/passes/simplify.ts';
import { writeOutLoops } from '../../ir/passes/write-out-loops.ts';

/** Nodes that the turns of one loop may become; longer ones are loops of the file (control/loop.ts). */
const mostNodes = 64;

function isShort({ attrs }: NodeOf<'iterate'>): boolean {
  if (attrs.guard >= 0) return false;
  return attrs.trips * topological(graphOf(attrs.body).outputs).length <= mostNodes;
}

/** The turns of short loops follow each other. */
function withoutLoops(graph: Graph): Graph {
  return writeOutLoops(graph, isShort);
}

const passes = [
  withoutLoops,
  lowerComplex,
  dropMarkers,
  dropBarriers,
  canonicalise,
  foldConstants,
  simplify,
  shareSubexpressions,
];

/** The graph in canonical form; its meaning is the same to the bit. */
export function canonical(graph: Graph): Graph {
  return passes.reduce<Graph>((before, pass) => pass(before), graph);
}
