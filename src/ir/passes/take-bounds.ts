// Removes bounds of outputs from a graph, and records beside it which part of each output is needed: kernels
// are made of values that are computed, and a bound computes nothing.

import { rewrite, type Graph, type Need, type Node } from '../graph.ts';
import { boundsOf, eitherNeed, isMarker } from './drop-markers.ts';

/** The graph without bounds, which says what of its outputs is needed. */
export function takeBounds(graph: Graph): Graph {
  const bounds = graph.outputs.map(boundsOf);
  const numbers = bounds.flatMap((list) => list.map(({ n }) => n));
  const whole = { ...graph, outputs: [...graph.outputs, ...numbers] };
  const made = rewrite(whole, (node, inputs) => (isMarker(node) ? inputs[0] : undefined));
  const needed = new Map<Node, readonly Need[]>();
  const outputs = made.outputs.slice(0, bounds.length);
  let next = bounds.length;
  for (const [i, output] of outputs.entries()) {
    const needs: Need[] = [];
    for (const { axis } of bounds[i]!) {
      const n = made.outputs[next++]!;
      if (needs.every((need) => need.axis !== axis)) needs.push({ axis, ends: [{ n, more: 0 }] });
    }
    const before = needed.get(output);
    needed.set(output, before === undefined ? needs : eitherNeed(before, needs));
  }
  for (const [node, needs] of needed) if (needs.length === 0) needed.delete(node);
  return { parameters: made.parameters, outputs, ...(needed.size > 0 && { needed }) };
}
