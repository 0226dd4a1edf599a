// What a process has of a tensor that several processes hold together.

import type { Mesh } from '../ir/mesh/mesh.ts';
import { isWhole, localShape, showSplit, splitKey, type Split } from '../ir/mesh/split.ts';
import type { FixedShape } from '../ir/shape.ts';

/** This process's part of a tensor: which mesh it is split over, and how. */
export class ShardPart {
  readonly mesh: Mesh;
  readonly split: Split;

  constructor(mesh: Mesh, split: Split) {
    this.mesh = mesh;
    this.split = split;
  }

  /** The shape of the part of a tensor of this shape. */
  shapeOf(shape: FixedShape): FixedShape {
    return localShape(this.mesh, shape, this.split);
  }

  /** `[data, null] of data=2`. */
  toString(): string {
    return `${showSplit(this.split)} of ${this.mesh.text}`;
  }
}

/** The part that a split gives; undefined where every process has the whole. */
export function partIn(mesh: Mesh, split: Split): ShardPart | undefined {
  return isWhole(split) ? undefined : new ShardPart(mesh, split);
}

/** Equal for equal parts. */
export function partKey(part: ShardPart | undefined): string {
  return part === undefined ? '' : `${part.mesh.text};${splitKey(part.split)}`;
}
