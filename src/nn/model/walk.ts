// Walks over the layers of a model: all of them or the outermost, by dotted name, with a function for each. A
// layer that occurs in several places comes once, under its first name.

import { showValue, TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { isInexact } from '../../ir/dtype.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { aModel, membersOf, Module, placesOf } from '../module.ts';
import { namedBuffers } from '../parameters.ts';

const takesModel = arg.takes<(model: unknown) => unknown>(['the model', aModel]);

/** Each layer once, under its first name. */
function named(model: unknown, depth?: number): Map<string, Module> {
  const seen = new Set<Module>();
  const found = new Map<string, Module>();
  for (const { name, module } of placesOf(model, depth)) {
    if (seen.has(module)) continue;
    seen.add(module);
    if (found.has(name)) throw twice(name);
    found.set(name, module);
  }
  return found;
}

function twice(name: string): TensorError {
  const problem = `two layers of the model are called ${JSON.stringify(name)}`;
  return new TensorError(
    'E_VALUE',
    'namedModules',
    problem,
    'keys without dots: names are keys joined by dots',
  );
}

/** Every layer of a model by dotted name, outer ones first; that of the model itself is empty. */
export function namedModules(model: unknown): Map<string, Module> {
  takesModel('namedModules', model);
  return named(model);
}

/** Every layer of a model, outer ones first. */
export function modules(model: unknown): Module[] {
  takesModel('modules', model);
  return [...named(model).values()];
}

/** The layers that a model holds and no other layer of it does, by dotted name. */
export function namedChildren(model: unknown): Map<string, Module> {
  takesModel('namedChildren', model);
  return childrenOf(model);
}

function childrenOf(model: unknown): Map<string, Module> {
  const found = named(model, 1);
  if (model instanceof Module) found.delete('');
  return found;
}

/** The layers that a model holds and no other layer of it does. */
export function children(model: unknown): Module[] {
  takesModel('children', model);
  return [...childrenOf(model).values()];
}

/** The state of a model that is not trained, such as running statistics. */
export function buffers(model: unknown): Tensor[] {
  takesModel('buffers', model);
  return [...namedBuffers(model).values()];
}

const takesApply = arg.takes<(model: unknown, fn: (layer: Module) => void) => unknown>(
  ['the model', aModel],
  ['the function', arg.callable()],
);

/** Calls a function on every layer, inner ones first; gives the model. */
export function apply<M>(model: M, fn: (layer: Module) => void): M {
  takesApply('apply', model, fn);
  for (const layer of [...named(model).values()].toReversed()) fn(layer);
  return model;
}

const takesPath = arg.takes<(model: unknown, path: string) => unknown>(
  ['the model', aModel],
  ['the name', arg.text],
);

/** The layer of a dotted name. Throws E_VALUE where there is none. */
export function getSubmodule(model: unknown, path: string): Module {
  takesPath('getSubmodule', model, path);
  for (const { name, module } of placesOf(model)) if (name === path) return module;
  throw lacks('getSubmodule', 'layer', path, [...named(model).keys()]);
}

/** The parameter of a dotted name. Throws E_VALUE where there is none. */
export function getParameter(model: unknown, path: string): Tensor {
  takesPath('getParameter', model, path);
  return member('getParameter', model, path, false);
}

/** The state of a dotted name. Throws E_VALUE where there is none. */
export function getBuffer(model: unknown, path: string): Tensor {
  takesPath('getBuffer', model, path);
  return member('getBuffer', model, path, true);
}

function member(op: string, model: unknown, path: string, isBuffer: boolean): Tensor {
  const all = [...membersOf(model)].filter(({ buffer }) => buffer === isBuffer);
  const found = all.find(({ name }) => name === path);
  if (found !== undefined) return found.tensor;
  throw lacks(
    op,
    isBuffer ? 'buffer' : 'parameter',
    path,
    all.map(({ name }) => name),
  );
}

function lacks(op: string, what: string, path: string, names: readonly string[]): TensorError {
  const near = arg.nearest(path, names);
  return new TensorError('E_VALUE', op, `the model has no ${what} ${showValue(path)}`, near);
}

/** Forgets the gradients of all tensors of a model. */
export function zeroGrad(model: unknown): void {
  takesModel('zeroGrad', model);
  for (const { tensor } of membersOf(model)) tensor.zeroGrad();
}

const takesFreeze = arg.takes<(model: unknown, on?: boolean) => unknown>(
  ['the model', aModel],
  ['on', arg.optional(arg.flag)],
);

/**
 * Makes every parameter of a model trainable, or with `false` freezes them all; gives the model. An
 * optimizer leaves frozen ones as they are.
 */
export function requiresGrad_<M>(model: M, on: boolean = true): M {
  takesFreeze('requiresGrad_', model, on);
  for (const { tensor, buffer } of membersOf(model)) {
    if (!buffer && isInexact(tensor.dtype)) tensor.requiresGrad_(on);
  }
  return model;
}
