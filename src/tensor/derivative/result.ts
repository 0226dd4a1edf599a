// What leaves a function that is transformed: results of derivatives, and values of the function.

import { showValue, TensorError } from '../../errors.ts';
import type { Node } from '../../ir/graph.ts';
import { cut, walkGradient } from '../handle/gradient.ts';
import { isOpen } from '../handle/recorded.ts';
import {
  currentTrace,
  dropPending,
  gradEnabled,
  leafOf,
  nodeFor,
  recordedHandle,
} from '../handle/recording.ts';
import { handleOf, Tensor } from '../tensor.ts';

/**
 * The result of a derivative: differentiable again as far as it depends on what is being
 * differentiated. `untracked` gathers nodes found to lead nowhere, for the results that share them.
 */
export function result(node: Node, untracked: Set<Node> = new Set()): Tensor {
  const tracked = isTracked(node, untracked);
  if (!tracked || !gradEnabled()) return new Tensor(recordedHandle(tracked ? cut(node) : node, false));
  return new Tensor(recordedHandle(node, true));
}

/** Whether gradients lead to this very node: a leaf, what a derivative is being taken for, or an input of the trace. */
export function isSource(node: Node): boolean {
  return leafOf(node) !== undefined || isOpen(node) || currentTrace()?.isInput(node) === true;
}

/** Whether gradients of the node lead anywhere. */
function isTracked(root: Node, untracked: Set<Node> = new Set()): boolean {
  const visited: Node[] = [];
  let found = false;
  walkGradient([root], (node) => {
    found ||= isSource(node);
    if (found || untracked.has(node)) return false;
    visited.push(node);
    return true;
  });
  if (!found) for (const node of visited) untracked.add(node);
  return found;
}

/** A value that leaves the function being differentiated. */
export function closed(output: Tensor): Tensor {
  const handle = handleOf(output);
  if (!handle.requiresGrad) return output;
  const node = nodeFor(handle);
  if (isTracked(node) && gradEnabled()) return output;
  dropPending(handle);
  return new Tensor(recordedHandle(cut(node), false));
}

/** Requires a tensor at a place of a tree. */
export function tensorAt(op: string, what: string, value: unknown, path: string): Tensor {
  if (value instanceof Tensor) return value;
  throw new TensorError(
    'E_VALUE',
    op,
    `the ${what}${path === '' ? '' : ` at ${path}`} must be a tensor, got ${showValue(value)}`,
  );
}
