// Module: a layer is an object whose tensors are its parameters, with a `forward`. Modules are
// trees (tensor/tree.ts), as in Equinox (Kidger and Garcia, 2021): `grad`, `compile`, `treeMap` and
// optimizers take one whole and give one back, and what is no tensor (sizes, rates, activations) is
// part of its structure. Properties must be public: a private field has no copy.

import { TensorError } from '../errors.ts';
import {
  callable,
  flag,
  isCallable,
  kind,
  optional,
  options,
  takes,
  text,
  type Kind,
} from '../ir/arguments.ts';
import type { DType, FloatDType, RealDType } from '../ir/dtype.ts';
import { aTensor } from '../tensor/expect.ts';
import type { Unknown, Weighed } from '../tensor/inferred.ts';
import { noteChange } from '../tensor/tracing.ts';
import { Hooks, type ForwardHook, type ForwardPreHook } from '../tensor/layer/hooks.ts';
import { Tensor } from '../tensor/tensor.ts';
import { stateNames, TreeNode } from '../tensor/tree.ts';
import { backwardHook, type FullBackwardHook } from './backward-hook.ts';

/**
 * The base of all layers: hold tensors and other modules as properties, and compute in `forward`.
 * Tensors that `buffers()` names are state: saved with the parameters, but neither trained nor
 * copied.
 */
export abstract class Module extends TreeNode {
  /**
   * Whether layers that differ between training and use (dropout, batch norm) behave as in
   * training.
   */
  training = true;

  abstract forward(...inputs: never[]): unknown;

  /**
   * Makes a tensor state of this layer under a name: neither trained nor copied, like what
   * `buffers()` names. With `persistent: false` dictionaries to save do not have it.
   */
  registerBuffer(name: string, value: Tensor, options: BufferOptions = {}): void {
    const op = 'registerBuffer';
    takesRegisterBuffer(op, name, value, options);
    const isKnown = stateNames(this).includes(name);
    if (name.includes('.') || (name in this && !isKnown)) {
      const problem = `${nameOf(this)} has ${JSON.stringify(name)} already, or it has a dot`;
      throw new TensorError('E_VALUE', op, problem, 'another name');
    }
    const saved = { ...this.registeredBuffers, [name]: options.persistent ?? true };
    Object.assign(this, { [name]: value, registeredBuffers: saved });
  }

  /**
   * Calls a function before each `forward`, with the layer and the arguments; what it gives is what
   * `forward` takes instead. Inside of `compile` it runs while the function is traced.
   */
  registerForwardPreHook(hook: ForwardPreHook<this>): HookHandle {
    takesHook('registerForwardPreHook', hook);
    return addHook(this, 'before', hook as ForwardPreHook);
  }

  /** Calls a function after each `forward`, with what it took and gave; what it gives is the result. */
  registerForwardHook(hook: ForwardHook<this>): HookHandle {
    takesHook('registerForwardHook', hook);
    return addHook(this, 'after', hook as ForwardHook);
  }

  /**
   * Calls a function on the way back, with the gradients of the tensors that `forward` took and of
   * those that it gave; what it gives are the gradients that go on. It is a part of the derivative:
   * it records, and inside of `compile` it runs while the function is traced.
   */
  registerFullBackwardHook(hook: FullBackwardHook<this>): HookHandle {
    takesHook('registerFullBackwardHook', hook);
    return addHook(this, 'around', backwardHook(hook as FullBackwardHook));
  }
}

export interface BufferOptions {
  /** Whether state dictionaries have it; true by default. */
  readonly persistent?: boolean;
}

/** Takes a hook off again. */
export interface HookHandle {
  remove(): void;
}

const takesRegisterBuffer = takes<Module['registerBuffer']>(
  ['the name', text],
  ['the value', aTensor],
  ['options', options<BufferOptions>({ persistent: flag })],
);
const takesHook = takes<(hook: (...args: never[]) => unknown) => HookHandle>(['the hook', callable()]);

