// Reports where nodes come from: each listener is called with every node that a builder makes, and
// with the node that this one replaces or is the derivative of. Without a listener each function
// below costs one comparison.

import type { Node } from '../node.ts';

/**
 * What a node was made for: to stand for another after a rewrite, or to carry a gradient back
 * through another.
 */
export interface Cause {
  readonly kind: 'rewrite' | 'gradient';
  readonly of: Node;
}

/** Called with every node that is made; a node without a cause was recorded. */
export type NodeListener = (node: Node, cause: Cause | undefined) => void;

const listeners = new Set<NodeListener>();
let current: Cause | undefined;

/** Calls `listener` with every node that is made, until the function that this gives is called. */
export function onNode(listener: NodeListener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Runs `fn` and calls `listener` with every node that is made in it. */
export function withNodeListener<T>(listener: NodeListener, fn: () => T): T {
  const end = onNode(listener);
  try {
    return fn();
  } finally {
    end();
  }
}

/** Runs `make`, reporting the nodes it makes as caused by `of`. */
export function onBehalf<T>(kind: Cause['kind'], of: Node, make: () => T): T {
  if (listeners.size === 0) return make();
  const before = current;
  current = { kind, of };
  try {
    return make();
  } finally {
    current = before;
  }
}

/** Reports a new node to the listeners. */
export function announce(node: Node): void {
  if (listeners.size === 0) return;
  for (const listener of listeners) listener(node, current);
}
