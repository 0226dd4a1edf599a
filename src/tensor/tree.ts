// Trees: nested arrays and plain objects with tensors (and numbers, strings, …) at the leaves, as
// parameters and batches are kept. A tree is flattened to its leaves and a structure that puts
// leaves back in place. Instances of subclasses of `TreeNode` are trees as well: their tensors are
// leaves, and what else they hold are settings, part of the structure. A tensor that such instances
// hold at several places is one leaf (tied weights), and stays one: it has one gradient, one step.

import { copyKey, fromOtherCopy, TensorError, thisCopy } from '../errors.ts';
import { expectFunction, silenced } from './expect.ts';
import { strayCheck } from './handle/recorded.ts';
import { currentTrace } from './handle/recording.ts';
import { Tensor } from './tensor.ts';
import { unwatched, watched, watchedCalls } from './layer/watch.ts';
import { areUnchanged, contentsOf, sameContents, type Contents } from './layer/contents.ts';
import { checkHeld } from './layer/held.ts';
import type { Hooks } from './layer/hooks.ts';

strayCheck.fill(checkHeld);

/** The base of classes whose instances are trees, as layers of a network are. */
export abstract class TreeNode {
  /** State that was added by name: whether it is saved. There only where something was added. */
  declare registeredBuffers?: Readonly<Record<string, boolean>>;
  /** What runs around `forward`. There only where something was added. */
  declare registeredHooks?: Hooks;

  constructor() {
    return watched(this);
  }

  /**
   * Names of properties to leave alone: state that is neither differentiated nor handed through.
   */
  buffers(): readonly string[] {
    return [];
  }
}

Object.defineProperty(TreeNode.prototype, copyKey, { value: thisCopy });

/** Names of all properties of an instance that are state. */
export function stateNames(node: TreeNode): readonly string[] {
  const { registeredBuffers } = node;
  return registeredBuffers === undefined
    ? node.buffers()
    : [...node.buffers(), ...Object.keys(registeredBuffers)];
}

/** A leaf, or arrays and plain objects of trees. */
export type Tree<T> = T | readonly Tree<T>[] | { readonly [key: string]: Tree<T> };

/** The shape of a tree: what is left when the leaves are taken out. */
export type TreeStructure =
  | { readonly kind: 'leaf' }
  /** The tensor of an earlier leaf, at another place of an instance. */
  | { readonly kind: 'shared'; readonly leaf: number }
  | { readonly kind: 'array'; readonly items: readonly TreeStructure[] }
  | {
      readonly kind: 'object';
      readonly keys: readonly string[];
      readonly items: readonly TreeStructure[];
      /** Of the class whose instance it is, when it is no plain object. */
      readonly prototype?: object;
    }
  | {
      readonly kind: 'setting';
      readonly value: unknown;
      /** What an object held that may change in place. */
      readonly contents?: Contents | undefined;
    };

export interface Flat {
  /** Everything that is no array, no object that is a tree, and no setting of one, in order. */
  readonly leaves: readonly unknown[];
  /** Where each leaf was, e.g. `[0].layers.w`; no two have the same. */
  readonly paths: readonly string[];
  /** Whether each leaf is held by an instance (of a subclass of `TreeNode`). */
  readonly owned: readonly boolean[];
  readonly structure: TreeStructure;
}

const leaf: TreeStructure = { kind: 'leaf' };
const none: readonly string[] = [];

/** Layers are compared by themselves: a trace notes what it reads of those that it was not given. */
const isLayer = (object: object): boolean => object instanceof TreeNode;

function setting(value: unknown): TreeStructure {
  return { kind: 'setting', value, contents: contentsOf(value, isLayer) };
}

/**
 * A position or a key as a part of a path. Keys that could be taken for parts of another path are
 * quoted: `["a.b"]`.
 */
