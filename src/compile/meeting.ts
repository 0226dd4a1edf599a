// Collectives of host arrays: what the interpreter does where a graph has any, over the ranks that a device has joined.

import type { Meet } from '../ir/interpret/interpret.ts';
import { dtypeBytes } from '../ir/dtype.ts';
import { dims, type Node } from '../ir/graph.ts';
import { sizeOf } from '../ir/shape.ts';
import { hostArray, packBytes, unpackBytes } from '../ir/value.ts';
import type { Ranks } from '../runtime/communicator.ts';
import { groupsOf, meetingOf } from '../schedule/collective.ts';

/** The meeting of a process whose device has these ranks beside it. */
export function meetOn(ranks: Ranks): Meet {
  return (node, inputs) => {
    if (node.op === 'rankIndex') return hostArray('i32', [], [ranks.place(groupsOf(node.attrs))]);
    const to = new Uint8Array(sizeOf(dims(node as Node)) * dtypeBytes(node.dtype));
    ranks.run(meetingOf(node), packBytes(inputs[0]!), to);
    return unpackBytes(to, node.dtype, dims(node as Node));
  };
}
