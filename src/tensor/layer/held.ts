// What a layer computes with is its own: a trainable tensor that it reads is in one of its fields
// (a tensor, a layer, or an array or plain object of these), or came with the arguments of the
// call. One behind `#`, in a closure, a Map or an object of another class is not found by walking
// the fields: it would get gradients, but no optimizer would update it and no file would contain
// it. So reading it is an error.

import { TensorError } from '../../errors.ts';
import { showHandle, type Handle } from '../handle/handle.ts';
import { gradEnabled } from '../handle/recording.ts';
import { handleOf, Tensor } from '../tensor.ts';
import { targetOf } from './watch.ts';
import { innermostLayer, outerCall, type OuterCall } from '../handle/recorded.ts';

/** Of each layer the leaves that were looked for and may be read: nothing is looked for twice. */
const checked = new WeakMap<object, WeakSet<Handle>>();

/** Leaves that were handed out as parameters, or given to an optimizer. */
const known = new WeakSet<Handle>();

/** Notes that these tensors are trained: handed out as parameters, or given to an optimizer. */
export function noteKnown(tensors: Iterable<Tensor>): void {
  for (const tensor of tensors) known.add(handleOf(tensor));
}

/**
 * Throws E_GRAD where a layer that is being called reads a leaf that is no part of it, and that was
 * neither handed out as a parameter nor given to an optimizer. Where no gradients are tracked
 * nothing is trained, and everything may be read.
 */
export function checkHeld(handle: Handle): void {
  // Tracers are of arguments, or of what is checked as what it is.
  if (!handle.leaf || handle.trace !== undefined) return;
  const call = outerCall();
  if (call === undefined || !gradEnabled()) return;
  let fine = checked.get(call.layer);
  if (fine?.has(handle) === true) return;
  if (fine === undefined) checked.set(call.layer, (fine = new WeakSet()));
  call.given ??= tensorsIn(call.args, true);
  if (call.given.has(handle)) return;
  for (const held of tensorsIn(call.layer, false)) fine.add(held);
  if (fine.has(handle)) return;
  const inner = innermostLayer();
  const isOfInner = inner !== undefined && inner !== call.layer && tensorsIn(inner, false).has(handle);
  // What is made on the way and no layer's, such as a point to take a derivative at.
  if (call.made.has(handle) && !isOfInner) return;
  if (known.has(handle)) fine.add(handle);
  else throw stray(call, isOfInner ? inner : undefined, handle);
}

function stray({ layer, made }: OuterCall, inner: object | undefined, handle: Handle): TensorError {
  const op = layer.constructor.name;
  const whose = inner === undefined ? '' : ` of a layer ${inner.constructor.name} that it calls`;
  const problem = `the trainable ${showHandle(handle)}${whose} is no part of ${op}, so that nothing would train or save it`;
  const where = inner === undefined ? 'the tensor' : 'the layer';
  const field = `${where} in a field without # (alone, in an array or a plain object)`;
  const otherwise = 'requiresGrad_(false) if it is not to be trained';
  const hint =
    inner !== undefined && made.has(handle)
      ? `to make the layer in the constructor rather than at each call, and keep it ${field.replace(/^\w+ \w+ /, '')}`
      : `${field}, or an argument of the call; ${otherwise}`;
  return new TensorError('E_GRAD', op, problem, hint);
}

/** The tensors in fields of layers, arrays and plain objects; with `all` in Maps and Sets too. */
function tensorsIn(root: unknown, all: boolean): Set<Handle> {
  const found = new Set<Handle>();
  const visited = new Set<object>();
  const stack: unknown[] = [root];
  while (stack.length > 0) {
    const at = stack.pop();
    if (typeof at !== 'object' || at === null) continue;
    if (at instanceof Tensor) {
      found.add(handleOf(at));
      continue;
    }
    // Unseen, lest a trace depend on every field.
    const target = targetOf(at) ?? at;
    if (visited.has(target)) continue;
    visited.add(target);
    if (Array.isArray(target) || target !== at || isPlain(target)) stack.push(...Object.values(target));
    else if (all && (target instanceof Map || target instanceof Set)) stack.push(...target.values());
  }
  return found;
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