export function step(key: number | string): string {
  if (typeof key === 'number') return `[${key}]`;
  return /^[^.[\]"]+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

/**
 * The leaves of a tree and its structure. Throws E_VALUE at objects that are no plain data, such as
 * class instances, and at trees that contain themselves.
 */
export function flatten(tree: unknown, op: string = 'tree'): Flat {
  const leaves: unknown[] = [];
  const paths: string[] = [];
  const owns: boolean[] = [];
  const places = new Map<Tensor, number>();
  /** What the walk is inside of. */
  const around: unknown[] = [];
  const walk = (value: unknown, path: string, owned: boolean): TreeStructure => {
    if (typeof value !== 'object' || value === null || value instanceof Tensor) {
      return walkLeaf(value, path, owned);
    }
    if (around.includes(value)) {
      throw new TensorError('E_VALUE', op, `the tree contains itself${path === '' ? '' : ` at ${path}`}`);
    }
    around.push(value);
    const structure = walkInside(value, path, owned);
    around.pop();
    return structure;
  };
  const walkLeaf = (value: unknown, path: string, owned: boolean): TreeStructure => {
    if (owned && !(value instanceof Tensor)) return setting(value);
    const known = owned ? places.get(value as Tensor) : undefined;
    if (known !== undefined) return { kind: 'shared', leaf: known };
    if (owned) places.set(value as Tensor, leaves.length);
    leaves.push(value);
    paths.push(path);
    owns.push(owned);
    return leaf;
  };
  const walkInside = (value: object, path: string, owned: boolean): TreeStructure => {
    if (Array.isArray(value)) {
      return { kind: 'array', items: value.map((item, i) => walk(item, path + step(i), owned)) };
    }
    if (value instanceof TreeNode) {
      const alone = new Set(stateNames(value));
      const entries = Object.entries(unwatched(value));
      return {
        kind: 'object',
        keys: entries.map(([key]) => key),
        items: entries.map(([key, item]) =>
          alone.has(key) ? setting(item) : walk(item, path + step(key), true),
        ),
        prototype: Object.getPrototypeOf(value) as object,
      };
    }
    const prototype: unknown = Object.getPrototypeOf(value);
    const plain = prototype === Object.prototype || prototype === null;
    if (!plain && owned) return setting(value);
    if (!plain) {
      silenced(value);
      throw new TensorError(
        'E_VALUE',
        op,
        `expects tensors in arrays and plain objects, got ${fromOtherCopy(value) ?? value.constructor.name}${path === '' ? '' : ` at ${path}`}`,
        value instanceof Map ? 'Object.fromEntries(map)' : value instanceof Set ? '[...set]' : undefined,
      );
    }
    const entries = Object.entries(value);
    return {
      kind: 'object',
      keys: entries.map(([key]) => key),
      items: entries.map(([key, item]) => walk(item, path + step(key), owned)),
    };
  };
  const structure = walk(tree, '', false);
  return { leaves, paths, owned: owns, structure };
}

/**
 * The leaves of a tree that has this structure, settings included; undefined of any other value.
 */
export function matchTree(structure: TreeStructure, tree: unknown): unknown[] | undefined {
  const leaves: unknown[] = [];
  return collect(structure, tree, false, leaves, new Set()) ? leaves : undefined;
}

/** `held`: the tensors of instances among the leaves so far. */
function collect(
  at: TreeStructure,
  value: unknown,
  owned: boolean,
  leaves: unknown[],
  held: Set<unknown>,
): boolean {
  switch (at.kind) {
    case 'leaf':
      if (!(value instanceof Tensor) && (owned || (typeof value === 'object' && value !== null)))
        return false;
      if (owned && held.size === held.add(value).size) return false;
      leaves.push(value);
      return true;
    case 'shared':
      return owned && value === leaves[at.leaf];
    case 'array': {
      const { items } = at;
      if (!Array.isArray(value) || value.length !== items.length) return false;
      for (let i = 0; i < items.length; i++)
        if (!collect(items[i]!, value[i], owned, leaves, held)) return false;
      return true;
    }
    case 'object': {
      if (typeof value !== 'object' || value === null) return false;
      // Every question to a watched object costs more than to the object itself.
      const raw = unwatched(value);
      if (raw instanceof Tensor) return false;
      const prototype: unknown = Object.getPrototypeOf(raw);
      const isPlain = prototype === Object.prototype || prototype === null;
      if (at.prototype === undefined ? !isPlain : prototype !== at.prototype) return false;
      const keys = Object.keys(raw);
      if (keys.length !== at.keys.length) return false;
      const alone = raw instanceof TreeNode ? stateNames(raw) : none;
      const inside = owned || raw instanceof TreeNode;
      for (let i = 0; i < keys.length; i++) {
        const key = keys[i]!;
        const field = (raw as Readonly<Record<string, unknown>>)[key];
        const item = at.items[i]!;
        if (key !== at.keys[i]) return false;
        if (alone.includes(key)) {
          if (item.kind !== 'setting' || !isSetting(field, item)) return false;
        } else if (!collect(item, field, inside, leaves, held)) return false;
      }
      return true;
    }
    case 'setting':
      return !(value instanceof Tensor) && isSetting(value, at);
    default:
      return at satisfies never;
  }
}

/** Whether a value is a setting as it was. */
function isSetting(
  value: unknown,
  { value: was, contents }: Extract<TreeStructure, { kind: 'setting' }>,
): boolean {
  return Object.is(value, was) && areUnchanged(contents);
}

/**
 * Calls a function on trees that were made here. Copies of instances have no private members, since
 * these are made by constructors alone: instead of the engine's TypeError there is one that says
 * what to do.
 */
export function callOnCopies<T>(op: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (!(error instanceof TypeError) || !privacy.test(error.message)) throw error;
    throw new TensorError(
      'E_VALUE',
      op,
      `a copy of a layer has no private members, and the function uses one: ${error.message}`,
      'a property without # (private in TypeScript is fine): layers and tensors behind # are no part of a model either',
    );
  }
}

/**
 * What V8, SpiderMonkey and JavaScriptCore say where an object has not the private member asked
 * for.
 */
const privacy = /private (?:member|method|name|field)|Receiver must be (?:an instance of )?class/i;

/**
 * The tree of this structure with these leaves; instances are made without calling their
 * constructors.
 */
export function unflatten(structure: TreeStructure, leaves: readonly unknown[]): unknown {
  let next = 0;
  const build = (at: TreeStructure): unknown => {
    switch (at.kind) {
      case 'leaf':
        return leaves[next++];
      case 'shared':
        return leaves[at.leaf];
      case 'array':
        return at.items.map(build);
      case 'object': {
        const entries = Object.fromEntries(at.keys.map((key, i) => [key, build(at.items[i]!)]));
        if (at.prototype === undefined) return entries;
        const copy = Object.assign(Object.create(at.prototype) as object, entries);
        // Copies that a traced function is given are its own.
        return currentTrace() === undefined ? watched(copy) : watchedCalls(copy);
      }
      case 'setting':
        return at.value;
      default:
        return at satisfies never;
    }
  };
  return build(structure);
}

/**
 * As text for people, and for comparing trees that may differ in settings: `Tied{w:*,b:*,v:=.w}`.
 */
function showOutline({ structure, paths }: Flat): string {
  const walk = (at: TreeStructure): string | undefined => {
    switch (at.kind) {
      case 'leaf':
        return '*';
      case 'shared':
        return `=${paths[at.leaf]}`;
      case 'array':
        return `[${at.items.map((item) => walk(item) ?? '').join(',')}]`;
      case 'object': {
        const shown = at.items.map((item, i) => [at.keys[i], walk(item)] as const);
        const fields = shown.filter(([, text]) => text !== undefined).map((field) => field.join(':'));
        return `${at.prototype?.constructor.name ?? ''}{${fields.join(',')}}`;
      }
      case 'setting':
        return undefined;
      default:
        return at satisfies never;
    }
  };
  return walk(structure) ?? '';
}

/** Whether two structures are the same, settings included. */
export function sameStructure(a: TreeStructure, b: TreeStructure): boolean {
  if (a === b) return true;
  if (a.kind === 'leaf') return b.kind === 'leaf';
  if (a.kind === 'shared') return b.kind === 'shared' && a.leaf === b.leaf;
  if (a.kind === 'setting')
    return b.kind === 'setting' && Object.is(a.value, b.value) && sameContents(a.contents, b.contents);
  if (b.kind !== a.kind || a.items.length !== b.items.length) return false;
  const isSame =
    a.kind === 'array' ||
    (b.kind === 'object' && a.prototype === b.prototype && a.keys.every((key, i) => key === b.keys[i]));
  return isSame && a.items.every((item, i) => sameStructure(item, b.items[i]!));
}

/** The tensors of a tree, in order; one that modules share comes once. */
export function treeLeaves(tree: unknown): Tensor[] {
  return flatten(tree).leaves.filter((value) => value instanceof Tensor);
}

/**
 * The tree with every tensor replaced by `fn` of it and of the leaves at the same path of the other trees;
 * leaves that are not tensors stay. Throws E_VALUE when another tree has a different structure.
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

/**
 * Throws E_VALUE, naming the first place where they differ, unless two trees have one structure,
 * settings aside.
 */
export function checkSameStructure(op: string, aName: string, a: Flat, bName: string, b: Flat): void {
  const [aText, bText] = [showOutline(a), showOutline(b)];
  if (aText === bText) return;
  const at = a.paths.findIndex((path, i) => path !== b.paths[i]);
  const where =
    at < 0
      ? `${bName} has ${b.paths[a.paths.length]} besides`
      : `${aName} has ${a.paths[at] || 'a leaf'} where ${bName} has ${b.paths[at] ?? 'nothing'}`;
  throw new TensorError('E_VALUE', op, `the trees differ in structure: ${where}: ${aText} and ${bText}`);
}
