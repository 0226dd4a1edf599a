// Where nodes come from, for whoever asks: while a witness listens, every node that a builder makes
// is reported, with the node that it replaces or is the derivative of. Usually nobody listens; then
// the walks below cost one comparison each.

import type { Node } from './node.ts';

/**
 * What a node was made for: to stand for another after a rewrite, or to carry a gradient back
 * through another.
 */
export interface Cause {
  readonly kind: 'rewrite' | 'gradient';
  readonly of: Node;
}

/** Hears of every node that is made; without a cause it was recorded. */
export type Witness = (node: Node, cause: Cause | undefined) => void;

let witness: Witness | undefined;
let current: Cause | undefined;

/** Runs `fn` with `listener` hearing of every node made in it. */
export function withWitness<T>(listener: Witness, fn: () => T): T {
  const before = witness;
  witness = listener;
  try {
    return fn();
  } finally {
    witness = before;
  }
}

/** Has `listener` hear of every node from now on; undefined: nobody. */
export function setWitness(listener: Witness | undefined): void {
  witness = listener;
}

/** Makes nodes on behalf of another one. */
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

/** Tells the witness of a new node. */
export function announce(node: Node): void {
  witness?.(node, current);
}
