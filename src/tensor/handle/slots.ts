// The gradient slot of a value: whether it is a leaf, and what has been accumulated. Inside a
// traced function these act on the tracers of captured values, and the trace notes each read and
// write.

import { TensorError } from '../../errors.ts';
import { distinct } from '../../ir/build.ts';
import { isInexact } from '../../ir/dtype.ts';
import type { Node } from '../../ir/graph.ts';
import { sameShape } from '../../ir/shape.ts';
import { showHandle, type Handle } from './handle.ts';
import { noteLeaf } from './frames.ts';
import { storageOf } from './leaf.ts';
import {
  addPending,
  bindLeaf,
  builder,
  canonical,
  checkOwn,
  currentHandle,
  attachIfComputed,
  currentHandleUnchecked,
  nodeAt,
} from './recording.ts';

/** Whether gradients of a value lead anywhere, as far as it is known here. */
export function requiresGrad(handle: Handle): boolean {
  const at = currentHandleUnchecked(handle);
  return at.requiresGrad && (at.trace === undefined || at.trace.requiresGrad(at));
}

/** Makes the value a leaf of its own, or cuts it off from gradients. */
export function requireGrad(handle: Handle, on: boolean): void {
  const at = currentHandle(handle, 'requiresGrad_');
  if (on === requiresGrad(at)) return;
  checkOwn(at, 'requiresGrad_');
  at.trace?.asksLeaf(at);
  if (!on) {
    const node = nodeAt(at);
    at.track('none');
    standAlone(at, builder().add('stopGradient', [node], {}) as Node);
    return;
  }
  if (!isInexact(at.dtype)) {
    throw new TensorError('E_GRAD', 'requiresGrad_', `only floats have gradients: ${showHandle(at)}`);
  }
  const node = nodeAt(at);
  at.track('leaf');
  noteLeaf(at);
  standAlone(at, distinct(node));
  bindLeaf(at.node, at);
}

/** Gives a handle a node of its own for the same value. */
function standAlone(at: Handle, node: Node): void {
  at.represent(node);
  at.forgetNumber();
  if (at.trace !== undefined || attachIfComputed(at)) return;
  if (storageOf(canonical(node)) !== undefined) return;
  addPending(at);
  // A leaf is read again and again: whatever computes it keeps it.
  if (at.leaf) at.keep();
}

export function gradOf(handle: Handle): Handle | undefined {
  const at = currentHandle(handle, 'grad');
  at.trace?.readGrad(at);
  return at.grad;
}

/** Throws E_SHAPE when the gradient does not have the value's dtype and shape. */
export function setGrad(handle: Handle, grad: Handle | undefined): void {
  const at = currentHandle(handle, 'grad');
  if (grad !== undefined && (grad.dtype !== at.dtype || !sameShape(grad.shape, at.shape))) {
    throw new TensorError(
      'E_SHAPE',
      'grad',
      `the gradient of ${showHandle(at)} cannot be ${showHandle(grad)}`,
    );
  }
  checkOwn(at, 'grad');
  at.trace?.writeGrad(at);
  at.replaceGrad(grad === undefined ? undefined : currentHandle(grad, 'grad'));
}