/** Every change is a new object, so that copies of a layer keep the hooks that they were made with. */
function addHook<K extends 'before' | 'after' | 'around'>(
  layer: Module,
  place: K,
  hook: Hooks[K][number],
): HookHandle {
  // The same function may be added twice, and is taken off once.
  const own = ((...args: never[]) => (hook as (...given: never[]) => unknown)(...args)) as typeof hook;
  const now = (): Hooks => layer.registeredHooks ?? new Hooks();
  const set = (list: readonly unknown[]): void => {
    layer.registeredHooks = new Hooks({ ...now(), [place]: list });
    noteChange();
  };
  set([...now()[place], own]);
  return {
    remove: () => {
      const left = (now()[place] as readonly unknown[]).filter((at) => at !== own);
      if (left.length < now()[place].length) set(left);
    },
  };
}

/** Anything between one tensor and another: a module, or a function such as `relu`. */
export type Layer = { forward(x: Tensor): Tensor } | ((x: Tensor) => Tensor);

type OutOf<L> = L extends { forward(x: Tensor): Tensor<infer R> }
  ? R
  : L extends (x: Tensor) => Tensor<infer R>
    ? R
    : Unknown;

type Takes<L, D extends DType, R extends DType> = L extends
  | { forward(x: Tensor<D>): Tensor<R> }
  | ((x: Tensor<D>) => Tensor<R>)
  ? true
  : false;

type Keeps<L> = L extends
  | { forward<D extends DType>(x: Tensor<D>): Tensor<D> }
  | (<D extends DType>(x: Tensor<D>) => Tensor<D>)
  ? true
  : false;

/** The dtype after layers, of values of dtype `D`. */
export type Through<L extends readonly unknown[], D extends DType> = L extends readonly [
  ...infer Before,
  infer Last,
]
  ? 0 extends 1 & OutOf<Last>
    ? Unknown
    : Keeps<Last> extends true
      ? Through<Before, D>
      : Takes<Last, RealDType, FloatDType> extends true
        ? // Complex numbers stay so through most layers, not through all.
          Weighed<D> extends FloatDType
          ? FloatDType extends OutOf<Last>
            ? Weighed<D>
            : OutOf<Last>
          : Unknown
        : OutOf<Last>
  : L extends readonly []
    ? D
    : Unknown;

/** A module, an object with a `forward`, or a function. */
export const aLayer: Kind<Layer> = kind('a layer or a function of one tensor', (value) => {
  if (typeof value === 'function') return isCallable(value);
  return (
    typeof value === 'object' && value !== null && 'forward' in value && typeof value.forward === 'function'
  );
});

/** The axis of a layer's weight that counts its outputs, where it is not the first. */
export const outputAxis: unique symbol = Symbol('outputAxis');

/** What a layer is called in messages. */
export function nameOf(layer: Layer | Module): string {
  const name = typeof layer === 'function' ? layer.name : layer.constructor.name;
  if (name === '') return 'a function';
  return typeof layer === 'function'
    ? `the function ${name}`
    : `${/^[AEIOU]/.test(name) ? 'an' : 'a'} ${name}`;
}

/** The result of a layer. */
export function applyLayer(layer: Layer, x: Tensor): Tensor {
  return typeof layer === 'function' ? layer(x) : layer.forward(x);
}

/** A tensor of a model under its dotted name, e.g. `layers.0.weight`. */
export interface Member {
  readonly name: string;
  readonly tensor: Tensor;
  /** State, not a parameter. */
  readonly buffer: boolean;
  /** Whether dictionaries to save have it. */
  readonly saved: boolean;
}

/** Every module in a model, outer ones first; a module that stands at two places comes twice. */
export function* modulesOf(model: unknown): Generator<Module> {
  for (const { module } of placesOf(model)) yield module;
}

