// Takes out the ops that only autograd looks at: once gradients are derived, `stopGradient` and
// `customVjp` are the identity on their first input, and what only a custom rule wanted is no
// longer needed. Barriers stay: the scheduler looks at them.

import { below } from '../build.ts';
import { rewrite, type Graph } from '../graph.ts';

/** Replaces markers by the values they mark; what is beyond a bound is 0, as in the interpreter. */
export function dropMarkers(graph: Graph): Graph {
  return rewrite(graph, (node, inputs, b) => {
    if (node.op === 'bounded') return below(b, inputs[0]!, node.attrs.axis, inputs[1]!);
    return node.op === 'stopGradient' || node.op === 'customVjp' ? inputs[0] : undefined;
  });
}

/** Replaces barriers by the values behind them, for what knows no order of its own. */
export function dropBarriers(graph: Graph): Graph {
  return rewrite(graph, ({ op }, inputs) => (op === 'barrier' ? inputs[0] : undefined));
}
