// History: what gradients of a value flow to. A walk from nodes towards what they were computed
// from, and the nodes that a derivative being taken right now is with respect to.

import { isInexact } from '../../ir/dtype.ts';
import type { Node } from '../../ir/graph.ts';
import { recorded } from './recorded.ts';

/**
 * Whether a derivative being taken right now is with respect to this node; what reaches it can be
 * differentiated again.
 */
export function isOpen(node: Node): boolean {
  return recorded().differentiated.has(node);
}

/** Whether a derivative is being taken right now. */
export function isDifferentiating(): boolean {
  return recorded().differentiated.size > 0;
}

/** Runs `fn` while a derivative is taken with respect to these nodes. */
export function withOpen<T>(nodes: readonly Node[], fn: () => T): T {
  const { differentiated } = recorded();
  for (const node of nodes) differentiated.add(node);
  try {
    return fn();
  } finally {
    for (const node of nodes) differentiated.delete(node);
  }
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
