// Module: a layer is an object whose tensors are its parameters, with a `forward`. Modules are
// trees (tensor/tree.ts), as in Equinox (Kidger and Garcia, 2021): `grad`, `compile`, `treeMap` and
// optimizers take one whole and give one back, and what is no tensor (sizes, rates, activations) is
// part of its structure. Properties must be public: a private field has no copy.

import { TensorError } from '../errors.ts';
import { flag, isCallable, kind, optional, takes, type Kind } from '../ir/arguments.ts';
import { Tensor } from '../tensor/tensor.ts';
import { TreeNode } from '../tensor/tree.ts';

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
}

/** Anything between one tensor and another: a module, or a function such as `relu`. */
export type Layer = { forward(x: Tensor): Tensor } | ((x: Tensor) => Tensor);

/** A module, an object with a `forward`, or a function. */
export const aLayer: Kind<Layer> = kind('a layer or a function of one tensor', (value) => {
  if (typeof value === 'function') return isCallable(value);
  return (
    typeof value === 'object' && value !== null && 'forward' in value && typeof value.forward === 'function'
  );
});

/** What a layer is called in messages. */
export function nameOf(layer: Layer): string {
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
}

/** Every module in a model, outer ones first; a module that stands at two places comes twice. */
export function* modulesOf(model: unknown, around: readonly object[] = []): Generator<Module> {
  if (typeof model !== 'object' || model === null || model instanceof Tensor) return;
  if (model instanceof Module) yield model;
  else if (!isPlain(model)) return;
  const inside = [...around, model];
  for (const [key, child] of Object.entries(model))
    yield* modulesOf(checkAcyclic(child, key, inside), inside);
}

/** Every tensor of a model in order; a tensor that stands at two places comes twice. */
export function* membersOf(
  model: unknown,
  name = '',
  buffer = false,
  around: readonly object[] = [],
): Generator<Member> {
  if (model instanceof Tensor) {
    yield { name, tensor: model, buffer };
    return;
  }
  if (typeof model !== 'object' || model === null) return;
  checkHolder(model, name);
  if (!(model instanceof Module) && !isPlain(model)) return;
  const state = new Set(model instanceof Module ? model.buffers() : []);
  const inside = [...around, model];
  for (const [key, child] of Object.entries(model)) {
    const path = name === '' ? key : `${name}.${key}`;
    yield* membersOf(checkAcyclic(child, path, inside), path, buffer || state.has(key), inside);
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
