// The tensors of a model by name: its parameters, its state, and both as a dictionary to save and
// load.

import { showValue, TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { sameShape } from '../ir/shape.ts';
import { aTensor, expectTensor } from '../tensor/expect.ts';
import { noGrad } from '../tensor/derivative/transform.ts';
import { noteKnown } from '../tensor/layer/held.ts';
import { show } from '../tensor/ops/operand.ts';
import { cast } from '../tensor/ops/elementwise/cast.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { hostBytesOf } from '../tensor/values.ts';
import { aModel, membersOf } from './module.ts';

const takesParameter = arg.takes<typeof parameter>(['the value', aTensor]);

/** Makes a tensor a parameter: a leaf that gradients are accumulated in. */
export function parameter(value: Tensor): Tensor {
  takesParameter('parameter', value);
  return value.requiresGrad_();
}

const takesNamedParameters = arg.takes<typeof namedParameters>(['the model', aModel]);

/** The parameters of a model by dotted name, each tensor once, under its first name. */
export function namedParameters(model: unknown): Map<string, Tensor> {
  takesNamedParameters('namedParameters', model);
  const found = named(model, false);
  noteKnown(found.values());
  return found;
}

/** The state of a model that is not trained, such as running statistics, by dotted name. */
export function namedBuffers(model: unknown): Map<string, Tensor> {
  takesNamedParameters('namedBuffers', model);
  return named(model, true);
}

function named(model: unknown, buffers: boolean): Map<string, Tensor> {
  const seen = new Set<Tensor>();
  const found = new Map<string, Tensor>();
  for (const { name, tensor, buffer } of membersOf(model)) {
    if (buffer !== buffers || seen.has(tensor)) continue;
    seen.add(tensor);
    if (found.has(name)) throw duplicateName('namedParameters', name);
    found.set(name, tensor);
  }
  return found;
}

function duplicateName(op: string, name: string): TensorError {
  const problem = `two tensors of the model are called ${JSON.stringify(name)}`;
  return new TensorError('E_VALUE', op, problem, 'keys without dots: names are keys joined by dots');
}

/** The tensors of a model to save, by name. Throws E_VALUE where two go by one. */
function byName(op: string, model: unknown): Map<string, Tensor> {
  const found = new Map<string, Tensor>();
  for (const { name, tensor, saved } of membersOf(model)) {
    if (!saved) continue;
    if (found.has(name)) throw duplicateName(op, name);
    found.set(name, tensor);
  }
  return found;
}

/** The parameters of a model in order, each once. */
export function parameters(model: unknown): Tensor[] {
  takesNamedParameters('parameters', model);
  const found = [...named(model, false).values()];
  noteKnown(found);
  return found;
}

/** Number of values of all parameters, frozen ones too. */
export function countParameters(model: unknown): number {
  takesNamedParameters('countParameters', model);
  return [...named(model, false).values()].reduce((total, { size }) => total + size, 0);
}

/**
 * Every parameter and buffer by dotted name, also those that stand at several places: what a file
 * should hold. The tensors have the values of this moment: to change the model, give other values to
 * `loadStateDict`, or assign to the model's own tensors.
 */
export function stateDict(model: unknown): Record<string, Tensor> {
  takesNamedParameters('stateDict', model);
  const members = [...byName('stateDict', model)];
  for (const [name, tensor] of members) expectTensor('stateDict', name, tensor);
  return Object.fromEntries(members.map(([name, tensor]) => [name, tensor.detach()]));
}

export interface LoadOptions {
  /** Whether every name must be on both sides; true by default. Shapes must agree in any case. */
  readonly strict?: boolean;
}

/** What `loadStateDict` met on one side only. */
export interface LoadReport {
  /** Names of the model that the dictionary does not have; these tensors keep their values. */
  readonly missing: readonly string[];
  /** Names of the dictionary that the model does not have. */
  readonly unexpected: readonly string[];
}

export const dictionary: arg.Kind<Readonly<Record<string, Tensor>>> = {
  accepts: (value) => arg.isPlainObject(value) && Object.values(value).every((at) => aTensor.accepts(at)),
  refuse(op, what, value): never {
    if (!arg.isPlainObject(value))
      throw new TensorError('E_VALUE', op, `${what} must be tensors by name, got ${showValue(value)}`);
    const [name, wrong] = Object.entries(value).find(([, at]) => !aTensor.accepts(at))!;
    return aTensor.refuse(op, name, wrong);
  },
};
const takesLoadStateDict = arg.takes<typeof loadStateDict>(
  ['the model', aModel],
  ['the dictionary', dictionary],
  ['options', arg.options<LoadOptions>({ strict: arg.flag })],
);

/**
 * Gives the tensors of a model the values of a dictionary, converted to their dtypes. A tensor that
 * stands at several places is there under any of its names, and stays one. Throws E_VALUE for names
 * that are on one side only, and for two values of one tensor, and E_SHAPE for shapes that differ,
 * listing all of them; the model then stays as it was.
 */
export function loadStateDict(
  model: unknown,
  values: Readonly<Record<string, Tensor>>,
  options: LoadOptions = {},
): LoadReport {
  takesLoadStateDict('loadStateDict', model, values, options);
  const op = 'loadStateDict';
  const members = byName(op, model);
  const given = new Set(
    [...members].flatMap(([name, tensor]) => (Object.hasOwn(values, name) ? [tensor] : [])),
  );
  const missing = [...members].flatMap(([name, tensor]) => (given.has(tensor) ? [] : [name]));
  const unexpected = Object.keys(values).filter((name) => !members.has(name));
  if (options.strict !== false && missing.length + unexpected.length > 0) {
    const faults = [
      ...(missing.length > 0 ? [`the dictionary lacks ${list(missing)}`] : []),
      ...(unexpected.length > 0 ? [`the model lacks ${list(unexpected)}`] : []),
    ];
    throw new TensorError('E_VALUE', op, faults.join('; '), '{ strict: false } to load what both have');
  }
  const common = [...members].filter(([name]) => Object.hasOwn(values, name));
  const clashes = common.filter(([name, tensor]) => !sameShape(tensor.shape, values[name]!.shape));
  if (clashes.length > 0) {
    const shown = clashes.map(([name, tensor]) => `${name} is ${show(tensor)}, given ${show(values[name]!)}`);
    throw new TensorError('E_SHAPE', op, shown.join('; '));
  }
  const taken = new Map<Tensor, string>();
  for (const [name, tensor] of common) {
    const other = taken.get(tensor);
    taken.set(tensor, name);
    if (other === undefined || !areKnownToDiffer(values[other]!, values[name]!)) continue;
    const problem = `${name} and ${other} are one tensor of the model, and the dictionary has two values for it`;
    throw new TensorError('E_VALUE', op, problem, 'one of the names only');
  }
  noGrad(() => {
    for (const [name, tensor] of common) tensor.assign(cast(values[name]!, tensor.dtype));
  });
  return { missing, unexpected };
}

/** Whether the host has the elements of both, as of a file's, and they are not the same. */
function areKnownToDiffer(a: Tensor, b: Tensor): boolean {
  const [left, right] = [a, b].map(hostBytesOf);
  if (left === undefined || right === undefined || a.dtype !== b.dtype) return false;
  return left.some((byte, i) => byte !== right[i]);
}

function list(names: readonly string[]): string {
  const shown = names.slice(0, 8).join(', ');
  return names.length > 8 ? `${shown} and ${names.length - 8} more` : shown;
}
