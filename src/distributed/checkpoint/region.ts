// Boxes of a tensor, as ranks hold them and files store them: which ranks hold which, whether they make up the whole, and which bytes of one
// are those of another.

import { axisSize, localShape, type Split } from '../../ir/mesh/split.ts';
import { coordinatesOf, type Mesh } from '../../ir/mesh/mesh.ts';
import { sizeOf } from '../../ir/shape.ts';

/** A box of a tensor: its first index and its sizes, for each axis. */
export interface TensorRegion {
  readonly offset: readonly number[];
  readonly shape: readonly number[];
}

export function wholeRegion(shape: readonly number[]): TensorRegion {
  return { offset: shape.map(() => 0), shape };
}

/** What a rank holds of a tensor of this shape. */
export function regionOf(mesh: Mesh, split: Split, shape: readonly number[], rank: number): TensorRegion {
  const at = coordinatesOf(mesh, rank);
  const sizes = localShape(mesh, shape, split);
  const offset = sizes.map(
    (size, axis) =>
      size * split[axis]!.reduce((place, name) => place * axisSize(mesh, name) + at.get(name)!, 0),
  );
  return { offset, shape: sizes };
}

/** What all ranks hold of a tensor, each region once, with the first rank that holds it. */
export function regionsOf(
  mesh: Mesh,
  split: Split,
  shape: readonly number[],
): readonly (TensorRegion & { readonly rank: number })[] {
  const found = new Map<string, TensorRegion & { readonly rank: number }>();
  for (let rank = 0; rank < mesh.size; rank++) {
    // By coordinates, since regions without elements may begin at the same index.
    const at = coordinatesOf(mesh, rank);
    const key = split.flat().map((name) => at.get(name));
    if (!found.has(key.join())) found.set(key.join(), { ...regionOf(mesh, split, shape, rank), rank });
  }
  return [...found.values()];
}

/** What two regions share; undefined where that is no element. */
export function sharedBy(a: TensorRegion, b: TensorRegion): TensorRegion | undefined {
  const offset = a.offset.map((start, axis) => Math.max(start, b.offset[axis]!));
  const shape = offset.map(
    (start, axis) => Math.min(a.offset[axis]! + a.shape[axis]!, b.offset[axis]! + b.shape[axis]!) - start,
  );
  return shape.every((size) => size > 0) ? { offset, shape } : undefined;
}

/** `[4:8, 0:2]`. */
export function showRegion({ offset, shape }: TensorRegion): string {
  return `[${offset.map((start, axis) => `${start}:${start + shape[axis]!}`).join(', ')}]`;
}

/** Why these are not the pieces of a tensor of this shape, each element in one of them; undefined where they are. */
export function piecesProblem(shape: readonly number[], pieces: readonly TensorRegion[]): string | undefined {
  for (const piece of pieces) {
    const { offset, shape: sizes } = piece;
    const isInside =
      offset.length === shape.length &&
      sizes.length === shape.length &&
      shape.every((size, axis) => offset[axis]! + sizes[axis]! <= size);
    if (!isInside) return `the piece ${showRegion(piece)} is not inside [${shape.join(', ')}]`;
  }
  for (const [i, piece] of pieces.entries())
    for (const other of pieces.slice(0, i))
      if (sharedBy(piece, other) !== undefined)
        return `the pieces ${showRegion(other)} and ${showRegion(piece)} overlap`;
  const there = pieces.reduce((sum, piece) => sum + sizeOf(piece.shape), 0);
  const all = sizeOf(shape);
  return there === all ? undefined : `its pieces have ${there} of ${all} elements: some are missing`;
}

/** Elements that lie one behind the other both in one region and in another, in C-order. */
export interface ElementRun {
  /** The place of the first element in the region that is read. */
  readonly from: number;
  /** Its place in the region that is wanted. */
  readonly to: number;
  readonly count: number;
}

/** What of `wanted` lies in `piece`, by falling length of what lies together. */
export function* runsOf(piece: TensorRegion, wanted: TensorRegion): Generator<ElementRun, void, undefined> {
  const shared = sharedBy(piece, wanted);
  if (shared === undefined) return;
  const { offset, shape } = shared;
  // Axes from `inner` on are one run: all but the first of them are whole in both regions.
  let inner = shape.length;
  let count = 1;
  while (inner > 0) {
    inner -= 1;
    count *= shape[inner]!;
    if (shape[inner] !== piece.shape[inner] || shape[inner] !== wanted.shape[inner]) break;
  }
  const index = shape.slice(0, inner).fill(0);
  const placeIn = (region: TensorRegion): number =>
    region.shape.reduce(
      (place, size, axis) => place * size + offset[axis]! - region.offset[axis]! + (index[axis] ?? 0),
      0,
    );
  for (;;) {
    yield { from: placeIn(piece), to: placeIn(wanted), count };
    let axis = inner - 1;
    while (axis >= 0 && ++index[axis]! === shape[axis]) index[axis--] = 0;
    if (axis < 0) return;
  }
}
