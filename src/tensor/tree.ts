// Trees: nested arrays and plain objects with tensors (and numbers, strings, …) at the leaves, as parameters and batches are
// kept. A tree is flattened to its leaves and a structure that puts leaves back in place. Instances of
// subclasses of `TreeNode` are trees as well: their tensors are leaves, and what else they hold are settings, part of the structure.

import { TensorError } from '../errors.ts';
import { expectFunction } from './expect.ts';
import { Tensor } from './tensor.ts';

/** The base of classes whose instances are trees, as layers of a network are. */
export abstract class TreeNode {
  /** Names of properties to leave alone: state that is neither differentiated nor handed through. */
  buffers(): readonly string[] {
    return [];
  }
}

/** A leaf, or arrays and plain objects of trees. */
export type Tree<T> = T | readonly Tree<T>[] | { readonly [key: string]: Tree<T> };

/** The shape of a tree: what is left when the leaves are taken out. */
export type Structure =
  | { readonly kind: 'leaf' }
  | { readonly kind: 'array'; readonly items: readonly Structure[] }
  | {
      readonly kind: 'object';
      readonly keys: readonly string[];
      readonly items: readonly Structure[];
      /** Of the class whose instance it is, when it is no plain object. */
      readonly prototype?: object;
    }
  | { readonly kind: 'setting'; readonly value: unknown };

export interface Flat {
  /** Everything that is no array, no object that is a tree, and no setting of one, in order. */
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
  const walk = (value: unknown, path: string, owned: boolean): Structure => {
    if (Array.isArray(value)) {
      return { kind: 'array', items: value.map((item, i) => walk(item, `${path}[${i}]`, owned)) };
    }
    if (value instanceof TreeNode) {
      const alone = new Set(value.buffers());
      const entries = Object.entries(value);
      return {
        kind: 'object',
        keys: entries.map(([key]) => key),
        items: entries.map(([key, item]) =>
          alone.has(key) ? { kind: 'setting', value: item } : walk(item, `${path}.${key}`, true),
        ),
        prototype: Object.getPrototypeOf(value) as object,
      };
    }
    if (typeof value === 'object' && value !== null && !(value instanceof Tensor)) {
      const prototype: unknown = Object.getPrototypeOf(value);
      const plain = prototype === Object.prototype || prototype === null;
      if (!plain && owned) return { kind: 'setting', value };
      if (!plain) {
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
        items: entries.map(([key, item]) => walk(item, `${path}.${key}`, owned)),
      };
    }
    if (owned && !(value instanceof Tensor)) return { kind: 'setting', value };
    leaves.push(value);
    paths.push(path);
    return leaf;
  };
  const structure = walk(tree, '', false);
  return { leaves, paths, structure };
}

/** The tree of this structure with these leaves; instances are made without calling their constructors. */
export function unflatten(structure: Structure, leaves: readonly unknown[]): unknown {
  let next = 0;
  const build = (at: Structure): unknown => {
    switch (at.kind) {
      case 'leaf':
        return leaves[next++];
      case 'array':
        return at.items.map(build);
      case 'object': {
        const entries = Object.fromEntries(at.keys.map((key, i) => [key, build(at.items[i]!)]));
        if (at.prototype === undefined) return entries;
        return Object.assign(Object.create(at.prototype) as object, entries);
      }
      case 'setting':
        return at.value;
      default:
        return at satisfies never;
    }
  };
  return build(structure);
}

/** A structure as text, e.g. `{w:*,b:*}`: equal texts are equal structures, settings and classes included. */
export function showStructure(structure: Structure): string {
  return show(structure, (value) => `=${showSetting(value)}`, identity);
}

/** As text for people, and for comparing trees that may differ in settings: `Linear{w:*,b:*}`. */
function showOutline(structure: Structure): string {
  return show(
    structure,
    () => undefined,
    (prototype) => prototype.constructor.name,
  );
}

function show(
  structure: Structure,
  setting: (value: unknown) => string | undefined,
  nameOf: (prototype: object) => string,
): string {
  const walk = (at: Structure): string | undefined => {
    switch (at.kind) {
      case 'leaf':
        return '*';
      case 'array':
        return `[${at.items.map((item) => walk(item) ?? '').join(',')}]`;
      case 'object': {
        const name = at.prototype === undefined ? '' : nameOf(at.prototype);
        const shown = at.items.map((item, i) => [at.keys[i], walk(item)] as const);
        const fields = shown.filter(([, text]) => text !== undefined).map((field) => field.join(':'));
        return `${name}{${fields.join(',')}}`;
      }
      case 'setting':
        return setting(at.value);
      default:
        return at satisfies never;
    }
  };
  return walk(structure) ?? '';
}

const identities = new WeakMap<object, number>();
let identityCount = 0;

/** `#3`: the same for the same object only. */
function identity(value: object): string {
  const known = identities.get(value) ?? identityCount++;
  identities.set(value, known);
  return `#${known}`;
}

function showSetting(value: unknown): string {
  if (typeof value === 'function' || (typeof value === 'object' && value !== null)) return identity(value);
  if (typeof value === 'string') return JSON.stringify(value);
  return Object.is(value, -0) ? '-0' : `${typeof value === 'bigint' ? 'n' : ''}${String(value)}`;
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
  expectFunction('treeMap', fn);
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

/** Throws E_VALUE, naming the first place where they differ, unless two trees have one structure, settings aside. */
export function checkSameStructure(op: string, aName: string, a: Flat, bName: string, b: Flat): void {
  const [aText, bText] = [showOutline(a.structure), showOutline(b.structure)];
  if (aText === bText) return;
  const at = a.paths.findIndex((path, i) => path !== b.paths[i]);
  const where =
    at < 0
      ? `${bName} has ${b.paths[a.paths.length]} besides`
      : `${aName} has ${a.paths[at] || 'a leaf'} where ${bName} has ${b.paths[at] ?? 'nothing'}`;
  throw new TensorError('E_VALUE', op, `the trees differ in structure: ${where}: ${aText} and ${bText}`);
}
