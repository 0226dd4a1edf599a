// A graph so deep that a walk that calls itself would overflow the stack, and a quadratic one would not end.

import { add, broadcast, mul, permute, reduceKeep, unary } from '../../src/ir/build.ts';
import { GraphBuilder, type Graph, type Node } from '../../src/ir/graph.ts';

/** A deep chain of scalings, row sums and activations. */
export function deepGraph(size: number): Graph {
  const b = new GraphBuilder();
  const parameter = b.add('parameter', [], { index: 0, name: 'x', dtype: 'f32', shape: [8, 16] });
  let x: Node = parameter as Node;
  for (let layer = 1; b.size < size; layer++) {
    const sums = broadcast(b, reduceKeep(b, 'sum', mul(b, x, layer + 0.5), [1]), [8, 16]);
    x = add(b, sums, unary(b, 'tanh', permute(b, permute(b, x, [1, 0]), [1, 0])));
  }
  return { parameters: [parameter], outputs: [x] };
}
