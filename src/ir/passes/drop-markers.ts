// Removes the markers. Once gradients are derived, `stopGradient` and `customVjp` are the identity on their
// first input, and values that only a custom rule needed are no longer needed. `bounded` stays at outputs,
// until the last pass records it as a part of the graph; elsewhere the selects of readers say the same.
// Barriers stay, because the scheduler uses them.

import { GraphBuilder, rewrite, type Graph, type Need, type Node } from '../graph.ts';
import { checkEdge } from '../edge.ts';

/** Whether a node is its first input, for kernels as well. */
export const isMarker = ({ op }: Node): boolean =>
  op === 'stopGradient' ||
  op === 'customVjp' ||
  op === 'bounded' ||
  op === 'shard' ||
  op === 'toPart' ||
  op === 'toWhole';

/** Replaces markers by the values they mark, all but bounds of outputs. */
export function dropMarkers(graph: Graph): Graph {
  const bounds = graph.outputs.map(boundsOf);
  const numbers = bounds.flatMap((list) => list.map(({ n }) => n));
  const whole = { ...graph, outputs: [...graph.outputs, ...numbers] };
  const b = new GraphBuilder();
  const { parameters, outputs } = rewrite(
    whole,
    (node, inputs) => {
      checkEdge(node);
      return isMarker(node) ? inputs[0] : undefined;
    },
    b,
  );
  let next = graph.outputs.length;
  return {
    parameters,
    outputs: bounds.map((list, i) =>
      list.reduce(
        (node, { axis }): Node => b.add('bounded', [node, outputs[next++]!], { axis }) as Node,
        outputs[i]!,
      ),
    ),
  };
}

/** The bounds of an output, which may stand among other markers. */
export function boundsOf(output: Node): readonly { readonly axis: number; readonly n: Node }[] {
  const found: { axis: number; n: Node }[] = [];
  for (let at = output; isMarker(at); at = at.inputs[0]!)
    if (at.op === 'bounded') found.push({ axis: at.attrs.axis, n: at.inputs[1]! });
  return found;
}

/** What is asked for by either of two readers. */
export function eitherNeed(a: readonly Need[], b: readonly Need[]): readonly Need[] {
  return a.flatMap(({ axis, ends }) => {
    const other = b.find((need) => need.axis === axis);
    if (other === undefined) return [];
    const more = other.ends.filter((end) => !ends.some((own) => own.n === end.n && own.more === end.more));
    return [{ axis, ends: [...ends, ...more] }];
  });
}

/** Replaces barriers by the values behind them, for what knows no order of its own. */
export function dropBarriers(graph: Graph): Graph {
  return rewrite(graph, ({ op }, inputs) => (op === 'barrier' ? inputs[0] : undefined));
}
