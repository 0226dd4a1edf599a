// Pseudo-inverses as nodes.

import type { CustomRule } from '../../../autograd/custom.ts';
import { add, binary, broadcast, div, full, fullLike, neg, sub, unary, where } from '../../../ir/build.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import * as formula from '../../formula/elementwise.ts';
import { eighNodes, svdNodes } from './rules.ts';
import { adjoint } from '../../../ir/matrix.ts';
import { product, timesColumns } from './stack.ts';

/** Which is the largest value that counts as zero, [count, 1], of sizes [count, k]. @internal */
export type ThresholdOf = (sizes: Node) => Node;

/** The pseudo-inverse of a stack, by the singular values above a threshold, with its derivative. @internal */
export function pseudoInverted(b: GraphBuilder, a: Node, hermitian: boolean, threshold: ThresholdOf): Node {
  const { left, numbers, right } = partsOf(b, a, hermitian);
  const sizes = unary(b, 'abs', numbers);
  const counts = binary(b, 'lt', broadcast(b, threshold(sizes), dims(sizes)), sizes);
  const inverse = div(b, fullLike(b, numbers, 1), where(b, counts, numbers, fullLike(b, numbers, 1)));
  const scaled = timesColumns(b, right, where(b, counts, inverse, fullLike(b, inverse, 0)));
  const found = formula.stopGradient(b, product(b, scaled, adjoint(b, left)));
  return formula.withRule(b, found, [a], pinvRule);
}

/** The inverse of square matrices, or what comes nearest to one. @internal */
export function inverted(b: GraphBuilder, a: Node): Node {
  return pseudoInverted(b, a, false, (sizes) => full(b, [dims(sizes)[0]!, 1], 0, sizes.dtype));
}

/** A = left·diag(numbers)·rightᴴ. */
function partsOf(b: GraphBuilder, a: Node, hermitian: boolean): { left: Node; numbers: Node; right: Node } {
  if (hermitian) {
    const { w, v } = eighNodes(b, a, 'L');
    return { left: v, numbers: w, right: v };
  }
  const { u, s, vh } = svdNodes(b, a, false);
  return { left: u, numbers: s, right: adjoint(b, vh) };
}

/**
 * dA⁺ = −A⁺·dA·A⁺ + A⁺·A⁺ᴴ·dAᴴ·(1 − A·A⁺) + (1 − A⁺·A)·dAᴴ·A⁺ᴴ·A⁺ (G. Golub and V. Pereyra,
 * 1973): where the rank stays the same, whatever singular values are equal.
 */
const pinvRule: CustomRule = (b, [a], inverse, g) => {
  const [inverseH, gh] = [adjoint(b, inverse), adjoint(b, g)];
  const straight = neg(b, product(b, inverseH, g, inverseH));
  const left = product(b, sub(b, gh, product(b, a!, inverse, gh)), inverse, inverseH);
  const right = product(b, inverseH, inverse, sub(b, gh, product(b, gh, inverse, a!)));
  return [add(b, straight, add(b, left, right))];
};
