// Which members of a fusion group are read by other kernels: directly, by attention kernels that compute
// their readers again, or through views, which are not stored themselves.

import type { Node } from '../../ir/graph.ts';
import type { Fusion } from '../fusion/fusion.ts';
import { isThroughView, type FusionGroup } from '../fusion/place.ts';

/** Finds which members are read by nodes outside of their fusion group. */
export class Escapes {
  readonly #fusion: Fusion;
  readonly #outputs: ReadonlySet<Node>;
  /**
   * Concatenations whose parts are written directly into their buffer: they read no stored parts.
   */
  readonly #assembled: ReadonlySet<Node>;

  constructor(fusion: Fusion, outputs: ReadonlySet<Node>, assembled: ReadonlySet<Node>) {
    this.#fusion = fusion;
    this.#outputs = outputs;
    this.#assembled = assembled;
  }

  /** Whether something outside reads the member, directly or by looking through views of it. */
  leaves(node: Node, fusionGroup: FusionGroup): boolean {
    if (this.#outputs.has(node)) return true;
    if (isThroughView(node)) return false;
    return (
      this.#usersOf(node).some((user) => this.#readsFromOutside(user, node, fusionGroup)) ||
      this.#feedsEscapedView(node, fusionGroup)
    );
  }

  /** Attention kernels recompute scores that they share, and read the other inputs of these. */
  #readsFromOutside(user: Node, node: Node, fusionGroup: FusionGroup): boolean {
    if (this.#assembled.has(user)) return false;
    const { places, recomputedIn } = this.#fusion;
    const place = places.get(user)!;
    if (place.kind !== 'member') return true;
    const reads = (other: FusionGroup): boolean =>
      other !== fusionGroup && other.group?.members.has(node) !== true;
    return reads(place.fusionGroup) || (recomputedIn.get(user) ?? []).some(reads);
  }

  /** Whether a view inside the fusion group has readers outside, which look through it to this node. */
  #feedsEscapedView(node: Node, fusionGroup: FusionGroup): boolean {
    const stack = this.#usersOf(node).filter((user) => isThroughView(user) && fusionGroup.members.has(user));
    for (let view = stack.pop(); view !== undefined; view = stack.pop()) {
      if (this.#outputs.has(view)) continue;
      for (const user of this.#usersOf(view)) {
        if (this.#readsFromOutside(user, view, fusionGroup)) return true;
        if (isThroughView(user)) stack.push(user);
      }
    }
    return false;
  }

  #usersOf(node: Node): readonly Node[] {
    return this.#fusion.users.get(node) ?? [];
  }
}
