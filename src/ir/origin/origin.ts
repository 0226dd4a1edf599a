// Reports where nodes come from: while a witness is set, it is called with every node that a
// builder makes, and with the node that this one replaces or is the derivative of. Without a
// witness each function below costs one comparison.

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

let witness: Witness | undefined;
let current: Cause | undefined;

/** Runs `fn` and calls `listener` with every node that is made in it. */
export function withWitness<T>(listener: Witness, fn: () => T): T {
  const before = witness;
  witness = listener;
  try {
    return fn();
  } finally {
    witness = before;
  }
}

/** Calls `listener` with every node that is made from now on; undefined ends this. */
export function setWitness(listener: Witness | undefined): void {
  witness = listener;
}

/** Runs `make`, reporting the nodes it makes as caused by `of`. */
export function onBehalf<T>(kind: Cause['kind'], of: Node, make: () => T): T {
  if (witness === undefined) return make();
  const before = current;
  current = { kind, of };
  try {
    return make();
  } finally {
    current = before;
  }
}

/** Reports a new node to the witness. */
export function announce(node: Node): void {
  witness?.(node, current);
}
