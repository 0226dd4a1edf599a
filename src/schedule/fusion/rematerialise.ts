// Rematerialisation: the stored values from which a value could be computed again, instead of being
// stored.

import { dims, nodeBytes, type Node } from '../../ir/graph.ts';
import { facts, isElementwise } from '../../ir/ops.ts';
import { sizeOf } from '../../ir/shape.ts';
import { divisionLimit, divisionsOf } from './inline.ts';
import { isThroughView, type FusionGroup, type ComputeLocation } from './place.ts';
import type { StorageReason } from './rejection.ts';

/** Arithmetic per element that a reader may repeat instead of reading the result. */
const workLimit = 40;

/**
 * Values in memory that a member can be computed from, and the arithmetic per element that takes.
 */
export interface Sources {
  readonly nodes: ReadonlySet<Node>;
  readonly work: number;
}

/**
 * Goes back from a member to values that are in memory anyway (`kept` says so for members of the
 * same fusion group) or are small next to it, as a row's statistics are. Undefined if that would force
 * large new stores or take too much arithmetic; `onRejection` is then called with the reason.
 */
export function sourcesOf(
  node: Node,
  fusionGroup: FusionGroup,
  places: ReadonlyMap<Node, ComputeLocation>,
  outputs: ReadonlySet<Node>,
  kept: (member: Node) => boolean,
  onRejection: (keeping: StorageReason) => void = () => {},
): Sources | undefined {
  if (!isElementwise(node.op)) return undefined;
  const nodes = new Set<Node>();
  const visited = new Set<Node>([node]);
  const stack = [...node.inputs];
  let [work, divisions] = [facts(node.op).flops, 0];
  for (let input = stack.pop(); input !== undefined; input = stack.pop()) {
    if (visited.has(input)) continue;
    visited.add(input);
    const place = places.get(input)!;
    if (place.kind === 'leaf' || place.kind === 'stored') {
      nodes.add(input);
      continue;
    }
    if (place.kind === 'free') {
      for (const read of place.reads) nodes.add(read);
      for (const inner of place.closure) if (sizeOf(dims(inner)) > 1) work += facts(inner.op).flops;
      continue;
    }
    const own = place.fusionGroup === fusionGroup;
    const small = nodeBytes(input) * 8 <= nodeBytes(node);
    // Views are looked through, unless they are outputs of the graph.
    const lies = !isThroughView(input) || outputs.has(input);
    if (lies && (!own || small || kept(input))) {
      nodes.add(input);
      continue;
    }
    if (!isElementwise(input.op) && !isThroughView(input)) {
      onRejection({ rule: 'source', needs: input });
      return undefined;
    }
    divisions += divisionsOf(input);
    if (divisions > divisionLimit) {
      onRejection({ rule: 'divisions', count: divisions, limit: divisionLimit });
      return undefined;
    }
    work += facts(input.op).flops;
    if (work > workLimit) {
      onRejection({ rule: 'work', work, limit: workLimit });
      return undefined;
    }
    stack.push(...input.inputs);
  }
  return { nodes, work };
}
