// Gradients of values. The gradient slot: whether a value is a leaf, and what has been accumulated; inside a
// traced function these act on the tracers of captured values, and the trace notes each read and write.
// The history: a walk from nodes towards what they were computed from. And `backward`: gradients of one
// value with respect to every leaf it was computed from, accumulated in the leaves; the derivative is recorded
// like any other operation, and nothing runs until a gradient, or what an optimizer makes of it, is read.

import { TensorError } from '../../errors.ts';
import { add, distinct, full } from '../../ir/build.ts';
import { isComplex, isInexact } from '../../ir/dtype.ts';
import { dims, type Node } from '../../ir/graph.ts';
import { sameShape, sizeOf } from '../../ir/shape.ts';
import { type Handle, showHandle } from './handle.ts';
import { noteLeaf } from './recorded.ts';
import { storageOf } from './leaf.ts';
import {
  addPending,
  attachIfComputed,
  bindLeaf,
  builder,
  canonical,
  checkOwn,
  currentHandle,
  currentHandleUnchecked,
  isSpent,
  leafOf,
  nodeAt,
  nodeFor,
  recordedHandle,
} from './recording.ts';
import { cotangents } from '../../autograd/vjp.ts';

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

/**
 * Visits the nodes that gradients of `roots` flow to; `enter` says whether to go on below a node.
 */
export function walkGradient(roots: readonly Node[], enter: (node: Node) => boolean): void {
  const seen = new Set(roots);
  for (const node of seen) {
    if (node.op === 'stopGradient' || !enter(node)) continue;
    for (const input of node.inputs) if (isInexact(input.dtype)) seen.add(input);
  }
}

/** The same value without history. */
export function detached(handle: Handle): Handle {
  return recordedHandle(cut(nodeFor(handle)), false);
}

/** A node that gradients do not pass. */
export function cut(node: Node): Node {
  return builder().add('stopGradient', [node], {}) as Node;
}

/**
 * Adds the gradients of a value to its leaves. Throws E_GRAD when it has none, or no single element
 * and no seed.
 */
export function backward(handle: Handle, seed: Handle | undefined, retainGraph: boolean): void {
  const at = currentHandle(handle, 'backward');
  const root = nodeFor(handle);
  if (at.released) throwSpent(at);
  if (!requiresGrad(at)) {
    throw new TensorError(
      'E_GRAD',
      'backward',
      `${showHandle(at)} does not depend on any tensor that requires gradients`,
      'requiresGrad_() on a leaf before computing with it',
    );
  }
  at.trace?.goesBack(root);
  const start = seedNode('backward', at, seed);
  const leaves = leavesOf([root]);
  const gradients = cotangents(builder(), [root], [start], leaves);
  checkAlive(gradients);
  const sums = new Map<Handle, Node>();
  leaves.forEach((node, i) => {
    const gradient = gradients[i];
    if (gradient === undefined) return;
    const leaf = leafOf(node)!;
    const sum = sums.get(leaf);
    sums.set(leaf, sum === undefined ? gradient : add(builder(), sum, gradient));
  });
  for (const [leaf, gradient] of sums) {
    if (leaf.gone === undefined) accumulate(leaf, gradient);
  }
  if (retainGraph || at.leaf) return;
  at.track('released');
  if (at.trace === undefined) attachIfComputed(at);
}

function throwSpent(value: Pick<Handle, 'dtype' | 'shape'>): never {
  throw new TensorError(
    'E_GRAD',
    'backward',
    `the history of ${showHandle(value)} was released by an earlier backward`,
    'backward(undefined, { retainGraph: true }) the first time',
  );
}

function accumulate(leaf: Handle, gradient: Node): void {
  const before = gradOf(leaf);
  const sum = before === undefined ? gradient : add(builder(), nodeFor(before), gradient);
  setGrad(leaf, recordedHandle(cut(sum), false));
}

/** The cotangent to start from: the seed, or 1 for a value of one element. */
export function seedNode(op: string, output: Handle, seed: Handle | undefined): Node {
  if (seed !== undefined) {
    if (seed.dtype !== output.dtype || !sameShape(seed.shape, output.shape)) {
      const problem = `the seed ${showHandle(seed)} is not like the value ${showHandle(output)}`;
      throw new TensorError('E_SHAPE', op, problem);
    }
    return nodeFor(seed);
  }
  if (isComplex(output.dtype)) {
    const problem = `the loss must be real without a seed: ${showHandle(output)}`;
    throw new TensorError('E_GRAD', op, problem, 'abs() or real() of it, or give a seed of its shape');
  }
  if (sizeOf(output.shape) !== 1) {
    throw new TensorError(
      'E_GRAD',
      op,
      `expects one element, or a seed: ${showHandle(output)}`,
      'reduce it with sum() or mean(), or give a seed of its shape',
    );
  }
  return full(builder(), output.shape, 1, output.dtype);
}

/**
 * Nodes under `roots` that stand for gradient leaves (of any version), without passing a leaf or a
 * stopGradient. Throws E_GRAD at a value whose history has been released.
 */
export function leavesOf(roots: readonly Node[]): Node[] {
  const found: Node[] = [];
  walkGradient(roots, (node) => {
    if (isSpent(node)) throwSpent({ dtype: node.dtype, shape: dims(node) });
    if (leafOf(node) === undefined) return true;
    found.push(node);
    return false;
  });
  return found;
}

/** Throws E_STATE when a gradient needs a value that was given up since. */
export function checkAlive(gradients: readonly (Node | undefined)[]): void {
  const seen = new Set<Node>();
  for (const gradient of gradients) if (gradient !== undefined) seen.add(canonical(gradient));
  for (const node of seen) {
    const storage = storageOf(node);
    if (storage !== undefined && storage.lost === undefined) continue;
    if (storage !== undefined && node.op === 'parameter') {
      throw new TensorError(
        'E_STATE',
        'backward',
        `the gradient needs the value of ${node.attrs.name} ${showHandle(storage)}, which was ${storage.lost}`,
        'call backward before the value is given up',
      );
    }
    for (const input of node.inputs) seen.add(canonical(input));
  }
}