/** A module of a model under its dotted name; the name of the model itself is empty. */
export interface NamedModule {
  readonly name: string;
  readonly module: Module;
}

/**
 * Every module in a model with its name. With `depth` 1 only those that no other module of the model
 * holds, apart from the model.
 */
export function* placesOf(
  model: unknown,
  depth: number = Infinity,
  name = '',
  around: readonly object[] = [],
): Generator<NamedModule> {
  if (typeof model !== 'object' || model === null || model instanceof Tensor) return;
  if (model instanceof Module) yield { name, module: model };
  else if (!isPlain(model)) return;
  if (depth === 0) return;
  const inside = [...around, model];
  for (const [key, child] of Object.entries(model)) {
    const path = name === '' ? key : `${name}.${key}`;
    // Arrays and plain objects are no level of their own.
    const left = child instanceof Module ? depth - 1 : depth;
    yield* placesOf(checkAcyclic(child, path, inside), left, path, inside);
  }
}

/** Every tensor of a model in order; a tensor that stands at two places comes twice. */
export function* membersOf(
  model: unknown,
  name = '',
  buffer = false,
  around: readonly object[] = [],
  saved = true,
): Generator<Member> {
  if (model instanceof Tensor) {
    yield { name, tensor: model, buffer, saved };
    return;
  }
  if (typeof model !== 'object' || model === null) return;
  checkHolder(model, name);
  if (!(model instanceof Module) && !isPlain(model)) return;
  const state = new Set(model instanceof Module ? stateNames(model) : []);
  const inside = [...around, model];
  const registered = model instanceof Module ? model.registeredBuffers : undefined;
  for (const [key, child] of Object.entries(model)) {
    const path = name === '' ? key : `${name}.${key}`;
    const kept = saved && registered?.[key] !== false;
    yield* membersOf(checkAcyclic(child, path, inside), path, buffer || state.has(key), inside, kept);
  }
}

/** The child; throws E_VALUE where it is one of the objects that it lies in. */
function checkAcyclic(child: unknown, path: string, around: readonly object[]): unknown {
  if (!around.includes(child as object)) return child;
  throw new TensorError('E_VALUE', 'Module', `the model contains itself at ${path}`);
}

/**
 * Throws E_VALUE at a Map or Set that holds layers or tensors: they would silently be no part of
 * the model.
 */
function checkHolder(holder: unknown, name: string): void {
  if (!(holder instanceof Map || holder instanceof Set)) return;
  for (const item of holder.values()) {
    if (!(item instanceof Tensor || item instanceof Module)) continue;
    const kind = holder instanceof Map ? 'Map' : 'Set';
    const problem = `${name} is a ${kind} with ${item instanceof Tensor ? 'tensors' : 'layers'}, which would be no part of the model`;
    throw new TensorError('E_VALUE', 'parameters', problem, 'an array or a plain object');
  }
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === Object.prototype || prototype === null;
}

/** A model: a module, or a tree of modules and tensors. */
export const aModel: Kind<unknown> = kind(
  'a model, or an array or object of layers and tensors',
  (value) => typeof value === 'object' && value !== null && isTree(value),
);

function isTree(value: object): boolean {
  return value instanceof Tensor || value instanceof Module || isPlain(value);
}

const takesTrain = takes<(model: unknown, on?: boolean) => unknown>(
  ['the model', aModel],
  ['on', optional(flag)],
);

/** Puts every layer of a model into training, or with `false` out of it; gives the model. */
export function train<M>(model: M, on: boolean = true): M {
  takesTrain('train', model, on);
  return switched(model, on);
}

function switched<M>(model: M, on: boolean): M {
  for (const module of modulesOf(model)) module.training = on;
  return model;
}

/**
 * Makes every layer of a model behave as in use: no dropout, batch norm by its running statistics.
 */
export function evalMode<M>(model: M): M {
  takesTrain('evalMode', model);
  return switched(model, false);
}
