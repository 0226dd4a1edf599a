// Names of the inputs and outputs of a bundle's entries: those of the function's own parameters and
// results, where it has any.

import { parameterNames } from '../tensor/tracing.ts';
import type { Flat, TreeStructure } from '../tensor/tree.ts';

/** Where a leaf lies in a tree: positions in arrays and keys of objects, from the outside in. */
export type TreePath = readonly (number | string)[];

/** Where the leaves of a tree lie, in order. */
export function placesOf(structure: TreeStructure, place: TreePath = []): TreePath[] {
  switch (structure.kind) {
    case 'leaf':
      return [place];
    case 'array':
      return structure.items.flatMap((item, i) => placesOf(item, [...place, i]));
    case 'object':
      return structure.items.flatMap((item, i) => placesOf(item, [...place, structure.keys[i]!]));
    case 'setting':
    case 'shared':
      return [];
    default:
      return structure satisfies never;
  }
}

/**
 * A place as it is read, e.g. `.layers[0].w`. Keys are not escaped, so two places may have equal
 * texts: callers that need unique names check that.
 */
function textOf(place: TreePath): string {
  return place.map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('');
}

/**
 * The name of a result by its place: `loss` of `{ loss }`, `output1` of the second in an array,
 * `output` of a result alone.
 */
export function outputName(place: TreePath): string {
  const [first, ...rest] = place;
  if (first === undefined) return 'output';
  return `${typeof first === 'number' ? `output${first}` : first}${textOf(rest)}`;
}

/**
 * Names of the leaves of arguments: the function's own names for them, and where they lie in them.
 */
export function argumentNames(
  fn: (...args: never[]) => unknown,
  { structure }: Flat,
  hasState: boolean,
): string[] {
  const parameters = parameterNames(fn);
  return placesOf(structure).map(([index, ...rest]) => {
    const argument = Number(index);
    const own = parameters[argument];
    // Only the parts of a destructured argument have names.
    if (own === undefined && typeof rest[0] === 'string') return `${rest[0]}${textOf(rest.slice(1))}`;
    const given = argument - (hasState ? 1 : 0);
    return `${own ?? (given === 0 ? 'input' : `input${given}`)}${textOf(rest)}`;
  });
}

/** The first name that occurs twice. */
export function twin(names: readonly string[]): string | undefined {
  const seen = new Set<string>();
  return names.find((name) => seen.size === seen.add(name).size);
}

/** The wished name, or a similar one that is not taken; adds it to `taken`. */
export function uniqueName(wished: string, taken: Set<string>): string {
  let name = wished;
  for (let i = 1; taken.has(name); i++) name = `${wished}_${i}`;
  taken.add(name);
  return name;
}
