// Counts that do not depend on a machine: arithmetic and bytes of nodes.

import { dtypeBytes } from '../ir/dtype.ts';
import { dims, type Node } from '../ir/graph.ts';
import { facts } from '../ir/ops.ts';
import { sizeOf } from '../ir/shape.ts';

/** Bytes of a node's value in packed storage. */
export function nodeBytes(node: Node): number {
  return sizeOf(dims(node)) * dtypeBytes(node.dtype);
}

/** Arithmetic of one node. */
export function nodeFlops(node: Node): number {
  const size = sizeOf(dims(node));
  switch (node.op) {
    case 'dot': {
      const { lhsContract } = node.attrs;
      return 2 * size * sizeOf(lhsContract.map((axis) => dims(node.inputs[0]!)[axis]!));
    }
    case 'conv':
      return 2 * size * sizeOf(dims(node.inputs[1]!).slice(1));
    case 'reduce':
    case 'argReduce':
    case 'scatter':
      return facts(node.op).flops * sizeOf(dims(node.inputs[node.op === 'scatter' ? 2 : 0]!));
    default:
      return facts(node.op).flops * size;
  }
}
