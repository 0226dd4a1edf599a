// Alignment: the indices of a node at the current point of a fusion group's domain, derived from those
// of its inputs that are members. A node with a unique alignment can be computed and stored by the
// fusion group's kernel.

import { dims, type Node } from '../../ir/graph.ts';
import { constantIndex, delinearize, linearize } from '../../ir/index-algebra/expr.ts';
import { facts, isElementwise } from '../../ir/ops.ts';
import { sizeOf } from '../../ir/shape.ts';
import { viewIndices, type Indices } from '../expression/evaluate.ts';
import type { FusionGroup } from './place.ts';

/**
 * The node's indices at the fusion group's current point, derived from its member inputs; undefined when
 * they are not unique.
 */
export function align(node: Node, fusionGroup: FusionGroup): Indices | undefined {
  if (isElementwise(node.op)) {
    let at: Indices | undefined;
    for (const input of node.inputs) {
      const here = fusionGroup.members.get(input);
      if (here === undefined) continue;
      if (at !== undefined && !sameIndices(at, here)) return undefined;
      at = here;
    }
    return at;
  }
  const input = node.inputs[0];
  const from = input === undefined ? undefined : fusionGroup.members.get(input);
  if (input === undefined || from === undefined || facts(node.op).class !== 'view') return undefined;
  switch (node.op) {
    case 'reshape':
      return delinearize(linearize(from, dims(input)), dims(node));
    case 'permute':
      return node.attrs.order.map((axis) => from[axis]!);
    case 'broadcast':
      return alignBroadcast(node, from, fusionGroup);
    default:
      return undefined;
  }
}

/**
 * A per-row value spread over its row again: aligned when reading it back at the row's indices
 * gives the same value.
 */
function alignBroadcast(node: Node, from: Indices, fusionGroup: FusionGroup): Indices | undefined {
  const shape = dims(node);
  // Axes of one element may come in front.
  if (sizeOf(shape) === sizeOf(dims(node.inputs[0]!)))
    return [...Array.from({ length: shape.length - from.length }, () => constantIndex(0)), ...from];
  for (const { at, dims: place } of placesOf(fusionGroup)) {
    const fits = place.length === shape.length && place.every((dim, axis) => dim === shape[axis]);
    if (fits && sameIndices(viewIndices(node, at), from)) return at;
  }
  return undefined;
}

/**
 * The shapes that the fusion group's point has been seen in: the row that is reduced, and a few reshaped
 * forms of it.
 */
function placesOf(fusionGroup: FusionGroup): { at: Indices; dims: readonly number[] }[] {
  const places =
    fusionGroup.full === undefined ? [] : [{ at: fusionGroup.full.at, dims: fusionGroup.full.shape }];
  for (const [member, at] of fusionGroup.members) {
    if (places.length >= 6) break;
    if (member.op === 'reshape' || member.op === 'permute') places.push({ at, dims: dims(member) });
  }
  return places;
}

/** Index vectors are interned, so equal ones are identical axis by axis. */
export function sameIndices(a: Indices, b: Indices): boolean {
  return a.length === b.length && a.every((index, axis) => index === b[axis]);
}
