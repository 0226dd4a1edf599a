// The leaves of a tree by name, as checkpoints know them: tensors, and what is plain data.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import type { FileLocation } from '../../platform.ts';
import { Tensor } from '../../tensor/tensor.ts';
import { flatten, type TreeStructure } from '../../tensor/tree.ts';

/** A tree, its leaves in order, and their names: `layers.0.up.weight` for what plans call `layers[0].up.weight`. */
export interface NamedLeaves {
  readonly structure: TreeStructure;
  readonly leaves: readonly { readonly name: string; readonly path: string; readonly leaf: unknown }[];
}

/** Throws E_VALUE where two leaves would have one name, or where the tree holds tensors that are no leaves of it. */
export function namedLeaves(op: string, tree: unknown): NamedLeaves {
  const { structure, leaves, paths } = flatten(tree, op);
  refuseHidden(op, structure);
  const seen = new Map<string, string>();
  const named = leaves.map((leaf, i) => {
    const path = paths[i]!.replace(/^\./, '');
    const name = nameOf(path);
    const other = seen.get(name);
    if (other !== undefined) {
      const problem = `both ${other} and ${path} would be called ${name}`;
      throw new TensorError('E_VALUE', op, problem, 'keys without dots, or other keys');
    }
    seen.set(name, path);
    return { name, path, leaf };
  });
  return { structure, leaves: named };
}

/** Steps of a path with dots between them. */
function nameOf(path: string): string {
  const dotted = path.replace(/\[("(?:[^"\\]|\\.)*"|\d+)\]/g, (_, step: string) =>
    step.startsWith('"') ? `.${JSON.parse(step) as string}` : `.${step}`,
  );
  const name = dotted.replace(/^\./, '');
  return name === '' ? 'value' : name;
}

/** What modules hold beside their parameters is no leaf: it would be lost. */
function refuseHidden(op: string, at: TreeStructure): void {
  if (at.kind === 'array' || at.kind === 'object') for (const item of at.items) refuseHidden(op, item);
  if (at.kind !== 'setting' || !holdsTensor(at.value)) return;
  const problem = 'a module of the tree has state beside its parameters, such as running means';
  throw new TensorError(
    'E_VALUE',
    op,
    problem,
    'stateDict(model) in its place, and loadStateDict(model, …) afterwards',
  );
}

function holdsTensor(value: unknown): boolean {
  if (value instanceof Tensor) return true;
  if (Array.isArray(value)) return value.some(holdsTensor);
  return arg.isPlainObject(value) && Object.values(value).some(holdsTensor);
}

/** A folder, as an argument. */
export const aFolder: arg.Kind<FileLocation> = arg.kind(
  'the path or the file: URL of a folder',
  (value) => (typeof value === 'string' && value !== '') || value instanceof URL,
);

/** Where a tensor is cut, the mesh has to be that of the ranks. */
export function checkMesh(op: string, name: string, meshSize: number | undefined, ranks: number): void {
  if (meshSize === undefined || meshSize === ranks) return;
  const problem = `${name} is split over ${meshSize} processes, and there are ${ranks}`;
  throw new TensorError('E_STATE', op, problem, `a mesh of ${ranks} processes`);
}
