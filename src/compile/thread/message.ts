// What goes to the thread that compiles, and what comes back. A message is copied: a copy of nodes that
// hold nodes would overflow the stack, and lose what is a class, so graphs go as lists.

import { GraphBuilder, topological, type Graph, type Node } from '../../ir/graph.ts';
import type { Attrs, Op } from '../../ir/ops.ts';
import { Region } from '../../ir/region.ts';
import { graphOf, regionOf } from '../../ir/text/region.ts';
import type { Program } from '../../runtime/program.ts';
import type { Target } from '../../schedule/target.ts';
import type { CompileOptions } from '../compile.ts';

/** The options but for functions, and what only says who hears of the compilation. */
export type SentOptions = Omit<CompileOptions, 'observe' | 'schedules' | 'title' | 'inspect'>;

/** A graph to compile. */
export interface CompileRequest {
  /** The answer has the same. */
  readonly id: number;
  readonly graph: PlainGraph;
  readonly target: Target;
  readonly options: SentOptions;
}

/** First that the thread is there, then what became of each request. */
export type CompileAnswer =
  | { readonly kind: 'ready' }
  | { readonly kind: 'compiled'; readonly id: number; readonly program: Program }
  | { readonly kind: 'failed'; readonly id: number; readonly problem: string };

/** A graph as lists: nodes name their inputs by place, and follow them. */
export interface PlainGraph {
  readonly nodes: readonly PlainNode[];
  readonly parameters: readonly number[];
  readonly outputs: readonly number[];
}

interface PlainNode {
  readonly op: Op;
  readonly inputs: readonly number[];
  /** A region stands here as a plain graph; no other attribute is an object with `nodes`. */
  readonly attrs: Readonly<Record<string, unknown>>;
}

/** The graph as lists. */
export function plainGraph(graph: Graph): PlainGraph {
  const all = new Set<Node>([...(graph.parameters as readonly Node[]), ...topological(graph.outputs)]);
  const nodes = [...all].toSorted((a, b) => a.id - b.id);
  const places = new Map(nodes.map((node, place) => [node, place]));
  const placeOf = (node: Node): number => places.get(node)!;
  return {
    nodes: nodes.map(({ op, inputs, attrs }) => ({
      op,
      inputs: inputs.map(placeOf),
      attrs: withEach(attrs, (value) => (value instanceof Region ? plainGraph(graphOf(value)) : value)),
    })),
    parameters: graph.parameters.map((node) => placeOf(node as Node)),
    outputs: graph.outputs.map(placeOf),
  };
}

/** The graph that `plainGraph` made the lists of. */
export function graphOfPlain({ nodes, parameters, outputs }: PlainGraph): Graph {
  const builder = new GraphBuilder();
  const made: Node[] = [];
  for (const { op, inputs, attrs } of nodes) {
    const own = withEach(attrs, (value) => (isPlain(value) ? regionOf(graphOfPlain(value)) : value));
    made.push(
      builder.add(
        op,
        inputs.map((place) => made[place]!),
        own as Attrs<typeof op>,
      ) as Node,
    );
  }
  return {
    parameters: parameters.map((place) => made[place]! as Graph['parameters'][number]),
    outputs: outputs.map((place) => made[place]!),
  };
}

function isPlain(value: unknown): value is PlainGraph {
  return typeof value === 'object' && value !== null && 'nodes' in value;
}

/** The same names with other values. */
function withEach(values: object, make: (value: unknown) => unknown): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, make(value)]));
}
