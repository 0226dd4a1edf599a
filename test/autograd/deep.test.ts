// Derivatives and batches of deep graphs: walks over nodes, none of which may call itself or look at a node often.
//
// Runs alone: it measures time.

import { expect, test } from 'vitest';
import { tangents } from '../../src/autograd/jvp/jvp.ts';
import { batched } from '../../src/autograd/vmap/vmap.ts';
import { gradientGraph } from '../../src/autograd/vjp.ts';
import { full } from '../../src/ir/build.ts';
import { GraphBuilder, rewrite, topological, type Graph, type Node } from '../../src/ir/graph.ts';
import { cpuTime } from '../support/cpu-time.ts';
import { deepGraph } from '../support/deep-graph.ts';

/** The graph in a builder of its own, which nodes can be added to. */
function copied(graph: Graph): { readonly b: GraphBuilder; readonly x: Node; readonly y: Node } {
  const b = new GraphBuilder();
  const { parameters, outputs } = rewrite(graph, () => undefined, b);
  return { b, x: parameters[0] as Node, y: outputs[0]! };
}

const transforms: Readonly<Record<string, (graph: Graph) => readonly (Node | undefined)[]>> = {
  'the gradient': (graph) => gradientGraph(graph, [0], { seedAll: true }).outputs,
  'the tangent': (graph) => {
    const { b, x, y } = copied(graph);
    const direction = b.add('parameter', [], { index: 1, name: 'd', dtype: 'f32', shape: [8, 16] });
    return tangents(b, [y], [x], [direction as Node]);
  },
  'the batch': (graph) => {
    const { b, x, y } = copied(graph);
    const whole = b.add('parameter', [], { index: 1, name: 'xs', dtype: 'f32', shape: [4, 8, 16] });
    return batched(b, [y], new Map([[x, whole as Node]]), 4);
  },
  'the gradient of a batch': (graph) => {
    const { b, x, y } = copied(graph);
    const whole = b.add('parameter', [], { index: 0, name: 'xs', dtype: 'f32', shape: [4, 8, 16] });
    const [all] = batched(b, [y], new Map([[x, whole as Node]]), 4);
    const batch: Graph = { parameters: [whole], outputs: [all ?? full(b, [4, 8, 16], 0, 'f32')] };
    return gradientGraph(batch, [0], { seedAll: true }).outputs;
  },
};

// The bound is what any quadratic walk would miss by far: on one idle core each takes 0.2 to 1 s.
test.each(Object.keys(transforms))('%s of 100,000 nodes is made in one walk', (name) => {
  const graph = deepGraph(100_000);
  let made: readonly (Node | undefined)[] = [];
  expect(cpuTime(() => (made = transforms[name]!(graph)))).toBeLessThan(15_000);
  const nodes = made.filter((node) => node !== undefined);
  expect(nodes.length).toBe(made.length);
  expect(topological(nodes).length).toBeGreaterThan(50_000);
});
