// Work whose result nothing reads. A graph holds only what its outputs reach, so every pass drops
// dead nodes; unused parameters stay, because callers count on their positions. This pass drops
// parts that are dead: a slice that reads only some pieces of a concatenation, or only one side of
// a padding's edge. What only a barrier waits for is dead as well: the barrier then waits for the
// latest of what that is computed from and something else reads.

import { slice } from '../build.ts';
import { dims, GraphBuilder, readInputs, topological, type Graph, type Node, type NodeOf } from '../graph.ts';
import { onBehalf } from '../origin/origin.ts';
import { held, spreadConstant } from './pattern.ts';
import { rule, rulePass, type RewriteRule } from './rules.ts';

/** First and last element that a slice reads along an axis. */
function span({ attrs: { start, size, step } }: NodeOf<'slice'>, axis: number): readonly [number, number] {
  const last = start[axis]! + (size[axis]! - 1) * step[axis]!;
  return start[axis]! < last ? [start[axis]!, last] : [last, start[axis]!];
}

/** The rules, in the order they are tried. */
export const deadCodeRules: readonly RewriteRule[] = [
  rule('slice-concat', 'concat(x, y, z)[of x and y] = concat(x, y)[of x and y]', 'slice', (node, b) => {
    const x = node.inputs[0]!;
    if (x.op !== 'concat' || node.shape.includes(0)) return undefined;
    const { axis } = x.attrs;
    const [first, last] = span(node, axis);
    let offset = 0;
    let skipped = 0;
    const read: Node[] = [];
    for (const part of x.inputs) {
      const end = offset + (part.shape[axis] as number);
      if (end <= first) skipped = end;
      else if (offset <= last) read.push(part);
      offset = end;
    }
    if (read.length === x.inputs.length) return undefined;
    const { start, size, step } = node.attrs;
    const moved = start.map((at, i) => (i === axis ? at - skipped : at));
    const rest = read.length === 1 ? read[0]! : (b.add('concat', read, { axis }) as Node);
    return slice(b, rest, moved, size, step);
  }),
  rule('slice-pad', 'pad(x)[within x] = x[…]; pad(x, v)[outside x] = spread v', 'slice', (node, b) => {
    const x = node.inputs[0]!;
    if (x.op !== 'pad' || node.shape.includes(0)) return undefined;
    const from = dims(x.inputs[0]!);
    const { low, interior, value } = x.attrs;
    let inside = true;
    for (const [axis, size] of from.entries()) {
      const [first, last] = span(node, axis);
      const end = low[axis]! + size + Math.max(0, size - 1) * interior[axis]!;
      if (last < low[axis]! || first >= end) {
        return spreadConstant(b, held(value, node.dtype), node.dtype, node.shape);
      }
      inside &&= interior[axis] === 0 && first >= low[axis]! && last < end;
    }
    if (!inside) return undefined;
    const { start, size, step } = node.attrs;
    return slice(
      b,
      x.inputs[0]!,
      start.map((at, axis) => at - low[axis]!),
      size,
      step,
    );
  }),
];

const dropDeadParts: (graph: Graph) => Graph = rulePass('removeDeadCode', deadCodeRules);

/** Drops what no output reads. */
export function removeDeadCode(graph: Graph): Graph {
  return awaitLive(dropDeadParts(graph));
}

/** Barriers that wait for nothing but what outputs read. */
function awaitLive(graph: Graph): Graph {
  const order = topological(graph.outputs);
  if (!order.some(({ op }) => op === 'barrier')) return graph;
  const live = new Set<Node>(graph.outputs);
  for (const node of live) for (const input of readInputs(node)) live.add(input);
  if (live.size === order.length) return graph;
  /** Of each node the latest live one among itself and what it is computed from. */
  const latest = new Map<Node, Node>();
  for (const node of order) {
    const before = node.inputs.map((input) => latest.get(input)).filter((input) => input !== undefined);
    const last = live.has(node) ? node : before.sort((x, y) => y.id - x.id)[0];
    if (last !== undefined) latest.set(node, last);
  }
  const b = new GraphBuilder();
  const made = new Map<Node, Node>(graph.parameters.map((node) => [node as Node, b.copy(node as Node, [])]));
  for (const node of order) {
    if (!live.has(node) || made.has(node)) continue;
    const [value, event] = node.inputs as readonly [Node, Node];
    const inputs = node.op === 'barrier' ? [value, latest.get(event) ?? value] : node.inputs;
    made.set(
      node,
      onBehalf('rewrite', node, () =>
        b.copy(
          node,
          inputs.map((input) => made.get(input)!),
        ),
      ),
    );
  }
  return {
    parameters: graph.parameters.map((node) => made.get(node as Node) as NodeOf<'parameter'>),
    outputs: graph.outputs.map((node) => made.get(node)!),
  };
}
