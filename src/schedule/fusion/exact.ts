// Which values are the same bits in every kernel that computes them. Compilers may contract or
// reorder float arithmetic, differently in each kernel; integer arithmetic, comparisons and moves
// of bits have one result.

import { isFloat } from '../../ir/dtype.ts';
import type { Node } from '../../ir/graph.ts';
import { isElementwise, type Op } from '../../ir/ops.ts';

const exactFloatOps: ReadonlySet<Op> = new Set<Op>([
  ...(['neg', 'abs', 'sign', 'floor', 'ceil', 'round', 'trunc', 'min', 'max'] as const),
  ...(['where', 'cast', 'bitcast'] as const),
]);

/** Whether every kernel gives the node the same bits, given the same inputs. */
export function isExact(node: Node): boolean {
  return !isElementwise(node.op) || !isFloat(node.dtype) || exactFloatOps.has(node.op);
}
