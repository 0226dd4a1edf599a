// How long recording, differentiating, scheduling and generating source take as graphs grow: `npx tsx bench/compile-time.ts`.
// Prints one line a size; growth should stay close to linear. Needs no device.

import { cotangents } from '../src/autograd/vjp.ts';
import { compileGraph } from '../src/compile.ts';
import {
  add,
  broadcast,
  constant,
  mul,
  reduce,
  reduceKeep,
  reshape,
  sub,
  unary,
  div,
} from '../src/ir/build.ts';
import { GraphBuilder, topological, type Graph, type Node, type NodeOf } from '../src/ir/graph.ts';
import { gpuTarget } from '../src/schedule/target.ts';

/** One pre-norm residual layer with a gated activation: about 40 nodes, two matmuls and a norm. */
export function layer(b: GraphBuilder, x: Node, w1: Node, w2: Node, rows: number, width: number): Node {
  const shape = [rows, width];
  const mean = broadcast(b, mul(b, reduceKeep(b, 'sum', x, [1]), 1 / width), shape);
  const centred = sub(b, x, mean);
  const variance = mul(b, reduceKeep(b, 'sum', mul(b, centred, centred), [1]), 1 / width);
  const scale = broadcast(b, unary(b, 'rsqrt', add(b, variance, 1e-5)), shape);
  const dot = { lhsBatch: [], rhsBatch: [], lhsContract: [1], rhsContract: [0], dtype: 'f32' } as const;
  const hidden = b.add('dot', [mul(b, centred, scale), w1], dot) as Node;
  const gate = unary(b, 'recip', add(b, unary(b, 'exp', unary(b, 'neg', hidden)), 1));
  return add(b, x, b.add('dot', [mul(b, hidden, gate), w2], dot) as Node);
}

export interface CompileTime {
  readonly nodes: number;
  readonly kernels: number;
  readonly recordMs: number;
  readonly gradientMs: number;
  readonly compileMs: number;
  readonly totalMs: number;
}

/** Times one graph of about `nodes` nodes, gradient included. */
export function measureCompile(nodes: number): CompileTime {
  const [rows, width] = [32, 64];
  const start = performance.now();
  const b = new GraphBuilder();
  const parameters: NodeOf<'parameter'>[] = [];
  const parameter = (shape: readonly number[]): Node => {
    const index = parameters.length;
    const node = b.add('parameter', [], { index, name: `p${index}`, dtype: 'f32', shape });
    parameters.push(node);
    return node as Node;
  };
  let x = parameter([rows, width]);
  const weights: Node[] = [];
  while (b.size < nodes * 0.36) {
    const pair = [parameter([width, width]), parameter([width, width])] as const;
    weights.push(...pair);
    x = layer(b, x, pair[0], pair[1], rows, width);
  }
  const loss = reshape(b, reduce(b, 'sum', div(b, mul(b, x, x), rows), [0, 1]), []);
  const recorded = performance.now();
  const gradients = cotangents(b, [loss], [constant(b, 1, 'f32')], weights);
  const updated = weights.map((w, i) => sub(b, w, mul(b, gradients[i]!, 0.01)));
  const graph: Graph = { parameters, outputs: [loss, ...updated] };
  const differentiated = performance.now();
  const { kernels } = compileGraph(graph, gpuTarget);
  const end = performance.now();
  return {
    nodes: topological(graph.outputs).length,
    kernels: kernels.length,
    recordMs: recorded - start,
    gradientMs: differentiated - recorded,
    compileMs: end - differentiated,
    totalMs: end - start,
  };
}

if (import.meta.url === `file://${process.argv[1]}`) {
  measureCompile(2_000);
  for (const size of [1_000, 10_000, 30_000, 100_000]) {
    const time = measureCompile(size);
    const ms = (value: number): string => `${value.toFixed(0)} ms`;
    console.log(
      `${time.nodes} nodes, ${time.kernels} kernels: record ${ms(time.recordMs)}, gradient ${ms(time.gradientMs)}, ` +
        `compile ${ms(time.compileMs)}, total ${ms(time.totalMs)}, ${((1000 * time.totalMs) / time.nodes).toFixed(0)} µs a node`,
    );
  }
}
