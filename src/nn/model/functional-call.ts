// Calls a model with other tensors instead of its own. Functions of parameters need this: derivatives with
// respect to some of them, and ensembles by `vmap`.

import { showValue, TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { sameShape } from '../../ir/shape.ts';
import { aTensor } from '../../tensor/expect.ts';
import { show } from '../../tensor/ops/operand.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { callOnCopies, flatten, unflatten } from '../../tensor/tree.ts';
import { membersOf, Module } from '../module.ts';
import { getSubmodule } from './walk.ts';

/** What the `forward` of a layer takes, and gives. */
type Takes<M> = M extends { forward(...args: infer A): unknown } ? A : never;
type Gives<M> = M extends { forward(...args: never[]): infer R } ? R : never;

const aModule: arg.Kind<Module> = arg.kind('a layer', (value) => value instanceof Module);
const byName: arg.Kind<Readonly<Record<string, Tensor>>> = arg.kind(
  'an object of tensors by name',
  arg.isPlainObject,
  () => 'Object.fromEntries(namedParameters(model)), changed',
);
const takesCall = arg.takes<(model: Module, tensors: Readonly<Record<string, Tensor>>) => unknown>(
  ['the model', aModule],
  ['the tensors', byName],
);

/**
 * `model.forward(...args)` with tensors by dotted name, as `namedParameters`, `namedBuffers` and
 * `stateDict` have them, instead of the model's own; the model is not changed, and tensors that are not
 * named are its own. A tensor that the model holds at several places is replaced at all of
 * them. Throws E_VALUE at names that the model lacks, E_SHAPE and E_DTYPE at tensors unlike its own.
 */
export function functionalCall<M extends Module>(
  model: M,
  tensors: Readonly<Record<string, Tensor>>,
  ...args: Takes<M>
): Gives<M> {
  takesCall('functionalCall', model, tensors);
  const members = [...membersOf(model)];
  const known = new Map(members.map((member) => [member.name, member]));
  const replaced = new Map<Tensor, Tensor>();
  const state: string[] = [];
  for (const [name, tensor] of Object.entries(tensors)) {
    const member = known.get(name);
    if (member === undefined) {
      const problem = `the model has no tensor ${showValue(name)}`;
      throw new TensorError('E_VALUE', 'functionalCall', problem, arg.nearest(name, [...known.keys()]));
    }
    checkLike(name, tensor, member.tensor);
    if (member.buffer) state.push(name);
    else replaced.set(member.tensor, tensor);
  }
  const { leaves, structure } = flatten(model, 'functionalCall');
  const copy = unflatten(
    structure,
    leaves.map((leaf) => replaced.get(leaf as Tensor) ?? leaf),
  ) as { forward(...given: unknown[]): Gives<M> } & M;
  for (const name of state) setState(copy, name, tensors[name]!);
  return callOnCopies('functionalCall', () => copy.forward(...args));
}

function checkLike(name: string, tensor: unknown, own: Tensor): void {
  if (!aTensor.accepts(tensor)) aTensor.refuse('functionalCall', name, tensor);
  const given = tensor as Tensor;
  if (given.dtype === own.dtype && sameShape(given.shape, own.shape)) return;
  const code = given.dtype === own.dtype ? 'E_SHAPE' : 'E_DTYPE';
  const problem = `${name} is ${show(own)} in the model, and ${show(given)} was given`;
  throw new TensorError(code, 'functionalCall', problem);
}

/** State is no leaf of the tree: it is set in the copy. */
function setState(copy: Module, name: string, tensor: Tensor): void {
  const dot = name.lastIndexOf('.');
  const holder = getSubmodule(copy, name.slice(0, Math.max(0, dot)));
  Object.assign(holder, { [name.slice(dot + 1)]: tensor });
}
