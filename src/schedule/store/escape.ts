// Which members of a cluster are read by other kernels: directly, by attention kernels that compute
// their readers again, or through views, which are not stored themselves.

import type { Node } from '../../ir/graph.ts';
import type { Clustering } from '../cluster/cluster.ts';
import { isThroughView, type Cluster } from '../cluster/place.ts';

/** Finds which members are read by nodes outside of their cluster. */
export class Escapes {
  readonly #clustering: Clustering;
  readonly #outputs: ReadonlySet<Node>;
  /**
   * Concatenations whose parts are written directly into their buffer: they read no stored parts.
   */
  readonly #assembled: ReadonlySet<Node>;

  constructor(clustering: Clustering, outputs: ReadonlySet<Node>, assembled: ReadonlySet<Node>) {
    this.#clustering = clustering;
    this.#outputs = outputs;
    this.#assembled = assembled;
  }

  /** Whether something outside reads the member, directly or by looking through views of it. */
  leaves(node: Node, cluster: Cluster): boolean {
    if (this.#outputs.has(node)) return true;
    if (isThroughView(node)) return false;
    return (
      this.#usersOf(node).some((user) => this.#readsFromOutside(user, node, cluster)) ||
      this.#feedsEscapedView(node, cluster)
    );
  }

  /** Attention kernels recompute scores that they share, and read the other inputs of these. */
  #readsFromOutside(user: Node, node: Node, cluster: Cluster): boolean {
    if (this.#assembled.has(user)) return false;
    const { places, recomputedIn } = this.#clustering;
    const place = places.get(user)!;
    if (place.kind !== 'member') return true;
    const reads = (other: Cluster): boolean => other !== cluster && other.group?.members.has(node) !== true;
    return reads(place.cluster) || (recomputedIn.get(user) ?? []).some(reads);
  }

  /** Whether a view inside the cluster has readers outside, which look through it to this node. */
  #feedsEscapedView(node: Node, cluster: Cluster): boolean {
    const stack = this.#usersOf(node).filter((user) => isThroughView(user) && cluster.members.has(user));
    for (let view = stack.pop(); view !== undefined; view = stack.pop()) {
      if (this.#outputs.has(view)) continue;
      for (const user of this.#usersOf(view)) {
        if (this.#readsFromOutside(user, view, cluster)) return true;
        if (isThroughView(user)) stack.push(user);
      }
    }
    return false;
  }

  #usersOf(node: Node): readonly Node[] {
    return this.#clustering.users.get(node) ?? [];
  }
}
