// Checks that indices fit 32 bits. Loop counters and indices are i32 on every target, so axes and all
// intermediate values of an index must be below 2^31. Stored tensors always are. A tensor that is never
// stored (a broadcast, a long `arange`) may be longer, and most programs with such a tensor never iterate
// along it. A program that does is rejected here, where the error can still name the operation.

import { SinterError } from '../../errors.ts';
import { integerRange, isFloat } from '../../ir/dtype.ts';
import { dims, type Node } from '../../ir/graph.ts';
import { largestIndex, type IndexExpr } from '../../ir/index-algebra/expr.ts';
import { showShape, sizeOf } from '../../ir/shape.ts';
import { indicesOf, type Expr } from '../expression/expr.ts';
import type { Axis, Kernel } from '../kernel.ts';
import { checkElements } from '../sizes.ts';
import type { Target } from '../target.ts';

/** Throws E_LIMIT where a kernel would count beyond 32 bits. */
export function checkReach(kernel: Kernel, axes: readonly Axis[], target: Target): void {
  const isFar =
    axes.some(({ extent }) => extent > largestIndex) ||
    kernel.writes.some(({ index }) => !index.fits) ||
    kernel.pool.some((expr) => indicesOf(expr).some((index) => !index.fits && !isKnown(expr, index)));
  if (!isFar) return;
  checkElements([...kernel.reads, ...kernel.writes.map(({ node }) => node)], target.name);
  const count = (node: Node): number =>
    Math.max(sizeOf(dims(node)), ...node.inputs.map((input) => sizeOf(dims(input))));
  const largest = kernel.nodes.reduce((a, b) => (count(b) > count(a) ? b : a));
  const [type] = [largest, ...largest.inputs].toSorted((a, b) => sizeOf(dims(b)) - sizeOf(dims(a)));
  throw new SinterError(
    'E_LIMIT',
    `${largest.op}: a kernel would count to ${count(largest)} along ${showShape(type!.shape, type!.dtype)}, which does not fit 32 bits` +
      '\n  try: shorter axes: slice or reduce in parts before reshaping to more than 2147483647 elements',
  );
}

/** A number that the expression's type holds, though it is no index that a kernel could compute. */
function isKnown(expr: Expr, index: IndexExpr): boolean {
  if (expr.kind !== 'index' || index.kind !== 'const') return false;
  return isFloat(expr.dtype) || integerRange(expr.dtype)[1] >= index.value;
}
