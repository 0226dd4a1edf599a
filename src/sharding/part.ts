// What a process has of a tensor that several processes hold together.

import type { Mesh } from '../ir/mesh/mesh.ts';
import { isWhole, localShape, splitKey, type Split } from '../ir/mesh/split.ts';
import type { FixedShape } from '../ir/shape.ts';

/** This process's part of a tensor: which mesh it is split over, and how. */
export interface ShardPart {
  readonly mesh: Mesh;
  readonly split: Split;
}

/** The shape of the part of a tensor. */
export function partShape(shape: FixedShape, part: ShardPart | undefined): FixedShape {
  return part === undefined ? shape : localShape(part.mesh, shape, part.split);
}

/** The part that a split gives; undefined where every process has the whole. */
export function partIn(mesh: Mesh, split: Split): ShardPart | undefined {
  return isWhole(split) ? undefined : { mesh, split };
}

/** Equal for equal parts. */
export function partKey(part: ShardPart | undefined): string {
  return part === undefined ? '' : `${part.mesh.text};${splitKey(part.split)}`;
}
