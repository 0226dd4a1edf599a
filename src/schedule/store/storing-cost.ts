// The modelled times of computing a free node wherever it is read, and of storing it once and
// reading it back.

import { dims, nodeBytes, type Node } from '../../ir/graph.ts';
import { facts } from '../../ir/ops.ts';
import { sizeOf } from '../../ir/shape.ts';
import { isOfBlocks } from '../fusion/inline.ts';
import { masks } from '../body/masks.ts';
import type { Target } from '../target.ts';
import type { Uses } from './uses.ts';

/** µs to compute a free node wherever it is read, and to store and read it. */
export function storingCost(
  node: Node,
  place: { readonly closure: ReadonlySet<Node>; readonly reads: ReadonlySet<Node> },
  uses: Uses,
  target: Target,
): { readonly inline: number; readonly store: number } {
  // A view costs no arithmetic, nor does a barrier: it can only be worthwhile to store the value it views.
  const kind = facts(node.op).class;
  if (uses.size === 0 || kind === 'source' || kind === 'view' || kind === 'marker')
    return { inline: 0, store: 0 };
  // Nobody wants the values of blocks in memory, which are many times as long as the blocks.
  if (isOfBlocks(node)) return { inline: 0, store: 0 };
  // Readers that see the mask end their loops at it: the value that it cuts off may be stored.
  if (masks.filled?.isCutOff(node) === true) return { inline: 0, store: 0 };
  const size = sizeOf(dims(node));
  let work = 0;
  for (const inner of place.closure) if (sizeOf(dims(inner)) > 1) work += facts(inner.op).flops;
  let reads = 0;
  for (const read of place.reads) reads += nodeBytes(read);
  const bytes = nodeBytes(node);
  let inline = 0;
  for (const points of uses.values())
    inline += reads / target.bandwidth + (points * work) / target.arithmetic;
  const once = reads / target.bandwidth + (size * work) / target.arithmetic;
  return { inline, store: once + ((1 + uses.size) * bytes) / target.bandwidth + target.launch };
}
