// Sizes that vary without being declared. From the arguments of a few calls this file finds which axes have
// the same size, and the range to expect.

import { flag, takes } from '../../ir/arguments.ts';
import type { Face } from '../trace/argument.ts';
import { currentSession } from '../session.ts';
import { sameStructure, type Flat } from '../tree.ts';
import { Declared, Dim, type DimPattern } from './dim.ts';

const takesAutoDims = takes<typeof setAutoDims>(['the argument', flag]);

/**
 * Whether a compiled function that has been called with three sizes of an argument serves further
 * ones by programs for many sizes, as if they had been declared with `dims`. On by default; where that
 * cannot be done, each size is compiled for itself as ever.
 */
export function setAutoDims(wanted: boolean): void {
  takesAutoDims('setAutoDims', wanted);
  currentSession().autoDims = wanted;
}

export function autoDims(): boolean {
  return currentSession().autoDims;
}

/** So many sizes of an argument are compiled for themselves. */
export const mostSizes = 3;

/**
 * The dims of arguments that differ in sizes from others: `now` and at least three of `before` have
 * to be alike but for them. Undefined where they are not.
 */
export function varyingOf(
  name: string,
  { paths }: Flat,
  now: Face,
  before: readonly Face[],
  nameOf: (leaf: number) => string,
): Declared | undefined {
  const alike = [now, ...before.filter((face) => isAlike(now, face))];
  if (alike.length <= mostSizes) return undefined;
  const dims = new Map<string, Dim>();
  const patterns = new Map<string, DimPattern>();
  now.leaves.forEach((leaf, i) => {
    if (leaf.kind !== 'tensor') return;
    const pattern = leaf.shape.map((_, axis) => {
      const sizes = alike.map((face) => sizeAt(face, i, axis));
      if (sizes.every((size) => size === sizes[0])) return null;
      const key = sizes.join();
      const known = dims.get(key);
      if (known !== undefined) return known;
      const made = new Dim(
        `axis ${axis} of ${nameOf(i)}`,
        1,
        2 ** Math.ceil(Math.log2(Math.max(16, ...sizes))),
        1,
      );
      dims.set(key, made);
      return made;
    });
    if (pattern.some((item) => item !== null)) patterns.set(paths[i]!, pattern);
  });
  // Where a size took fewer values than calls differ in, something else varies.
  return dims.size === 0 ? undefined : new Declared(name, patterns);
}

function sizeAt(face: Face, leaf: number, axis: number): number {
  const { shape } = face.leaves[leaf] as Extract<Face['leaves'][number], { readonly kind: 'tensor' }>;
  return shape[axis]!;
}

/** Whether arguments differ in sizes alone. What is empty along an axis has often a structure of its own. */
function isAlike(a: Face, b: Face): boolean {
  return (
    a.leaves.length === b.leaves.length &&
    sameStructure(a.structure, b.structure) &&
    a.leaves.every((leaf, i) => {
      const other = b.leaves[i]!;
      if (leaf.kind !== other.kind) return false;
      if (leaf.kind === 'tensor' && other.kind === 'tensor')
        return (
          leaf.dtype === other.dtype &&
          leaf.weak === other.weak &&
          leaf.shape.length === other.shape.length &&
          leaf.shape.every((size, axis) => (size === 0) === (other.shape[axis] === 0))
        );
      return leaf.kind !== 'static' || (other.kind === 'static' && Object.is(leaf.value, other.value));
    })
  );
}
