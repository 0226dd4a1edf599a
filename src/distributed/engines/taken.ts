// What a rank takes in a collective, from the blocks of all ranks of its group.

import type { CollectiveCall } from '../../runtime/communicator.ts';
import { combine } from '../combine.ts';

/** Writes to `to` what the rank at `place` takes; `blocks` are in the order of the group. */
export function takeFrom(
  { action, dtype }: CollectiveCall,
  place: number,
  blocks: readonly Uint8Array[],
  to: Uint8Array,
): void {
  const part = blocks[0]!.length / blocks.length;
  const partAt = (block: Uint8Array, at: number): Uint8Array => block.subarray(at * part, (at + 1) * part);
  const joined = (pieces: readonly Uint8Array[]): void => {
    let at = 0;
    for (const piece of pieces) {
      to.set(piece, at);
      at += piece.length;
    }
  };
  switch (action.kind) {
    case 'allReduce':
      return combine(action.monoid, dtype, blocks, to);
    case 'reduceScatter':
      return combine(
        action.monoid,
        dtype,
        blocks.map((block) => partAt(block, place)),
        to,
      );
    case 'allGather':
      return joined(blocks);
    case 'allToAll':
      return joined(blocks.map((block) => partAt(block, place)));
    case 'permute': {
      const source = action.pairs.find(([, other]) => other === place)?.[0];
      return source === undefined ? void to.fill(0) : to.set(blocks[source]!);
    }
    case 'broadcast':
      return to.set(blocks[action.root]!);
  }
}
