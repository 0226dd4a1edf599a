// Products of few rows, as a step of a language model has: reading the right operand takes nearly all of their
// time. Where the invocations of a workgroup share the sums, one kernel computes several products of one left
// operand (`siblings`).

import type { Node, NodeOf } from '../../ir/graph.ts';
import { sharesWork } from '../machine.ts';
import type { Target } from '../target.ts';
import { contractExtents } from './domain.ts';

/** Rows of the left operand, at most. */
const fewRows = 4;

/** Products that one kernel computes, at most: each has its sums in workgroup memory. */
export const mostSiblings: number = 3;

/** Whether further products of its left operand may share the kernel of this one. */
export function mayHaveSiblings(node: NodeOf<'dot'>, target: Target): boolean {
  return sharesWork(target) && hasFewRows(node);
}

/** Rows of the result are vectors of at least four columns, and few. */
function hasFewRows(node: NodeOf<'dot'>): boolean {
  const { m, n } = contractExtents(node as Node);
  return m <= fewRows && n >= 4;
}

/** Equal for products of one left operand that have the same axes and dtype. */
export function siblingsKey({ inputs: [left, right], attrs, shape, dtype }: NodeOf<'dot'>): string {
  return `${left!.id} ${JSON.stringify(attrs)} ${shape.join()} ${right!.dtype} ${dtype}`;
}
