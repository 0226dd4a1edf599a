// A contraction with few results and a long sum leaves most of the machine idle: it becomes many shorter ones and the sum of
// their results, where the time modelled for both is less. Sizes and target decide, so the tree of the sum is fixed.

import { cast, reduce, reshape } from '../ir/build.ts';
import { dims, type GraphBuilder, type Node, type NodeOf } from '../ir/graph.ts';
import { sizeOf } from '../ir/shape.ts';
import { nodeFlops } from './cost.ts';
import type { Target } from './target.ts';

/** Terms that a part should have at least. */
const leastTerms = 256;
/** How many times faster two kernels must be. */
const gain = 1.5;

/** `Σ_k` as `Σ_part Σ_k'`; undefined where one kernel does as well. */
export function splitDot(
  node: NodeOf<'dot'>,
  inputs: readonly Node[],
  b: GraphBuilder,
  target: Target,
): Node | undefined {
  const { lhsBatch, rhsBatch, lhsContract, rhsContract, dtype } = node.attrs;
  const [left, right] = [inputs[0]!, inputs[1]!];
  const results = sizeOf(dims(node as Node));
  const terms = sizeOf(lhsContract.map((axis) => dims(left)[axis]!));
  if (results === 0 || terms < 2 * leastTerms) return undefined;
  const split = bestSplit(node, results, terms, dims(left), target);
  if (split === undefined) return undefined;
  const { parts, along } = split;
  // The axis becomes [parts, rest]; the parts are one more batch axis, the last.
  const cut = (x: Node, axis: number): Node =>
    reshape(b, x, dims(x).toSpliced(axis, 1, parts, dims(x)[axis]! / parts));
  const moved = (axes: readonly number[], at: number): number[] =>
    axes.map((axis) => (axis >= at ? axis + 1 : axis));
  const [l, r] = [lhsContract[along]!, rhsContract[along]!];
  const isHalf = dtype === 'f16' || dtype === 'bf16';
  const partial = b.add('dot', [cut(left, l), cut(right, r)], {
    lhsBatch: [...moved(lhsBatch, l), l],
    rhsBatch: [...moved(rhsBatch, r), r],
    lhsContract: moved(lhsContract, l),
    rhsContract: moved(rhsContract, r),
    dtype: isHalf ? 'f32' : dtype,
  });
  return cast(b, reduce(b, 'sum', partial as Node, [lhsBatch.length]), dtype);
}

/** How many parts, and of which contracted axis: it must divide. */
function bestSplit(
  node: NodeOf<'dot'>,
  results: number,
  terms: number,
  left: readonly number[],
  target: Target,
): { parts: number; along: number } | undefined {
  // Results that fill the machine: a GPU's workgroups share sums already, 16 invocations each.
  const full = target.cooperative ? target.parallelism / 16 : target.parallelism / 8;
  const flops = nodeFlops(node as Node);
  const time = (parallel: number): number => flops / (target.arithmetic * Math.min(1, parallel / full));
  const alone = time(results);
  let best: { parts: number; along: number } | undefined;
  let least = alone / gain;
  node.attrs.lhsContract.forEach((axis, along) => {
    for (let parts = 2; terms / parts >= leastTerms && results * parts < 4 * full; parts++) {
      if (left[axis]! % parts !== 0 || (axis === left.length - 1 && (left[axis]! / parts) % 4 !== 0))
        continue;
      const traffic = (2 * 4 * results * parts) / target.bandwidth;
      const both = time(results * parts) + target.launch + traffic;
      if (both < least) [best, least] = [{ parts, along }, both];
    }
  });
  return best;
}
