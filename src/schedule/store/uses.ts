// Which kernels evaluate a node from outside of its own kernel, and at how many points each of them
// does.

import { dims, type Node } from '../../ir/graph.ts';
import { isElementwise } from '../../ir/ops.ts';
import { sizeOf } from '../../ir/shape.ts';
import type { Indices } from '../expression/evaluate.ts';
import { contractExtents } from '../fusion/domain.ts';
import type { FusionGroup } from '../fusion/place.ts';
import { sharesWork } from '../machine.ts';
import type { Target } from '../target.ts';

/** Rows or columns of results that one reading of an operand serves. */
const tileWidth = 8;

/** A fusion group, or a free node that a map kernel computes. */
export type Reader = FusionGroup | Node;

/**
 * Kernels that evaluate a node from outside its fusion group, with the number of points each evaluates
 * it at.
 */
export type Uses = Map<Reader, number>;

/** Adds a kernel that evaluates the node at so many points, or more points of a known one. */
export function addUse(uses: Uses, kernel: Reader, points: number): void {
  uses.set(kernel, Math.max(uses.get(kernel) ?? 0, points));
}

/**
 * Points at which a member evaluates an input from outside its fusion group: a contraction re-reads each
 * operand once per tile, a sort by counting each key once per element of its line, a search its
 * boundaries once a step of each value.
 */
export function pointsOf(user: Node, input: Node, fusionGroup: FusionGroup, target: Target): number {
  const size = sizeOf(dims(input));
  if (user.op === 'argSort' && !sharesWork(target)) return size * dims(user)[user.attrs.axis]!;
  if (user.op === 'searchSorted' && user.inputs[0] === input)
    return sizeOf(dims(user)) * Math.ceil(Math.log2(dims(input).at(-1)! + 1));
  // Every few right-hand sides walk over the triangle anew.
  if (user.op === 'factor' && user.inputs.length === 2 && user.inputs[0] === input)
    return size * Math.ceil(dims(user)[2]! / (sharesWork(target) ? 1 : 2 * tileWidth));
  if (user.op !== 'dot' && user.op !== 'conv') {
    const isProduct = fusionGroup.kind === 'dot' || fusionGroup.kind === 'conv';
    // A value that is broadcast along a row of results, as a bias is, is computed once per row of a
    // tile.
    if (isProduct && input.op === 'broadcast')
      return Math.max(sizeOf(dims(input.inputs[0]!)), Math.ceil(size / tileWidth));
    return size === 1 ? 1 : Math.max(size, sizeOf(dims(user)));
  }
  const { m, n } = contractExtents(user);
  const across = user.inputs[0] === input ? n : m;
  // Each row of an attention kernel iterates over the keys by itself.
  return size * Math.max(1, Math.ceil(across / (fusionGroup.group === undefined ? tileWidth : 1)));
}

/**
 * Where the fusion group evaluates `node` for its direct user, when that covers each element exactly
 * once.
 */
export function evaluatedAt(user: Node, node: Node, fusionGroup: FusionGroup): Indices | undefined {
  if (isElementwise(user.op)) return fusionGroup.members.get(user);
  const full = fusionGroup.full;
  if (user.op !== 'reduce' || full === undefined) return undefined;
  return dims(node).every((dim, axis) => dim === full.shape[axis]) ? full.at : undefined;
}
