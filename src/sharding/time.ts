// Modelled time, by which ways to split an op are compared. What counts is how the figures stand to each other, and that all
// processes use the same, so that they come to the same program: ten operations in the time of a byte to another process are
// what a processor's cores do; a GPU does more, but values that all of them compute take memory on all of them.

import { dims, type Node } from '../ir/graph.ts';
import { facts, isView, type Attrs } from '../ir/ops.ts';
import { dtypeBytes } from '../ir/dtype.ts';
import { sizeOf } from '../ir/shape.ts';
import type { PlannedMove } from './reshard.ts';

/** Operations a second. */
const arithmetic = 1e12;
/** Bytes a second from and to memory. */
const memory = 2e12;
/** Bytes a second to another process. */
const link = 1e11;
/** Seconds until the first byte is there. */
const latency = 5e-6;

/** Seconds that moves take, one after the other. */
export function timeOfMoves(moves: readonly PlannedMove[]): number {
  return moves.reduce(
    (sum, { move, bytes }) => sum + (move.kind === 'slice' ? 0 : latency + bytes / link),
    0,
  );
}

/** Seconds that one process takes for all of an op. */
export function timeOfNode(node: Node): number {
  if (isView(node.op) || facts(node.op).class === 'marker') return 0;
  const bytes = [node, ...node.inputs].reduce(
    (sum, value) => sum + sizeOf(dims(value)) * dtypeBytes(value.dtype),
    0,
  );
  return Math.max(flopsOf(node) / arithmetic, bytes / memory);
}

function flopsOf(node: Node): number {
  const results = sizeOf(dims(node));
  const [first] = node.inputs;
  switch (node.op) {
    case 'dot': {
      const { lhsContract } = node.attrs as Attrs<'dot'>;
      return 2 * results * lhsContract.reduce((product, axis) => product * dims(first!)[axis]!, 1);
    }
    case 'conv':
      return 2 * results * (sizeOf(dims(node.inputs[1]!)) / Math.max(1, dims(node.inputs[1]!)[0]!));
    case 'reduce':
    case 'argReduce':
      return sizeOf(dims(first!));
    default:
      return results * facts(node.op).flops;
  }
}
