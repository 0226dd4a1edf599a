// Which axes of a function's inputs have the sizes of ranges: what differs between inputs at two sizes.

import type { SizeRange } from '../../aot/points.ts';
import type { OpenPoint } from '../../aot/sizes.ts';
import { Dim, type DimPattern, type Dims, type DimTree } from '../../tensor/sizes/dim.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { flatten, step, unflatten } from '../../tensor/tree.ts';
import { UsageError } from '../command.ts';

/** A function with inputs at some sizes of its ranges, and the axes that have these. */
export interface OpenInputs {
  readonly fn: (...args: never[]) => unknown;
  readonly inputs: readonly unknown[];
  readonly dims: Dims;
}

/** Throws UsageError where an axis follows from a size and does not have it. */
export async function openInputs(point: OpenPoint, state: unknown): Promise<OpenInputs> {
  const given = [...(point.ranges ?? [])];
  const named = new Map(
    given.map(([name, { min, max, multipleOf }]) => [name, new Dim(name, min, max, multipleOf)] as const),
  );
  const fixed = point.sizes[0] ?? {};
  const base = { ...fixed, ...Object.fromEntries(given.map(([name, range]) => [name, sizeIn(range, 1)])) };
  const at = async (sizes: typeof base): Promise<{ fn: OpenInputs['fn']; inputs: readonly unknown[] }> => {
    const { fn, inputs } = await point.at(sizes);
    return { fn, inputs: state === undefined ? inputs : [state, ...inputs] };
  };
  const { fn, inputs } = await at(base);
  const flat = flatten(inputs, 'export');
  const shapes = flat.leaves.map((leaf) => (leaf instanceof Tensor ? leaf.shape : []));
  const patterns: (Dim | number)[][] = shapes.map((shape) => [...shape]);
  for (const [name, range] of given) {
    const size = sizeIn(range, 2);
    if (size === base[name]) continue;
    const others = flatten((await at({ ...base, [name]: size })).inputs, 'export').leaves;
    shapes.forEach((shape, leaf) => {
      const other = others[leaf];
      const theirs = other instanceof Tensor ? other.shape : [];
      shape.forEach((extent, axis) => {
        if (extent === theirs[axis]) return;
        if (extent !== base[name] || theirs[axis] !== size)
          throw new UsageError(
            `export: axis ${axis} of an input is ${extent} where ${name} is ${base[name]}, and ${theirs[axis]} where it is ${size}: expected the size itself\n` +
              `  try: a size of its own for this axis, or --dim ${name}=${range.max}`,
          );
        patterns[leaf]![axis] = named.get(name)!;
      });
    });
  }
  const open = patterns.map((pattern): DimPattern | undefined =>
    pattern.some((item) => item instanceof Dim) ? pattern : undefined,
  );
  // An argument of fixed sizes may be any tree: a state with its layers.
  const trees = unflatten(flat.structure, open) as readonly DimTree[];
  const dims = trees.map((tree, i) =>
    open.some((own, leaf) => own && flat.paths[leaf]!.startsWith(step(i))) ? tree : null,
  );
  return { fn, inputs, dims };
}

/** A size so many steps into a range, or its last. */
function sizeIn({ min, max, multipleOf }: SizeRange, steps: number): number {
  return Math.min(min + steps * multipleOf, max);
}
