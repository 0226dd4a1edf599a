// Alignment: the indices of a node at the current point of a cluster's domain, derived from those
// of its inputs that are members. A node with a unique alignment can be computed and stored by the
// cluster's kernel.

import { dims, type Node } from '../../ir/graph.ts';
import { delinearize, linearize } from '../../ir/index-algebra/expr.ts';
import { facts, isElementwise } from '../../ir/ops.ts';
import { sizeOf } from '../../ir/shape.ts';
import { viewIndices, type Indices } from '../expression/evaluate.ts';
import type { Cluster } from './place.ts';

/**
 * The node's indices at the cluster's current point, derived from its member inputs; undefined when
 * they are not unique.
 */
export function align(node: Node, cluster: Cluster): Indices | undefined {
  if (isElementwise(node.op)) {
    let at: Indices | undefined;
    for (const input of node.inputs) {
      const here = cluster.members.get(input);
      if (here === undefined) continue;
      if (at !== undefined && !sameIndices(at, here)) return undefined;
      at = here;
    }
    return at;
  }
  const input = node.inputs[0];
  const from = input === undefined ? undefined : cluster.members.get(input);
  if (input === undefined || from === undefined || facts(node.op).class !== 'view') return undefined;
  switch (node.op) {
    case 'reshape':
      return delinearize(linearize(from, dims(input)), dims(node));
    case 'permute':
      return node.attrs.order.map((axis) => from[axis]!);
    case 'broadcast':
      return alignBroadcast(node, from, cluster);
    default:
      return undefined;
  }
}

/**
 * A per-row value spread over its row again: aligned when reading it back at the row's indices
 * gives the same value.
 */
function alignBroadcast(node: Node, from: Indices, cluster: Cluster): Indices | undefined {
  const shape = dims(node);
  const unchanged = shape.length === from.length && sizeOf(shape) === sizeOf(dims(node.inputs[0]!));
  if (unchanged) return from;
  for (const { at, dims: place } of placesOf(cluster)) {
    const fits = place.length === shape.length && place.every((dim, axis) => dim === shape[axis]);
    if (fits && sameIndices(viewIndices(node, at), from)) return at;
  }
  return undefined;
}

/**
 * The shapes that the cluster's point has been seen in: the row that is reduced, and a few reshaped
 * forms of it.
 */
function placesOf(cluster: Cluster): { at: Indices; dims: readonly number[] }[] {
  const places = cluster.full === undefined ? [] : [{ at: cluster.full.at, dims: cluster.full.shape }];
  for (const [member, at] of cluster.members) {
    if (places.length >= 6) break;
    if (member.op === 'reshape' || member.op === 'permute') places.push({ at, dims: dims(member) });
  }
  return places;
}

/** Index vectors are interned, so equal ones are identical axis by axis. */
export function sameIndices(a: Indices, b: Indices): boolean {
  return a.length === b.length && a.every((index, axis) => index === b[axis]);
}
