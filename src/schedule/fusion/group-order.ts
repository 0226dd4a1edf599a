// A visiting order in which the nodes of each attention group stand together, so that a fusion group
// opened for the group sees all it reads, and everything that reads from it comes later. Otherwise
// as recorded.

import { topological, type Node } from '../../ir/graph.ts';
import type { findAttention } from './attention.ts';
import { Slot } from '../../slot.ts';
import type { AttentionGroup, FusionGroup, ComputeLocation } from './place.ts';
import { weighsScores } from './scores.ts';
import type { Target } from '../target.ts';

export interface GroupOrder {
  readonly order: readonly Node[];
  /** The group whose kernel a node is computed in first; other groups may compute it again. */
  readonly home: ReadonlyMap<Node, AttentionGroup>;
}

/** The order, or the groups that need their own results through something outside them. */
export function orderByGroups(
  order: readonly Node[],
  groups: readonly AttentionGroup[],
): GroupOrder | { readonly cyclic: readonly AttentionGroup[] } {
  const walk = new GroupWalk(groups);
  for (const node of order) walk.visit(node);
  return walk.cyclic.size > 0 ? { cyclic: [...walk.cyclic] } : { order: [...walk.emitted], home: walk.home };
}

class GroupWalk {
  readonly emitted = new Set<Node>();
  readonly home = new Map<Node, AttentionGroup>();
  readonly cyclic = new Set<AttentionGroup>();
  readonly #open = new Set<AttentionGroup>();
  /** The groups that a node is a member of. */
  readonly #groups = new Map<Node, AttentionGroup[]>();
  /** The groups whose last member a node is. */
  readonly #last = new Map<Node, AttentionGroup[]>();

  constructor(groups: readonly AttentionGroup[]) {
    const push = (map: Map<Node, AttentionGroup[]>, node: Node, group: AttentionGroup): void => {
      const list = map.get(node);
      if (list === undefined) map.set(node, [group]);
      else list.push(group);
    };
    for (const group of groups) {
      const members = [...group.members.keys()];
      for (const node of members) push(this.#groups, node, group);
      push(
        this.#last,
        members.reduce((a, b) => (a.id > b.id ? a : b)),
        group,
      );
    }
  }

  visit(node: Node): void {
    if (!this.#groups.has(node)) this.#emit(node);
    else this.#last.get(node)?.forEach((group) => this.#emitGroup(group));
  }

  /** A node outside all groups; its inputs outside groups are emitted already. */
  #emit(node: Node): void {
    if (this.emitted.has(node)) return;
    for (const input of node.inputs) this.#demand(input);
    this.emitted.add(node);
  }

  #demand(member: Node): void {
    const [group] = this.#groups.get(member) ?? [];
    if (group !== undefined && !this.emitted.has(member)) this.#emitGroup(group);
  }

  #emitGroup(group: AttentionGroup): void {
    if (this.#open.has(group)) {
      if (![...group.members.keys()].every((node) => this.emitted.has(node))) this.cyclic.add(group);
      return;
    }
    this.#open.add(group);
    const outside = [...group.members.keys()].flatMap((node) =>
      node.inputs.filter((input) => !group.members.has(input)),
    );
    // The walk stops at members of other groups, which are emitted as a whole.
    const stop = (node: Node): boolean =>
      this.emitted.has(node) || (this.#groups.has(node) && !group.members.has(node));
    for (const node of topological(outside, stop)) {
      if (this.emitted.has(node)) continue;
      if (group.members.has(node)) this.cyclic.add(group);
      else if (this.#groups.has(node)) this.#demand(node);
      else this.#emit(node);
    }
    const own = [...group.members.keys()].filter((node) => !this.emitted.has(node));
    for (const node of own.sort((a, b) => a.id - b.id)) {
      this.emitted.add(node);
      this.home.set(node, group);
    }
  }
}

/** Attention kernels that compute nodes again which belong to an earlier one. */
export function recomputingKernels(
  fusionGroups: readonly FusionGroup[],
  places: ReadonlyMap<Node, ComputeLocation>,
): ReadonlyMap<Node, readonly FusionGroup[]> {
  const recomputedIn = new Map<Node, FusionGroup[]>();
  for (const fusionGroup of fusionGroups) {
    for (const node of fusionGroup.group?.members.keys() ?? []) {
      const place = places.get(node)!;
      if (place.kind === 'member' && place.fusionGroup !== fusionGroup)
        recomputedIn.set(node, [...(recomputedIn.get(node) ?? []), fusionGroup]);
    }
  }
  return recomputedIn;
}

/** Finds attention. */
export const attentionFinder: Slot<typeof findAttention> = new Slot('the search for attention');

/**
 * Attention groups and an order that keeps each together; groups that would depend on themselves
 * are given up.
 */
export function groupNodes(
  order: readonly Node[],
  users: ReadonlyMap<Node, readonly Node[]>,
  outputs: ReadonlySet<Node>,
  split: Map<Node, number>,
  target: Target,
): GroupOrder {
  if (!weighsScores(order)) return { order, home: new Map() };
  const findGroups = attentionFinder.value;
  for (;;) {
    const placed = orderByGroups(order, findGroups(order, users, outputs, split, target.matrixUnits));
    if (!('cyclic' in placed)) return placed;
    placed.cyclic.forEach((group) => giveUp(group, split));
  }
}

/**
 * First a group's products of rows are left to other kernels, then its products are computed as separate kernels, then it is given
 * up.
 */
export function giveUp(group: AttentionGroup, split: Map<Node, number>): void {
  if (group.rowProducts.length > 0) {
    for (const node of group.rowProducts) split.set(node as Node, 2);
    return;
  }
  const times = group.outers.length > 1 ? 1 : 2;
  for (const { node } of group.outers) split.set(node as Node, times);
}
