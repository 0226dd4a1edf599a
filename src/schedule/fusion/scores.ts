// Finds where attention may be: products whose weights are made of products, as softmax makes them.
// `weighsScores` asks it of a scheduled graph, before the search for attention (attention.ts).
// `mayWeighScores` asks it of a recorded graph: if it is true, a page loads the chunk with the search and the
// kernels (compile/chunks.ts).

import type { Node, NodeOf } from '../../ir/graph.ts';
import { isElementwise } from '../../ir/ops.ts';
import { isThroughView } from './place.ts';

/**
 * Nodes computed from results of dots by elementwise operations, and those of them that depend on a
 * reduction.
 */
export interface ScoreReach {
  readonly scores: ReadonlySet<Node>;
  readonly statistics: ReadonlySet<Node>;
}

export function reachOf(order: readonly Node[]): ScoreReach {
  const scores = new Set<Node>();
  const statistics = new Set<Node>();
  for (const node of order) {
    if (node.op === 'dot') scores.add(node);
    else if (node.op === 'reduce') {
      if (scores.has(node.inputs[0]!)) statistics.add(node);
    } else if (isElementwise(node.op) || isThroughView(node)) {
      if (node.inputs.some((input) => scores.has(input))) scores.add(node);
      if (node.inputs.some((input) => statistics.has(input))) statistics.add(node);
    }
  }
  return { scores, statistics };
}

/**
 * Whether a dot can be the end of a group by its weights alone. Without statistics in between, fusion can only pay for batches of
 * products and for products that share scores with an attention.
 */
export function isWorthwhile(
  { scores, statistics }: ScoreReach,
  weights: Node,
  node: NodeOf<'dot'>,
): boolean {
  return statistics.has(weights) || (node.attrs.lhsBatch.length > 0 && scores.has(weights));
}

/** Whether any dot can be the end of a group; otherwise there is no attention. */
export function weighsScores(order: readonly Node[]): boolean {
  const reach = reachOf(order);
  return order.some(
    (node) => node.op === 'dot' && node.inputs.some((weights) => isWorthwhile(reach, weights, node)),
  );
}

/** Terms of a product that passes/split-contraction.ts may cut into a batch of products and a sum. */
const long = 512;

/** Taps for each place of a convolution that passes/conv/as-dot.ts may make a product. */
const wide = 4;

/**
 * Whether `weighsScores` may hold of what the passes make of a recorded graph. They cut long products, make products of
 * convolutions, and drop and move everything that is no product.
 */
export function mayWeighScores(order: readonly Node[]): boolean {
  const scores = new Set<Node>();
  const statistics = new Set<Node>();
  for (const node of order) {
    const ofScores = node.inputs.some((input) => scores.has(input));
    const ofStatistics = node.inputs.some((input) => statistics.has(input));
    const product = productOf(node);
    if (product !== undefined) {
      if (ofStatistics || (ofScores && product !== 'short')) return true;
      scores.add(node);
      if (product === 'cut') statistics.add(node);
    } else {
      if (ofScores) scores.add(node);
      if (ofStatistics || (ofScores && node.op === 'reduce')) statistics.add(node);
    }
  }
  return false;
}

/** What becomes of a product: a batch of products, one that may be cut besides, or one product. */
function productOf(node: Node): 'batch' | 'cut' | 'short' | undefined {
  if (node.op === 'conv') {
    const places = sizeOr(node.shape.slice(2), 0);
    return sizeOr(node.inputs[1]!.shape.slice(2), Infinity) >= wide * places ? 'cut' : undefined;
  }
  if (node.op !== 'dot') return undefined;
  const { lhsBatch, lhsContract } = (node as NodeOf<'dot'>).attrs;
  const shape = node.inputs[0]!.shape;
  const terms = sizeOr(
    lhsContract.map((axis) => shape[axis]!),
    Infinity,
  );
  return terms >= long ? 'cut' : lhsBatch.length > 0 ? 'batch' : 'short';
}

/** The number of elements; where a size is none yet, what stands for it. */
function sizeOr(shape: Node['shape'], unknown: number): number {
  return shape.reduce<number>((size, dim) => (typeof dim === 'number' ? size * dim : unknown), 1);
}
