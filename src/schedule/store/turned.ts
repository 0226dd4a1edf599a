// Operands of products that are packed from memory. If an operand is seen through windows, each element is
// packed once for each of its windows, so it pays to store it in the order of packing.

import { dims, type Node } from '../../ir/graph.ts';
import { packsOperands } from '../machine.ts';
import type { Target } from '../target.ts';

/** Whether neighbours in memory are no neighbours in the value: its last axis is another than what it views. */
function isTurned(node: Node): boolean {
  if (node.op === 'permute') return node.attrs.order.at(-1) !== dims(node).length - 1;
  return (node.op === 'pad' || node.op === 'slice') && isTurned(node.inputs[0]!);
}

/** Whether a value is a view that is laid out for a product of windows: their source, or the other operand. */
export function isLaidOut(node: Node, users: readonly Node[], target: Target): boolean {
  if (!packsOperands(target) || users.length === 0 || !isTurned(node)) return false;
  return users.every(
    (user) => user.op === 'window' || (user.op === 'dot' && user.inputs.some(({ op }) => op === 'window')),
  );
}
