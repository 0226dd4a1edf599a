// Names for the parameters of a traced graph, by where they come from, for reports.

import { rewrite, type Graph, type Node } from '../../ir/graph.ts';
import type { Traced } from '../tracing.ts';

/**
 * The traced graph with parameters named after where they come from: `arg0.layers[1].w`, `captured2`, `seed0`. `paths` are those of the
 * leaves of the arguments.
 */
export function namedGraph(traced: Traced, paths: readonly string[]): Graph {
  const argument = (leaf: number): string => paths[leaf]!.replace(/^\[(\d+)\]/, 'arg$1');
  let [tensor, scalar] = [0, 0];
  const names = traced.graph.parameters.map((_, i) => {
    if (traced.scalarIndices.has(i)) {
      const origin = traced.scalars[scalar++]!;
      return origin.kind === 'number' ? argument(origin.leaf) : `${origin.kind}${scalar - 1}`;
    }
    const { origin, part } = traced.inputs[tensor++]!;
    const name = origin.kind === 'argument' ? argument(origin.leaf) : `captured${tensor - 1}`;
    return part === 'grad' ? `${name}.grad` : name;
  });
  return rewrite(traced.graph, (node, _, b) => {
    if (node.op !== 'parameter') return undefined;
    return b.add('parameter', [], { ...node.attrs, name: names[node.attrs.index]! }) as Node;
  });
}
