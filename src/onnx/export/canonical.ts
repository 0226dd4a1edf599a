// The form in which graphs are spelled and patterns are looked for: what the compiler's own first
// passes make of a graph.

import type { Graph } from '../../ir/graph.ts';
import { canonicalise } from '../../ir/passes/canonicalise.ts';
import { shareSubexpressions } from '../../ir/passes/cse.ts';
import { dropMarkers } from '../../ir/passes/drop-markers.ts';
import { foldConstants } from '../../ir/passes/fold.ts';
import { lowerComplex } from '../../ir/passes/lower-complex.ts';
import { simplify } from '../../ir/passes/simplify.ts';

const passes = [lowerComplex, dropMarkers, canonicalise, foldConstants, simplify, shareSubexpressions];

/** The graph in canonical form; its meaning is the same to the bit. */
export function canonical(graph: Graph): Graph {
  return passes.reduce<Graph>((before, pass) => pass(before), graph);
}
