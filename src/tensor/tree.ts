// Trees: nested arrays and plain objects with tensors (and numbers, strings, …) at the leaves, as parameters and batches are
// kept. A tree is flattened to its leaves and a structure that puts leaves back in place.

import { TensorError } from '../errors.ts';
import { Tensor } from './tensor.ts';

/** A leaf, or arrays and plain objects of trees. */
export type Tree<T> = T | readonly Tree<T>[] | { readonly [key: string]: Tree<T> };

/** The shape of a tree: what is left when the leaves are taken out. */
export type Structure =
  | { readonly kind: 'leaf' }
  | { readonly kind: 'array'; readonly items: readonly Structure[] }
  | { readonly kind: 'object'; readonly keys: readonly string[]; readonly items: readonly Structure[] };

export interface Flat {
  /** Everything that is no array and no plain object, in order. */
  readonly leaves: readonly unknown[];
  /** Where each leaf was, e.g. `[0].layers.w`. */
  readonly paths: readonly string[];
  readonly structure: Structure;
}

const leaf: Structure = { kind: 'leaf' };

/** The leaves of a tree and its structure. Throws E_VALUE at objects that are no plain data, such as class instances. */
export function flatten(tree: unknown, op: string = 'tree'): Flat {
  const leaves: unknown[] = [];
  const paths: string[] = [];
  const walk = (value: unknown, path: string): Structure => {
    if (Array.isArray(value)) {
      return { kind: 'array', items: value.map((item, i) => walk(item, `${path}[${i}]`)) };
    }
    if (typeof value === 'object' && value !== null && !(value instanceof Tensor)) {
      const prototype: unknown = Object.getPrototypeOf(value);
      if (prototype !== Object.prototype && prototype !== null) {
        throw new TensorError(
          'E_VALUE',
          op,
          `expects tensors in arrays and plain objects, got ${value.constructor.name}${path === '' ? '' : ` at ${path}`}`,
        );
      }
      const entries = Object.entries(value);
      return {
        kind: 'object',
        keys: entries.map(([key]) => key),
        items: entries.map(([key, item]) => walk(item, `${path}.${key}`)),
      };
    }
    leaves.push(value);
    paths.push(path);
    return leaf;
  };
  const structure = walk(tree, '');
  return { leaves, paths, structure };
}

/** The tree of this structure with these leaves. */
export function unflatten(structure: Structure, leaves: readonly unknown[]): unknown {
  let next = 0;
  const build = (at: Structure): unknown => {
    switch (at.kind) {
      case 'leaf':
        return leaves[next++];
      case 'array':
        return at.items.map(build);
      case 'object':
        return Object.fromEntries(at.keys.map((key, i) => [key, build(at.items[i]!)]));
      default:
        return at satisfies never;
    }
  };
  return build(structure);
}

/** A structure as text, e.g. `{w:*,b:*}`: equal texts are equal structures. */
export function showStructure(structure: Structure): string {
  switch (structure.kind) {
    case 'leaf':
      return '*';
    case 'array':
      return `[${structure.items.map(showStructure).join(',')}]`;
    case 'object':
      return `{${structure.items.map((item, i) => `${structure.keys[i]}:${showStructure(item)}`).join(',')}}`;
    default:
      return structure satisfies never;
  }
}

/** The tensors of a tree, in order. */
export function treeLeaves(tree: unknown): Tensor[] {
  return flatten(tree).leaves.filter((value) => value instanceof Tensor);
}

/**
 * The tree with every tensor replaced by `fn` of it and of the leaves at the same place in the other trees; what is no
 * tensor stays. Throws E_VALUE when another tree has a different structure.
 */
export function treeMap<T>(
  fn: (tensor: Tensor, ...rest: Tensor[]) => unknown,
  tree: T,
  ...rest: readonly unknown[]
): T {
  const first = flatten(tree, 'treeMap');
  const others = rest.map((other, i) => {
    const flat = flatten(other, 'treeMap');
    checkSameStructure('treeMap', 'the first tree', first, `tree ${i + 2}`, flat);
    return flat.leaves;
  });
  const mapped = first.leaves.map((value, i) =>
    value instanceof Tensor ? fn(value, ...others.map((leaves) => leaves[i] as Tensor)) : value,
  );
  return unflatten(first.structure, mapped) as T;
}

/** Throws E_VALUE, naming the first place where they differ, unless two trees have one structure. */
export function checkSameStructure(op: string, aName: string, a: Flat, bName: string, b: Flat): void {
  const [aText, bText] = [showStructure(a.structure), showStructure(b.structure)];
  if (aText === bText) return;
  const at = a.paths.findIndex((path, i) => path !== b.paths[i]);
  const where =
    at < 0
      ? `${bName} has ${b.paths[a.paths.length]} besides`
      : `${aName} has ${a.paths[at] || 'a leaf'} where ${bName} has ${b.paths[at] ?? 'nothing'}`;
  throw new TensorError('E_VALUE', op, `the trees differ in structure: ${where}: ${aText} and ${bText}`);
}
