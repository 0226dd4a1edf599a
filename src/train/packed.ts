// What a checkpoint holds, as JSON and named tensors: models by their state dictionaries, whatever
// else keeps a state by that state, and trees of tensors and plain data as they are. JSON says where
// each tensor belongs; numbers that JSON lacks are written as text, so that all bits come back.

import { ParseError, showValue, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { Module } from '../nn/module.ts';
import { loadStateDict, stateDict } from '../nn/parameters.ts';
import { TreeNode } from '../tensor/tree.ts';
import { Tensor } from '../tensor/tensor.ts';

/** What has a state of its own to save: optimizers, scalers. */
interface Stateful {
  stateDict(): unknown;
  loadStateDict(state: never): unknown;
}

/** What has one by shorter names: plateaus. */
interface Observing {
  state(): unknown;
  load(state: never): unknown;
}

function hasMethods(value: object, ...names: readonly string[]): boolean {
  return names.every((name) => typeof (value as Readonly<Record<string, unknown>>)[name] === 'function');
}

function isStateful(value: object): value is Stateful {
  return hasMethods(value, 'stateDict', 'loadStateDict');
}

function isObserving(value: object): value is Observing {
  return hasMethods(value, 'state', 'load');
}

/** The state of something that keeps one; undefined of anything else. */
function stateOf(value: object): { readonly state: unknown; load(state: unknown): void } | undefined {
  if (isStateful(value)) {
    return { state: value.stateDict(), load: (state) => void value.loadStateDict(state as never) };
  }
  if (isObserving(value)) return { state: value.state(), load: (state) => void value.load(state as never) };
  return undefined;
}

/** Whether loading gives it a state, rather than a value in its place. */
function isKept(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return value instanceof Module || stateOf(value) !== undefined;
}

/** JSON of a checkpoint: plain values as they are, everything else under what it is. */
export type Packed =
  | string
  | number
  | boolean
  | null
  | { readonly tensor: string }
  | { readonly array: readonly Packed[] }
  | { readonly object: Readonly<Record<string, Packed>> }
  /** Tensors by their names in the model. */
  | { readonly model: Readonly<Record<string, string>> }
  | { readonly state: Packed }
  | { readonly number: string }
  | { readonly bigint: string }
  | { readonly undefined: true };

/** A tree as JSON, with its tensors by the names that JSON has for them. */
export function pack(op: string, value: unknown): { packed: Packed; tensors: Record<string, Tensor> } {
  const tensors: Record<string, Tensor> = {};
  const named = (tensor: Tensor, path: string): string => {
    let name = path === '' ? 'value' : path;
    // Keys may hold dots, so that two paths may look alike.
    for (let i = 2; Object.hasOwn(tensors, name); i++) name = `${path}#${i}`;
    tensors[name] = tensor.detach();
    return name;
  };
  const around: object[] = [];
  const walk = (at: unknown, path: string): Packed => {
    if (at instanceof Tensor) return { tensor: named(at, path) };
    if (typeof at !== 'object' || at === null) return plain(op, at, path);
    if (around.includes(at)) throw new TensorError('E_VALUE', op, `${path} contains itself`);
    around.push(at);
    const packed = inside(at, path);
    around.pop();
    return packed;
  };
  const inside = (at: object, path: string): Packed => {
    if (at instanceof Module) {
      const entries = Object.entries(stateDict(at));
      return {
        model: Object.fromEntries(entries.map(([name, tensor]) => [name, named(tensor, `${path}.${name}`)])),
      };
    }
    const kept = stateOf(at);
    if (kept !== undefined) return { state: walk(kept.state, path) };
    if (Array.isArray(at)) return { array: at.map((item, i) => walk(item, join(path, String(i)))) };
    if (at instanceof TreeNode || !arg.isPlainObject(at)) throw unknown(op, at, path);
    const entries = Object.entries(at).map(([key, item]) => [key, walk(item, join(path, key))] as const);
    return { object: Object.fromEntries(entries) };
  };
  return { packed: walk(value, ''), tensors };
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

function unknown(op: string, value: unknown, path: string): TensorError {
  const problem = `${path === '' ? 'it' : path} is ${showValue(value)}, which has no state to save`;
  const hint =
    'models, optimizers, tensors and plain data; stateDict() and loadStateDict() in a class of your own';
  return new TensorError('E_VALUE', op, problem, hint);
}

function plain(op: string, value: unknown, path: string): Packed {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0) ? value : { number: shownNumber(value) };
    case 'bigint':
      return { bigint: String(value) };
    case 'undefined':
      return { undefined: true };
    default:
      if (value === null) return null;
      throw unknown(op, value, path);
  }
}

function shownNumber(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}

/** What loading one part does, and what takes it back. */
interface Change {
  apply(): void;
  undo(): void;
}

