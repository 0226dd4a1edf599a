// Reports where nodes come from: each witness is called with every node that a builder makes, and
// with the node that this one replaces or is the derivative of. Without a witness each function
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
export type Witness = (node: Node, cause: Cause | undefined) => void;

const witnesses = new Set<Witness>();
let current: Cause | undefined;

/** Calls `witness` with every node that is made, until the function that this gives is called. */
export function onNode(witness: Witness): () => void {
  witnesses.add(witness);
  return () => void witnesses.delete(witness);
}

/** Runs `fn` and calls `witness` with every node that is made in it. */
export function withWitness<T>(witness: Witness, fn: () => T): T {
  const end = onNode(witness);
  try {
    return fn();
  } finally {
    end();
  }
}

/** Runs `make`, reporting the nodes it makes as caused by `of`. */
export function onBehalf<T>(kind: Cause['kind'], of: Node, make: () => T): T {
  if (witnesses.size === 0) return make();
  const before = current;
  current = { kind, of };
  try {
    return make();
  } finally {
    current = before;
  }
}

/** Reports a new node to the witnesses. */
export function announce(node: Node): void {
  if (witnesses.size === 0) return;
  for (const witness of witnesses) witness(node, current);
}
