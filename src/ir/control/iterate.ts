// `iterate`: a loop that runs a region a number of times, or as long as a carry says (its guard). Its inputs are the first carries,
// then stacks of which each iteration reads one slice, then what is the same in every iteration (invariants).
// The region's parameters are a counter (i32), the carries, a slice of each stack, the invariants;
// its outputs are the next carries, then slices that are stacked. A node stands for one result:
// nodes that differ in `result` alone are siblings, and one loop computes all of them.

import { GraphBuilder, sameAttrs, type Node, type NodeOf } from '../graph.ts';
import type { Attrs } from '../ops.ts';

/** A loop without the choice of a result. */
export type Iteration = Omit<Attrs<'iterate'>, 'result'>;

/** All results of a loop: the last carries, then the stacked slices. */
export function iterate(b: GraphBuilder, inputs: readonly Node[], attrs: Iteration): Node[] {
  return attrs.body.graph.outputs.map(
    (_, result): Node => b.add('iterate', inputs, { ...attrs, result }) as Node,
  );
}

/** The inputs of a loop by what they are. */
export function inputsOf(node: NodeOf<'iterate'>): {
  readonly carries: readonly Node[];
  readonly stacks: readonly Node[];
  readonly invariants: readonly Node[];
} {
  const { carries, stacked } = node.attrs;
  return {
    carries: node.inputs.slice(0, carries),
    stacks: node.inputs.slice(carries, carries + stacked),
    invariants: node.inputs.slice(carries + stacked),
  };
}

/** Whether two nodes are results of one loop. */
export function areSiblings(a: Node, b: Node): boolean {
  if (a.op !== 'iterate' || b.op !== 'iterate' || a.inputs.length !== b.inputs.length) return false;
  return (
    a.inputs.every((input, i) => input === b.inputs[i]) &&
    sameAttrs({ ...a.attrs, result: 0 }, { ...b.attrs, result: 0 })
  );
}

/** Equal for siblings, within one graph. */
export function siblingKey({ inputs, attrs }: NodeOf<'iterate'>): string {
  const { body, carries, stacked, trips, guard, reverse, recompute } = attrs;
  const flags = [reverse, recompute].map(Number);
  const numbers = [body.hash, body.key.length, carries, stacked, trips, guard, ...flags];
  return `iterate:${numbers.join()}:${inputs.map(({ id }) => id).join()}`;
}
