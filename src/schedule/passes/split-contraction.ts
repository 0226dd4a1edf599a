// A contraction with few results and a long sum leaves most of the machine idle: it becomes many
// shorter ones and the sum of their results, where the time modelled for both is less. Sizes and
// target decide, so the tree of the sum is fixed.

import { cast, reduce, reshape } from '../../ir/build.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../../ir/graph.ts';
import { sizeOf } from '../../ir/shape.ts';
import { nodeFlops } from '../cost.ts';
import { resultsToFill } from '../machine.ts';
import type { Target } from '../target.ts';

/** Terms that a part should have at least. */
const leastTerms = 256;
/** How many times faster two kernels must be. */
const gain = 1.5;

/** `Σ_k` as `Σ_part Σ_k'`, cut along a contracted axis; undefined where one kernel is as fast. */
export function splitDot(
  node: NodeOf<'dot'>,
  inputs: readonly Node[],
  b: GraphBuilder,
  target: Target,
): Node | undefined {
  const { lhsBatch, rhsBatch, lhsContract, rhsContract, dtype } = node.attrs;
  const [left, right] = [inputs[0]!, inputs[1]!];
  const shape = dims(left);
  const terms = sizeOf(lhsContract.map((axis) => shape[axis]!));
  const cuts = lhsContract.map((axis) => ({ size: shape[axis]!, isRow: axis === shape.length - 1 }));
  const split = bestSplit(node as Node, terms, cuts, target);
  if (split === undefined) return undefined;
  const { parts, along } = split;
  // The axis becomes [parts, rest]; the parts are one more batch axis, the last.
  const cut = (x: Node, axis: number): Node =>
    reshape(b, x, dims(x).toSpliced(axis, 1, parts, dims(x)[axis]! / parts));
  const moved = (axes: readonly number[], at: number): number[] =>
    axes.map((axis) => (axis >= at ? axis + 1 : axis));
  const [l, r] = [lhsContract[along]!, rhsContract[along]!];
  const partial = b.add('dot', [cut(left, l), cut(right, r)], {
    lhsBatch: [...moved(lhsBatch, l), l],
    rhsBatch: [...moved(rhsBatch, r), r],
    lhsContract: moved(lhsContract, l),
    rhsContract: moved(rhsContract, r),
    dtype: wide(dtype),
  });
  return cast(b, reduce(b, 'sum', partial as Node, [lhsBatch.length]), dtype);
}

/** The dtype of partial sums. */
export function wide<D extends string>(dtype: D): D | 'f32' {
  return dtype === 'f16' || dtype === 'bf16' ? 'f32' : dtype;
}

/** A summed axis; rows are read in vectors of four, so their parts must be such. */
interface Cut {
  readonly size: number;
  readonly isRow: boolean;
}

/** Whether so few results of so many terms leave some of the machine idle. */
export function mayBeCut(terms: number, results: number, target: Target): boolean {
  return terms >= 2 * leastTerms && results < resultsToFill(target);
}

/** How many parts, and of which summed axis: they must divide it. */
export function bestSplit(
  node: Node,
  terms: number,
  cuts: readonly Cut[],
  target: Target,
): { parts: number; along: number } | undefined {
  const results = sizeOf(dims(node));
  if (results === 0 || !mayBeCut(terms, results, target)) return undefined;
  const full = resultsToFill(target);
  const flops = nodeFlops(node);
  const time = (parallel: number): number => flops / (target.arithmetic * Math.min(1, parallel / full));
  let best: { parts: number; along: number } | undefined;
  let bestTime = time(results) / gain;
  cuts.forEach(({ size, isRow }, along) => {
    for (let parts = 2; terms / parts >= leastTerms && results * parts < 4 * full; parts++) {
      if (size % parts !== 0 || (isRow && (size / parts) % 4 !== 0)) continue;
      const traffic = (2 * 4 * results * parts) / target.bandwidth;
      const both = time(results * parts) + target.launch + traffic;
      if (both < bestTime) [best, bestTime] = [{ parts, along }, both];
    }
  });
  return best;
}
