// What a result of a loop depends on: the carries that it needs in earlier iterations, and the inputs that it reads.

import { topological, type Graph, type Node, type NodeOf } from '../graph.ts';
import { graphOf } from '../text/region.ts';

/** Wanted results, and the carries that they need in earlier iterations, in order. */
export function keptResults(
  { parameters, outputs }: Graph,
  carries: number,
  wanted: ReadonlySet<number>,
): number[] {
  const kept = new Set(wanted);
  for (let before = -1; before !== kept.size;) {
    before = kept.size;
    const needed = new Set(topological([...kept].map((result) => outputs[result]!)));
    for (let i = 0; i < carries; i++) if (needed.has(parameters[i + 1] as Node)) kept.add(i);
  }
  return [...kept].sort((x, y) => x - y);
}

/** The inputs, by their places, that a result of a loop depends on. */
export function placesRead({ attrs }: NodeOf<'iterate'>): ReadonlySet<number> {
  const { body, carries, guard, result } = attrs;
  const { parameters, outputs } = graphOf(body);
  const kept = keptResults(graphOf(body), carries, new Set(guard < 0 ? [result] : [result, guard]));
  const needed = new Set(topological(kept.map((one) => outputs[one]!)));
  const behind = parameters.flatMap((node, i) => (i > carries && needed.has(node as Node) ? [i - 1] : []));
  return new Set([...kept.filter((one) => one < carries), ...behind]);
}
