// assign: a tensor takes the value of another. Nothing is overwritten yet: the handle moves on to
// the new value, and readers recorded before keep the old one.

import { TensorError } from '../../errors.ts';
import { distinct } from '../../ir/build.ts';
import type { Node } from '../../ir/graph.ts';
import { sameShape } from '../../ir/shape.ts';
import { showHandle, type Handle } from './handle.ts';
import { freshParameter } from './leaf.ts';
import { giveUp, reclaimSoon } from '../storage/memory.ts';
import {
  addPending,
  bindLeaf,
  builder,
  gradEnabled,
  currentHandle,
  nodeFor,
  attachIfComputed,
} from './recording.ts';
import type { Storage } from '../storage/storage.ts';

/** Moves `handle` on to the value of `value`. Throws E_SHAPE or E_DTYPE when their types differ. */
export function assignHandle(handle: Handle, value: Handle): void {
  const at = currentHandle(handle, 'assign');
  const source = currentHandle(value, 'assign');
  if (at.dtype !== source.dtype || !sameShape(at.shape, source.shape)) {
    const code = at.dtype === source.dtype ? 'E_SHAPE' : 'E_DTYPE';
    throw new TensorError(code, 'assign', `${showHandle(at)} cannot take ${showHandle(source)}`);
  }
  const node = nodeFor(value);
  at.trace?.asksLeaf(at);
  const tracks = source.requiresGrad && !at.leaf && gradEnabled();
  const cut = tracks || !source.requiresGrad ? node : (builder().add('stopGradient', [node], {}) as Node);
  if (!at.leaf) at.requiresGrad = tracks;
  moveOn(at, cut);
  reclaimSoon();
}

/**
 * Moves `handle` on to a computed value of its type; a leaf stays one, any other handle gets the
 * history of `past`, or none.
 */
export function takeValue(handle: Handle, value: Storage, past: Node | undefined): void {
  const isTracked = !handle.leaf && past !== undefined;
  if (!handle.leaf) handle.requiresGrad = isTracked;
  moveOn(handle, isTracked ? past : freshParameter(value, value));
}

function moveOn(at: Handle, node: Node): void {
  const old = at.storage;
  at.version += 1;
  at.released = false;
  at.passed = undefined;
  at.storage = undefined;
  at.node = at.leaf ? distinct(node) : node;
  if (at.leaf) bindLeaf(at.node, at);
  if (at.trace === undefined && !attachIfComputed(at)) {
    at.keep = true;
    addPending(at);
  }
  if (old !== undefined && old.unshare()) giveUp(old, 'overwritten');
}
