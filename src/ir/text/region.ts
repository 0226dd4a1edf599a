// Regions of graphs: what a loop runs, with its text. Equal texts mean equal regions.

import { GraphBuilder, rewrite, type Graph } from '../graph.ts';
import { Region } from '../region.ts';
import { print } from './print.ts';

/** The region of a graph: its nodes made anew, so that it holds on to nothing around it. */
export function regionOf(graph: Graph): Region {
  const fresh = rewrite(graph, () => undefined, new GraphBuilder());
  return new Region(fresh, print(fresh));
}

/** The graph of a region. */
export function graphOf({ graph }: Region): Graph {
  return graph as Graph;
}
