// When the nodes of one process's program can be computed, and when they have to be: by the modelled times of their arithmetic, with
// collectives beside it. Collectives are put in order by these times.

import type { Node } from '../ir/graph.ts';
import { isCollective } from '../ir/ops.ts';
import { timeOfNode } from './time.ts';

/** Seconds since the start of the program. */
export interface NodeTimes {
  /** All inputs are there. */
  readonly ready: number;
  /** What follows is not later if the node begins then. */
  readonly latest: number;
}

/** Times of the nodes, in an order with inputs before users. */
export function nodeTimes(order: readonly Node[]): ReadonlyMap<Node, NodeTimes> {
  const ready = new Map<Node, number>();
  const ends = new Map<Node, number>();
  for (const node of order) {
    const start = node.inputs.reduce((last, input) => Math.max(last, ends.get(input)!), 0);
    ready.set(node, start);
    ends.set(node, start + arithmeticOf(node));
  }
  const end = Array.from(ends.values()).reduce((last, time) => Math.max(last, time), 0);
  const latest = new Map<Node, number>();
  for (const node of order.toReversed()) {
    // The end of the program, or the earliest that a user has to begin.
    const start = (latest.get(node) ?? end) - arithmeticOf(node);
    latest.set(node, start);
    for (const input of node.inputs) latest.set(input, Math.min(latest.get(input) ?? end, start));
  }
  return new Map(order.map((node) => [node, { ready: ready.get(node)!, latest: latest.get(node)! }]));
}

/** Seconds of a node's arithmetic; none of a collective. */
export function arithmeticOf(node: Node): number {
  return node.op === 'parameter' || isCollective(node.op) ? 0 : timeOfNode(node);
}
