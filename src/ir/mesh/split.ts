// A split says which part of a value each process of a mesh has: for each axis of the value, the axes of the mesh that
// split it into equal parts. Processes that stand at the same coordinates along these have the same part.

import type { FixedShape } from '../shape.ts';
import type { Mesh } from './mesh.ts';

/** For each axis of a value the mesh axes that split it, the coarsest first; none: every process has the whole axis. */
export type Split = readonly (readonly string[])[];

/** Nothing is split. */
export function whole(rank: number): Split {
  return Array.from({ length: rank }, () => []);
}

export function isWhole(split: Split): boolean {
  return split.every((axes) => axes.length === 0);
}

export function sameSplit(a: Split, b: Split): boolean {
  return a.length === b.length && a.every((axes, i) => axes.join() === b[i]!.join());
}

/** `data,model|` for two axes of which the second is whole; equal for equal splits. */
export function splitKey(split: Split): string {
  return split.map((axes) => axes.join()).join('|');
}

/** The split that `splitKey` wrote, of a value of this rank. */
export function splitOfKey(key: string, rank: number): Split {
  if (rank === 0) return [];
  return key.split('|').map((axes) => (axes === '' ? [] : axes.split(',')));
}

/** As users write it: `[data, null]`, `[[data, model], null]`. */
export function showSplit(split: Split): string {
  const axes = split.map((names) =>
    names.length === 0 ? 'null' : names.length === 1 ? names[0]! : `[${names.join(', ')}]`,
  );
  return `[${axes.join(', ')}]`;
}

/** How many processes stand along a mesh axis. */
export function axisSize(mesh: Mesh, name: string): number {
  return mesh.axes.find((axis) => axis.name === name)!.size;
}

/** Into how many parts these mesh axes split an axis. */
export function partsOf(mesh: Mesh, axes: readonly string[]): number {
  return axes.reduce((product, name) => product * axisSize(mesh, name), 1);
}

/** The shape of one part. The sizes are divisible: `splitProblem` says so. */
export function localShape(mesh: Mesh, shape: FixedShape, split: Split): number[] {
  return shape.map((size, axis) => size / partsOf(mesh, split[axis]!));
}

/** The shape of the value whose parts have this one. */
export function wholeShape(mesh: Mesh, part: FixedShape, split: Split): number[] {
  return part.map((size, axis) => size * partsOf(mesh, split[axis]!));
}

/** Why a value of this shape cannot be split so, in words; undefined where it can. */
export function splitProblem(mesh: Mesh, shape: FixedShape, split: Split): string | undefined {
  if (split.length !== shape.length)
    return `${split.length} axes are named, and the tensor has ${shape.length}`;
  const used = new Set<string>();
  for (const [axis, names] of split.entries()) {
    for (const name of names) {
      if (!mesh.axes.some((one) => one.name === name)) return `the mesh ${mesh.text} has no axis ${name}`;
      if (used.has(name)) return `the mesh axis ${name} splits two axes`;
      used.add(name);
    }
    const parts = partsOf(mesh, names);
    if (shape[axis]! % parts !== 0)
      return `axis ${axis} has ${shape[axis]} elements, which are not ${parts} equal parts (${names.join(', ')})`;
  }
  return undefined;
}
