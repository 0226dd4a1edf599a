// assign: a tensor takes the value of another. Nothing is overwritten yet: the handle moves on to
// the new value, and readers recorded before keep the old one.

import { TensorError } from '../../errors.ts';
import { cast, distinct } from '../../ir/build.ts';
import type { DType } from '../../ir/dtype.ts';
import type { Node } from '../../ir/graph.ts';
import { sameShape } from '../../ir/shape.ts';
import { showHandle, type Handle } from './handle.ts';
import { freshParameter } from './leaf.ts';
import { noteChange } from './recorded.ts';
import { giveUp, reclaimSoon } from './memory.ts';
import {
  addPending,
  bindLeaf,
  builder,
  checkOwn,
  gradEnabled,
  currentHandle,
  currentTrace,
  nodeFor,
  attachIfComputed,
} from './recording.ts';
import type { StoredValue } from '../storage/storage.ts';

/** Moves `handle` on to the value of `value`. Throws E_SHAPE or E_DTYPE when their types differ. */
export function assignHandle(handle: Handle, value: Handle): void {
  const at = currentHandle(handle, 'assign');
  const source = currentHandle(value, 'assign');
  checkOwn(at, 'assign');
  if (at.dtype !== source.dtype || !sameShape(at.shape, source.shape)) {
    const code = at.dtype === source.dtype ? 'E_SHAPE' : 'E_DTYPE';
    throw new TensorError(code, 'assign', `${showHandle(at)} cannot take ${showHandle(source)}`);
  }
  const node = nodeFor(value);
  at.trace?.asksLeaf(at);
  const tracks = source.requiresGrad && !at.leaf && gradEnabled();
  const cut = tracks || !source.requiresGrad ? node : (builder().add('stopGradient', [node], {}) as Node);
  if (!at.leaf) at.track(tracks ? 'history' : 'none');
  moveOn(at, cut);
  reclaimSoon();
}

/**
 * Gives a tensor another dtype: from now on it has its own value, converted, and so has its
 * gradient. Throws E_STATE inside a traced function, and for a value with a history.
 */
export function convertHandle(handle: Handle, dtype: DType, op: string): void {
  if (handle.dtype === dtype) return;
  if (currentTrace() !== undefined) {
    const problem = 'a compiled or differentiated function cannot change the dtype of a tensor';
    const hint = 'convert before the call, or make it in this dtype; .cast(dtype) gives a new tensor';
    throw new TensorError('E_STATE', op, problem, hint);
  }
  const at = currentHandle(handle, op);
  if (at.requiresGrad && !at.leaf) {
    const problem = `the tensor ${showHandle(at)} has a history, which is of its dtype`;
    throw new TensorError('E_GRAD', op, problem, 'detach() it first, or .cast(dtype) for a new tensor');
  }
  const converted = cast(builder(), nodeFor(at), dtype);
  const cut = at.leaf ? (builder().add('stopGradient', [converted], {}) as Node) : converted;
  moveOn(at, cut);
  noteChange();
  if (at.grad !== undefined) convertHandle(at.grad, dtype, op);
  reclaimSoon();
}

/**
 * Moves `handle` on to a computed value of its type; a leaf stays one, any other handle gets the
 * history of `past`, or none.
 */
export function takeValue(handle: Handle, value: StoredValue, past: Node | undefined): void {
  const isTracked = !handle.leaf && past !== undefined;
  if (!handle.leaf) handle.track(isTracked ? 'history' : 'none');
  moveOn(handle, isTracked ? past : freshParameter(value, value));
}

function moveOn(at: Handle, node: Node): void {
  const old = at.renew(at.leaf ? distinct(node) : node);
  if (at.leaf) bindLeaf(at.node, at);
  if (at.trace === undefined && !attachIfComputed(at)) {
    at.keep();
    addPending(at);
  }
  if (old !== undefined && old.unshare()) giveUp(old, 'overwritten');
}