/**
 * The tree of a checkpoint. What keeps a state in `into` takes its own and stands in the result;
 * everything else is made anew. All of it is read before anything takes its state; where one part
 * refuses it, the others get back theirs.
 */
export function unpack(
  op: string,
  packed: unknown,
  tensors: Readonly<Record<string, Tensor>>,
  into: unknown,
): unknown {
  const changes: Change[] = [];
  const tensorOf = (name: unknown): Tensor => {
    if (typeof name === 'string' && Object.hasOwn(tensors, name)) return tensors[name]!;
    throw broken(`it names a tensor ${showValue(name)} that is not there`);
  };
  const otherKind = (kind: string, target: unknown, path: string): TensorError => {
    const problem = `${path} is ${said(kind)} in the checkpoint, and ${showValue(target)} was given for it`;
    return new TensorError('E_VALUE', op, problem, 'what was given when it was saved');
  };
  const walk = (at: unknown, target: unknown, path: string): unknown => {
    if (typeof at !== 'object' || at === null) {
      if (isKept(target)) throw otherKind('plain', target, path);
      if (at === null || ['string', 'number', 'boolean'].includes(typeof at)) return at;
      throw broken(`${path} is no value`);
    }
    const [entry, ...more] = Object.entries(at);
    if (entry === undefined || more.length > 0) throw broken(`${path} is no value`);
    const [kind, value] = entry as [string, unknown];
    const isHolder = typeof target === 'object' && target !== null && !(target instanceof Tensor);
    const own = isHolder && !(target instanceof Module) ? stateOf(target) : undefined;
    if (target instanceof Module !== (kind === 'model') || (own !== undefined) !== (kind === 'state')) {
      throw otherKind(kind, target, path);
    }
    switch (kind) {
      case 'tensor':
        return like(tensorOf(value), target);
      case 'array': {
        const items = listOf(value, path);
        const into = Array.isArray(target) ? (target as readonly unknown[]) : [];
        if (into.slice(items.length).some(isKept)) {
          const problem = `the checkpoint has ${items.length} of ${path}, and ${into.length} were given`;
          throw new TensorError('E_VALUE', op, problem);
        }
        return items.map((item, i) => walk(item, into[i], join(path, String(i))));
      }
      case 'object': {
        const into = arg.isPlainObject(target) ? target : {};
        const entries = Object.entries(recordOf(value, path));
        for (const key of Object.keys(into)) lackOf(op, into[key], recordOf(value, path), key, path);
        return Object.fromEntries(
          entries.map(([key, item]) => [
            key,
            walk(item, Object.hasOwn(into, key) ? into[key] : undefined, join(path, key)),
          ]),
        );
      }
      case 'model': {
        const names = Object.entries(recordOf(value, path));
        const values = Object.fromEntries(names.map(([name, tensor]) => [name, tensorOf(tensor)]));
        const before = stateDict(target);
        changes.push({
          apply: () => void loadStateDict(target, values),
          undo: () => void loadStateDict(target, before),
        });
        return target;
      }
      case 'state': {
        const state = walk(value, undefined, path);
        changes.push({ apply: () => own!.load(state), undo: () => own!.load(own!.state) });
        return target;
      }
      case 'number':
        return Number(value);
      case 'bigint':
        if (typeof value !== 'string' || !/^-?\d+$/.test(value)) throw broken(`${path} is no integer`);
        return BigInt(value);
      case 'undefined':
        return undefined;
      default:
        throw broken(`${path} is of no known kind, ${showValue(kind)}`);
    }
  };
  const tree = walk(packed, into, '');
  const done: Change[] = [];
  try {
    for (const change of changes) {
      done.push(change);
      change.apply();
    }
  } catch (error) {
    // The one that refused is as it was.
    done.pop();
    for (const change of done.toReversed()) change.undo();
    throw error;
  }
  return tree;
}

/** Throws E_VALUE where the checkpoint lacks something that was given to load into. */
function lackOf(op: string, into: unknown, packed: object, key: string, path: string): void {
  if (Object.hasOwn(packed, key) || into === undefined) return;
  const problem = `the checkpoint has no ${join(path, key)}`;
  throw new TensorError('E_VALUE', op, problem, `it has ${Object.keys(packed).join(', ')}`);
}

/** The tensor, to be trained where the one that it stands for is. */
function like(tensor: Tensor, target: unknown): Tensor {
  return target instanceof Tensor && target.requiresGrad ? tensor.requiresGrad_() : tensor;
}

function said(kind: string): string {
  return kind === 'model' ? 'a model' : kind === 'state' ? 'a state' : 'plain data';
}

function listOf(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw broken(`${path} is no array`);
}

function recordOf(value: unknown, path: string): Readonly<Record<string, unknown>> {
  if (arg.isPlainObject(value)) return value;
  throw broken(`${path} is no object`);
}

function broken(problem: string): ParseError {
  return new ParseError('E_FORMAT', 'checkpoint', problem);
}
