// What a result of a loop depends on: the carries that it needs in earlier iterations, and the inputs that it reads.

import { readInputs, topological, type Graph, type Node, type NodeOf } from '../graph.ts';
import { graphOf } from '../text/region.ts';

/** Wanted results, and the carries that they need in earlier iterations, in order. `inputsOf` as for `topological`. */
export function keptResults(
  { parameters, outputs }: Graph,
  carries: number,
  wanted: ReadonlySet<number>,
  inputsOf?: (node: Node) => readonly Node[],
): number[] {
  const kept = new Set(wanted);
  for (let before = -1; before !== kept.size;) {
    before = kept.size;
    const needed = new Set(
      topological(
        [...kept].map((result) => outputs[result]!),
        undefined,
        inputsOf,
      ),
    );
    for (let i = 0; i < carries; i++) if (needed.has(parameters[i + 1] as Node)) kept.add(i);
  }
  return [...kept].sort((x, y) => x - y);
}

const places = new WeakMap<Node, ReadonlySet<number>>();

/** The inputs, by their places, that a result of a loop depends on. */
export function placesRead(node: NodeOf<'iterate'>): ReadonlySet<number> {
  const before = places.get(node as Node);
  if (before !== undefined) return before;
  const { body, carries, guard, result } = node.attrs;
  const { parameters, outputs } = graphOf(body);
  const wanted = new Set(guard < 0 ? [result] : [result, guard]);
  const kept = keptResults(graphOf(body), carries, wanted, inputsRead);
  const needed = new Set(
    topological(
      kept.map((one) => outputs[one]!),
      undefined,
      inputsRead,
    ),
  );
  const behind = parameters.flatMap((one, i) => (i > carries && needed.has(one as Node) ? [i - 1] : []));
  const found = new Set([...kept.filter((one) => one < carries), ...behind]);
  places.set(node as Node, found);
  return found;
}

/** The inputs that the value of a node depends on: of a loop, which may lie in a loop, those that its result needs. */
export function inputsRead(node: Node): readonly Node[] {
  if (node.op !== 'iterate') return readInputs(node);
  return node.inputs.filter((_, place) => placesRead(node).has(place));
}
