// An axis of which each output element is a weighted mean: a product with a matrix of weights.

import { broadcast, div, permute, reduceKeep } from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { cast } from '../../../ir/build.ts';
import { contract } from '../product/contract.ts';

/** Σ over `axis` of x by weights [count, size], each row of which counts as 1. @internal */
export function weightedAxis(b: GraphBuilder, x: Node, axis: number, weights: Node): Node {
  const total = reduceKeep(b, 'sum', weights, [1]);
  const shares = cast(b, div(b, weights, broadcast(b, total, dims(weights))), x.dtype);
  // The product has the output axis last.
  const product = contract(b, x, shares, [], [[axis, 1]]);
  const rank = dims(x).length;
  const order = Array.from({ length: rank }, (_, i) => (i < axis ? i : i === axis ? rank - 1 : i - 1));
  return permute(b, product, order);
}
