// Whether constant folding has something to do, without the meaning of any operation.

import type { Node } from '../graph.ts';
import { isElementwise } from '../ops.ts';
import { constantOf, scalarOf } from './pattern.ts';

/**
 * Whether a rule of `foldConstants` may apply to the node. Rules change inputs before their users, so where none of a graph's
 * nodes is foldable, folding changes nothing of it.
 */
export function isFoldable(node: Node): boolean {
  const isKnown = (input: Node | undefined): boolean =>
    input !== undefined && constantOf(input) !== undefined;
  switch (node.op) {
    case 'where':
      return isKnown(node.inputs[0]);
    case 'reduce':
      return node.inputs[0]!.shape.includes(0) || isKnown(node.inputs[0]);
    case 'dot':
      return node.inputs[0]!.shape.includes(0);
    case 'argReduce':
      return scalarOf(node.inputs[0]!) !== undefined;
    case 'scan':
      return isKnown(node.inputs[0]);
    case 'iota':
      return node.shape[node.attrs.axis] === 1;
    default:
      return isElementwise(node.op) && node.shape.length === 0 && node.inputs.every(isKnown);
  }
}
