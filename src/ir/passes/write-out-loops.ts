// Loops written out: each iteration becomes nodes of its own, for where there are no loops, or no need of
// one. Equal loops are written once.

import { constant, full, reshape, slice } from '../build.ts';
import { siblingKey } from '../control/iterate.ts';
import { graphOf } from '../text/region.ts';
import {
  dims,
  rewrite,
  topological,
  type Graph,
  type GraphBuilder,
  type Node,
  type NodeOf,
} from '../graph.ts';

/** The graph with these loops written out, those inside of what was written too. */
export function writeOutLoops(graph: Graph, isChosen: (loop: NodeOf<'iterate'>) => boolean): Graph {
  const isWritten = (node: Node): node is NodeOf<'iterate'> & Node =>
    node.op === 'iterate' && isChosen(node as NodeOf<'iterate'>);
  if (!topological(graph.outputs).some(isWritten)) return graph;
  const known = new Map<string, readonly Node[]>();
  const flat = rewrite(graph, (node, inputs, b) => {
    if (!isWritten(node)) return undefined;
    const moved = b.copy(node, inputs) as NodeOf<'iterate'>;
    const key = `${siblingKey(moved)}:${moved.attrs.body.key}`;
    const results = known.get(key) ?? turnsOf(b, moved);
    known.set(key, results);
    return results[node.attrs.result];
  });
  return writeOutLoops(flat, isChosen);
}

/** All results of a loop, by its iterations one after the other. */
function turnsOf(b: GraphBuilder, { attrs, inputs }: NodeOf<'iterate'>): Node[] {
  const { body, carries, stacked, trips, reverse } = attrs;
  const { parameters, outputs } = graphOf(body);
  let values = inputs.slice(0, carries);
  const given = new Map<number, readonly Node[]>();
  for (let turn = 0; turn < trips; turn++) {
    const at = reverse ? trips - 1 - turn : turn;
    const inside = new Map(
      parameters.map((parameter, i) => {
        const place = i - 1;
        if (place < 0) return [parameter as Node, constant(b, at, 'i32')];
        if (place < carries) return [parameter as Node, values[place]!];
        const input = inputs[place]!;
        return [parameter as Node, place < carries + stacked ? sliceAt(b, input, at) : input];
      }),
    );
    const made = rewrite({ parameters: [], outputs }, (node) => inside.get(node), b).outputs;
    values = made.slice(0, carries);
    given.set(at, made.slice(carries));
  }
  const stacks = outputs.slice(carries).map((one, i): Node => {
    if (trips === 0) return full(b, [0, ...dims(one)], 0, one.dtype);
    const slices = Array.from({ length: trips }, (_, at) => {
      const each = given.get(at)![i]!;
      return reshape(b, each, [1, ...dims(each)]);
    });
    return slices.length === 1 ? slices[0]! : (b.add('concat', slices, { axis: 0 }) as Node);
  });
  return [...values, ...stacks];
}

function sliceAt(b: GraphBuilder, stack: Node, at: number): Node {
  const [, ...shape] = dims(stack);
  const start = [at, ...shape.map(() => 0)];
  return reshape(b, slice(b, stack, start, [1, ...shape]), shape);
}
