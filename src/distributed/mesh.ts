// Meshes as users make them: the processes of a world as a grid with named axes.

import { showValue, TensorError } from '../errors.ts';
import { meshOf, type Mesh } from '../ir/mesh/mesh.ts';
import { splitProblem, showSplit, type Split } from '../ir/mesh/split.ts';

/**
 * How a tensor is split: for each of its axes the mesh axis that splits it, a list of them (the first splits coarsest), or null where
 * every process has the whole axis.
 */
export type Spec = readonly (string | readonly string[] | null)[];

/**
 * The mesh of these axes: `mesh({ data: 2, model: 4 })` is eight processes, of which rank 5 stands at data 1, model 1. Throws E_VALUE
 * where a name is no word or a size is not a whole number from 1.
 */
export function mesh(axes: Readonly<Record<string, number>>): Mesh {
  const given: unknown = axes;
  if (typeof given !== 'object' || given === null || Array.isArray(given) || Object.keys(given).length === 0)
    throw new TensorError(
      'E_VALUE',
      'mesh',
      `expects axes with sizes, got ${showValue(given)}`,
      'mesh({ data: 2 })',
    );
  for (const [name, size] of Object.entries(axes)) {
    if (!/^[A-Za-z_]\w*$/.test(name))
      throw new TensorError(
        'E_VALUE',
        'mesh',
        `${showValue(name)} is no name of an axis`,
        'letters, digits and _',
      );
    if (!Number.isInteger(size) || size < 1)
      throw new TensorError(
        'E_VALUE',
        'mesh',
        `the axis ${name} has ${showValue(size)} processes`,
        'a whole number from 1',
      );
  }
  return meshOf(Object.entries(axes).map(([name, size]) => ({ name, size })));
}

/** The names in a spec, of a tensor of any shape. Throws E_VALUE where it is none. */
export function namesOf(op: string, grid: Mesh, spec: Spec): Split {
  if (!Array.isArray(spec) || !spec.every(isEntry)) {
    const problem = `expects for each axis a mesh axis, a list of them, or null, got ${showValue(spec)}`;
    throw new TensorError('E_VALUE', op, problem, `shard(x, mesh, ['${grid.axes[0]!.name}', null])`);
  }
  return spec.map((entry: Spec[number]): readonly string[] =>
    entry === null ? [] : typeof entry === 'string' ? [entry] : entry,
  );
}

/** A spec as a split of a tensor of this shape. Throws E_VALUE or E_SHAPE where it is none. */
export function splitOf(op: string, grid: Mesh, shape: readonly number[], spec: Spec): Split {
  const split = namesOf(op, grid, spec);
  const problem = splitProblem(grid, shape, split);
  if (problem === undefined) return split;
  const what = `a tensor of shape [${shape.join(', ')}] cannot be split ${showSplit(split)}: ${problem}`;
  throw new TensorError('E_SHAPE', op, what, 'axes whose sizes the processes divide');
}

function isEntry(value: unknown): boolean {
  if (value === null || typeof value === 'string') return true;
  return Array.isArray(value) && value.every((name) => typeof name === 'string');
}

/** A split as users write it. */
export function specOf(split: Split): Spec {
  return split.map((names) => (names.length === 0 ? null : names.length === 1 ? names[0]! : names));
}
