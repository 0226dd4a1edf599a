// Operands of products that are packed from memory. If an operand is seen through windows, each element is
// packed once for each of its windows, so it pays to store it in the order of packing.

import { dims, type Node } from '../../ir/graph.ts';
import { isLaidTapsFirst } from '../flat-taps.ts';
import { packsOperands } from '../machine.ts';
import type { Target } from '../target.ts';

/** Whether neighbours in memory are no neighbours in the value: its last axis is another than what it views. */
function isTurned(node: Node): boolean {
  if (node.op === 'permute') return node.attrs.order.at(-1) !== dims(node).length - 1;
  return (node.op === 'pad' || node.op === 'slice') && isTurned(node.inputs[0]!);
}

/** Whether a value is the padded input of a convolution whose operands a device copies. */
function isCopiedByTaps(node: Node, users: readonly Node[]): boolean {
  return node.op === 'pad' && users.every(({ op, inputs }) => op === 'conv' && isLaidTapsFirst(inputs[1]!));
}

/**
 * Why a view is stored as it is laid out: for a product of windows, whose source it is, or the other operand;
 * or for a convolution whose operands a device copies, its weight tap by tap.
 */
export function laidOutFor(
  node: Node,
  users: readonly Node[],
  target: Target,
): 'windows' | 'taps' | undefined {
  if (users.length === 0) return undefined;
  if (target.warpgroups === true && (users.every(isLaidTapsFirst) || isCopiedByTaps(node, users)))
    return 'taps';
  if (!packsOperands(target) || !isTurned(node)) return undefined;
  const isForWindows = users.every(
    (user) => user.op === 'window' || (user.op === 'dot' && user.inputs.some(({ op }) => op === 'window')),
  );
  return isForWindows ? 'windows' : undefined;
}
