// Concatenations without a copy: the kernel of each part writes directly into the buffer of the
// whole.

import { dtypeBytes } from '../../ir/dtype.ts';
import { dims, type Node, type NodeOf } from '../../ir/graph.ts';
import { sizeOf } from '../../ir/shape.ts';
import {
  isThroughView,
  type FusionRootKind,
  type FusionGroup,
  type ConcatPiece,
  type ComputeLocation,
} from './place.ts';

/** Kernels whose results no reader computes again. */
const products: ReadonlySet<FusionRootKind> = new Set<FusionRootKind>(['dot', 'conv', 'attention', 'fft']);

interface Surroundings {
  readonly places: ReadonlyMap<Node, ComputeLocation>;
  readonly users: ReadonlyMap<Node, readonly Node[]>;
  readonly outputs: ReadonlySet<Node>;
}

/**
 * The parts of a concatenation with where each begins; undefined where some part has other readers,
 * or is cheap to compute again.
 */
export function piecesOf(node: NodeOf<'concat'>, around: Surroundings): readonly ConcatPiece[] | undefined {
  if (new Set(node.inputs).size !== node.inputs.length) return undefined;
  const pieces: ConcatPiece[] = [];
  let start = 0;
  for (const part of node.inputs) {
    const place = around.places.get(part)!;
    if (place.kind !== 'member' || !isOnlyReadBy(part, place.fusionGroup, around)) return undefined;
    // Elements smaller than a word share one with neighbours, which other kernels write.
    if (dtypeBytes(part.dtype) < 4 || !isExpensive(part, place.fusionGroup)) return undefined;
    pieces.push({ part, whole: node as Node, start, fusionGroup: place.fusionGroup });
    start += dims(part)[node.attrs.axis]!;
  }
  return pieces;
}

/** Whether at most one node outside the fusion group reads the value, directly or through views. */
function isOnlyReadBy(part: Node, fusionGroup: FusionGroup, { users, outputs }: Surroundings): boolean {
  for (let node = part; ; node = node.inputs[0]!) {
    const readers = users.get(node) ?? [];
    if (outputs.has(node) || readers.length !== 1) return false;
    if (!isThroughView(node)) return true;
    if (!fusionGroup.members.has(node.inputs[0]!)) return false;
  }
}

/**
 * Whether no reader computes the value again: it is a product, or the result of a row's reduction.
 */
function isExpensive(node: Node, { kind, axes }: FusionGroup): boolean {
  return products.has(kind) || (kind === 'row-reduction' && sizeOf(dims(node)) === axes['row']!.extent);
}
