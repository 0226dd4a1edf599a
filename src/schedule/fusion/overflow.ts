// A kernel can bind a limited number of buffers. Takes a fusion group, and returns the last member that still
// fits.

import type { Node } from '../../ir/graph.ts';
import { isThroughView, keyOf, type FusionGroup, type ComputeLocation } from './place.ts';
import { sourcesOf } from './rematerialise.ts';

/** Results that may be written over an input that they update. */
export type Donations = ReadonlyMap<Node, Node>;

/**
 * Buffers that a kernel binds: a result takes none of its own when it is written over what it is
 * computed from.
 */
export function bindingsOf(reads: ReadonlySet<Node>, writes: Iterable<Node>, donations: Donations): number {
  let count = reads.size;
  for (const node of writes) {
    const donor = donations.get(node);
    if (donor === undefined || !reads.has(donor)) count += 1;
  }
  return count;
}

/** How much of a fusion group its kernel takes. */
export interface FusionGroupCut {
  /** Id of the last member that may stay. */
  readonly last: number;
  /** Buffers that the kernel would bind with one member more. */
  readonly bindings: number;
}

/** The last member of a fusion group whose reads and writes still fit; undefined if all members fit. */
export function overflowCut(
  fusionGroup: FusionGroup,
  users: ReadonlyMap<Node, readonly Node[]>,
  outputs: ReadonlySet<Node>,
  room: number,
  places: ReadonlyMap<Node, ComputeLocation>,
  readsOf: (node: Node) => ReadonlySet<Node>,
  strict: ReadonlySet<Node>,
  recomputedIn: ReadonlyMap<Node, readonly FusionGroup[]>,
  donations: Donations,
): FusionGroupCut | undefined {
  const members = [...fusionGroup.members.keys()].sort((a, b) => a.id - b.id);
  // The last node inside that needs a member's value; Infinity when one outside does. A use of a
  // view counts as a use of what it views.
  const lastUse = new Map<Node, number>();
  for (const member of members.toReversed()) {
    let last = outputs.has(member) ? Infinity : 0;
    for (const user of users.get(member) ?? []) {
      const inside = fusionGroup.members.has(user);
      const reads = (other: FusionGroup): boolean => other !== fusionGroup && !other.members.has(member);
      const home = places.get(user)!;
      const elsewhere =
        (recomputedIn.get(user) ?? []).some(reads) ||
        (home.kind === 'member' && home.fusionGroup.group !== undefined ? reads(home.fusionGroup) : !inside);
      last = Math.max(
        last,
        elsewhere ? Infinity : inside ? user.id : 0,
        inside && isThroughView(user) && !outputs.has(user) ? lastUse.get(user)! : 0,
      );
    }
    lastUse.set(member, last);
  }
  let bindings = 0;
  for (let count = members.length; count >= 1; count--) {
    const last = members[count - 1]!.id;
    const leaves = (member: Node): boolean => lastUse.get(member)! > last;
    const isRecomputed = (member: Node): boolean =>
      !strict.has(keyOf(fusionGroup)) &&
      !outputs.has(member) &&
      sourcesOf(member, fusionGroup, places, outputs, leaves) !== undefined;
    const reads = new Set<Node>();
    const writes: Node[] = [];
    for (const member of members.slice(0, count)) {
      for (const input of member.inputs) {
        if (!fusionGroup.members.has(input)) for (const read of readsOf(input)) reads.add(read);
      }
      const isStored = (!isThroughView(member) || outputs.has(member)) && leaves(member);
      if (isStored && !isRecomputed(member)) writes.push(member);
    }
    const bound = bindingsOf(reads, writes, donations);
    if (bound <= room) return count === members.length ? undefined : { last, bindings };
    bindings = bound;
  }
  return { last: fusionGroup.fusionRoots[0]!.id, bindings };
}
