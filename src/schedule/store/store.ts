// Which values reach memory. Members that other kernels read do, unless those can compute them again from what is stored
// anyway for less than the traffic (rematerialisation). Free nodes are computed inline by default and stored where the cost
// model finds that cheaper (heavy work evaluated at many points, or by several kernels). A stored free node rides along in a
// kernel that computes it at every point anyway, else it goes to a map kernel, grouped with its siblings.

import { dims, type Graph, type Node } from '../../ir/graph.ts';
import { facts, isElementwise } from '../../ir/ops.ts';
import { sizeOf } from '../../ir/shape.ts';
import { nodeBytes } from '../cost.ts';
import { contractExtents } from '../cluster/domain.ts';
import type { Clustering } from '../cluster/cluster.ts';
import { isThroughView, keyOf, type Cluster, type Piece, type Place } from '../cluster/place.ts';
import type { Keeping } from '../cluster/refusal.ts';
import { sourcesOf } from './rematerialise.ts';
import type { Indices } from '../body/evaluate.ts';
import type { Target } from '../target.ts';

export interface Storage {
  /** Members and attached free nodes each cluster writes. */
  readonly clusterWrites: ReadonlyMap<Cluster, ReadonlyMap<Node, Indices>>;
  /** Parts of concatenations that a cluster's kernel writes where the whole lies. */
  readonly pieces: ReadonlyMap<Cluster, readonly Piece[]>;
  /** Free nodes that map kernels compute. */
  readonly mapped: readonly Node[];
  /** Every node in memory that a kernel computes. */
  readonly stored: ReadonlySet<Node>;
  /** Why each of them is, rather than computed by its readers. */
  readonly kept: ReadonlyMap<Node, Keeping>;
}

/** Rows or columns of results that one reading of an operand serves. */
const tileWidth = 8;

/** Kernels that evaluate a node from outside its cluster, with the number of points each evaluates it at. */
type Uses = Map<Cluster | Node, number>;

/** Decides what is stored and by which kernel. The clusters of `strict` anchors must not store more than they have room for. */
export function chooseStorage(
  graph: Graph,
  clustering: Clustering,
  target: Target,
  strict: ReadonlySet<Node> = new Set(),
): Storage {
  const { order, places, users, again } = clustering;
  const outputs = new Set(graph.outputs);
  const clusterWrites = new Map<Cluster, Map<Node, Indices>>(
    clustering.clusters.map((cluster) => [cluster, new Map()]),
  );
  const mapped: Node[] = [];
  const stored = new Set<Node>();
  const kept = new Map<Node, Keeping>();
  const uses = new Map<Node, Uses>();
  const pieces = new Map<Cluster, Piece[]>();
  /** Concatenations that are put together where they lie: their parts need not be stored for them. */
  const assembled = new Set<Node>();

  /** The clusters that compute stored free nodes. */
  const hosts = new Map<Node, Cluster>();
  /** What map kernels read, by the node they compute. */
  const mapReads = new Map<Node, Set<Node>>();
  /** Members that a dropped value is computed from again, and the kernels that do so. */
  const inherited = new Map<Node, Uses>();
  const writeBound = new Map<Cluster, number>();
  for (const cluster of clustering.clusters) {
    writeBound.set(
      cluster,
      [...cluster.members.keys()].filter((node) => leavesCluster(node, cluster)).length,
    );
  }

  for (const node of order.toReversed()) {
    const place = places.get(node)!;
    if (place.kind === 'leaf') continue;
    const mine = collectUses(node);
    uses.set(node, mine);
    if (place.kind === 'member') {
      const { cluster } = place;
      if (!leavesCluster(node, cluster) && !inherited.has(node)) continue;
      if (rematerialised(node, cluster, mine)) continue;
      clusterWrites.get(cluster)!.set(node, cluster.members.get(node)!);
      stored.add(node);
      continue;
    }
    if (place.kind === 'stored' && place.pieces !== undefined) {
      stored.add(node);
      assembled.add(node);
      keep(node, { rule: 'loops' });
      for (const piece of place.pieces)
        pieces.set(piece.cluster, [...(pieces.get(piece.cluster) ?? []), piece]);
      continue;
    }
    const keeping = keepingOfFree(node, place, mine);
    if (keeping === undefined) continue;
    keep(node, keeping);
    stored.add(node);
    const host = outputs.has(node) && mine.size === 0 ? undefined : hostFor(node, mine);
    if (host === undefined) mapped.push(node);
    else {
      const { cluster, at, reads } = host;
      clusterWrites.get(cluster)!.set(node, at);
      writeBound.set(cluster, writeBound.get(cluster)! + 1);
      cluster.members.set(node, at);
      cluster.hosted.add(node);
      cluster.reads.delete(node);
      for (const read of reads) cluster.reads.add(read);
      hosts.set(node, cluster);
    }
  }
  return { clusterWrites, pieces, mapped: mapped.reverse(), stored, kept };

  /** A member that something outside reads, directly or by looking through views of it. */
  function leavesCluster(node: Node, cluster: Cluster): boolean {
    if (outputs.has(node)) return true;
    if (isThroughView(node)) return false;
    return (
      (users.get(node) ?? []).some((user) => readsFromOutside(user, node, cluster)) ||
      feedsEscapedView(node, cluster)
    );
  }

  /**
   * Drops a member that its readers compute again, when that is cheaper than storing it and all it needs is in memory anyway
   * (or is small, as a row's statistics are). The readers then depend on what it is computed from.
   */
  function rematerialised(node: Node, cluster: Cluster, readers: Uses): boolean {
    if (!isElementwise(node.op)) return keep(node, { rule: isThroughView(node) ? 'output' : 'loops' });
    if (outputs.has(node)) return keep(node, { rule: 'output' });
    const sources = sourcesOf(
      node,
      cluster,
      places,
      outputs,
      (member) => leavesCluster(member, cluster),
      (keeping) => keep(node, keeping),
    );
    if (sources === undefined) return false;
    // What it is computed from is stored in its place.
    const instead = [...sources.nodes].filter(
      (source) => cluster.members.has(source) && !leavesCluster(source, cluster) && !inherited.has(source),
    );
    const writes = writeBound.get(cluster)! + instead.length - 1;
    const bindings = cluster.reads.size + writes;
    if (strict.has(keyOf(cluster)) && bindings > target.limits.storageBuffers)
      return keep(node, { rule: 'bindings', count: bindings, limit: target.limits.storageBuffers });
    const bytes = nodeBytes(node);
    const size = Math.max(1, sizeOf(dims(node)));
    let extra = 0;
    let saved = bytes / target.bandwidth;
    for (const [reader, points] of readers) {
      const reads = readsOfKernel(reader);
      const fresh = [...sources.nodes].filter((source) => !reads.has(source));
      const bound = 'op' in reader ? 1 : writeBound.get(reader)!;
      const count = reads.size - (reads.has(node) ? 1 : 0) + fresh.length + bound;
      const limit = target.limits.storageBuffers;
      if (count > limit) return keep(node, { rule: 'bindings', count, limit });
      // A contraction reads its operands once a tile.
      const repeats = Math.max(1, points / size);
      if (repeats > 1 && fresh.length > 1)
        return keep(node, { rule: 'tiles', tiles: Math.ceil(repeats), values: fresh.length });
      extra += (repeats * fresh.reduce((sum, source) => sum + nodeBytes(source), 0)) / target.bandwidth;
      extra += (points * sources.work) / target.arithmetic;
      saved += (repeats * bytes) / target.bandwidth;
    }
    if (extra >= saved)
      return keep(node, { rule: 'cost', again: extra, stored: saved, kernels: readers.size });
    if (strict.has(keyOf(cluster))) writeBound.set(cluster, writes);
    for (const [reader, points] of readers) {
      const reads = readsOfKernel(reader);
      reads.delete(node);
      for (const source of sources.nodes) reads.add(source);
      for (const source of sources.nodes) {
        const into = inherited.get(source) ?? new Map();
        inherited.set(source, into);
        addUse(into, reader, points);
      }
    }
    return true;
  }

  /** Notes why a value stays in memory. */
  function keep(node: Node, keeping: Keeping): false {
    kept.set(node, keeping);
    return false;
  }

  /** Why a free node is stored; undefined when its readers compute it inline. */
  function keepingOfFree(node: Node, place: Place, readers: Uses): Keeping | undefined {
    if (place.kind !== 'free') return clustering.overflows.get(node) ?? { rule: 'output' };
    if (outputs.has(node)) return { rule: 'output' };
    const { inline, store } = storingCost(node, place, readers, target);
    return store < inline ? { rule: 'cost', again: inline, stored: store, kernels: readers.size } : undefined;
  }

  /** What a cluster, or the map kernel of a free node, reads: kept as values are dropped. */
  function readsOfKernel(reader: Cluster | Node): Set<Node> {
    if (!('op' in reader)) return reader.reads;
    const known = mapReads.get(reader);
    if (known !== undefined) return known;
    const place = places.get(reader)!;
    const reads = new Set(place.kind === 'free' || place.kind === 'stored' ? place.reads : []);
    mapReads.set(reader, reads);
    return reads;
  }

  /** Attention kernels compute the scores they share again, and read what else those are made of. */
  function readsFromOutside(user: Node, node: Node, cluster: Cluster): boolean {
    if (assembled.has(user)) return false;
    const place = places.get(user)!;
    if (place.kind !== 'member') return true;
    const reads = (other: Cluster): boolean => other !== cluster && other.group?.members.has(node) !== true;
    return reads(place.cluster) || (again.get(user) ?? []).some(reads);
  }

  /** A view inside the cluster whose readers outside look through it to this node. */
  function feedsEscapedView(node: Node, cluster: Cluster): boolean {
    if (isThroughView(node)) return false;
    const stack = (users.get(node) ?? []).filter((user) => isThroughView(user) && cluster.members.has(user));
    for (let view = stack.pop(); view !== undefined; view = stack.pop()) {
      if (outputs.has(view)) continue;
      for (const user of users.get(view) ?? []) {
        if (readsFromOutside(user, view, cluster)) return true;
        if (isThroughView(user)) stack.push(user);
      }
    }
    return false;
  }

  function collectUses(node: Node): Uses {
    const mine: Uses = new Map(inherited.get(node));
    const home = places.get(node)!;
    const size = sizeOf(dims(node));
    for (const user of users.get(node) ?? []) {
      const place = places.get(user)!;
      for (const other of again.get(user) ?? [])
        if (!other.members.has(node)) addUse(mine, other, pointsOf(user, node, other, target));
      const together = place.kind === 'member' && home.kind === 'member' && place.cluster === home.cluster;
      if (together) {
        // Readers outside look through views; what a dropped member's readers need is in `inherited`.
        if (isThroughView(user)) for (const [kernel, points] of uses.get(user)!) addUse(mine, kernel, points);
      } else if (place.kind === 'member')
        addUse(mine, place.cluster, pointsOf(user, node, place.cluster, target));
      else if (stored.has(user)) addUse(mine, hosts.get(user) ?? user, sizeOf(dims(user)));
      else for (const [kernel, points] of uses.get(user) ?? []) addUse(mine, kernel, size === 1 ? 1 : points);
    }
    return mine;
  }

  /** A cluster that evaluates the node at every one of its elements and runs before all its other readers. */
  function hostFor(
    node: Node,
    mine: Uses,
  ): { cluster: Cluster; at: Indices; reads: ReadonlySet<Node> } | undefined {
    const overflow = clustering.overflows.get(node);
    if (overflow !== undefined && overflow.rule !== 'bindings') return undefined;
    const own = readsOfKernel(node);
    for (const user of users.get(node) ?? []) {
      const place = places.get(user)!;
      if (place.kind !== 'member') continue;
      const { cluster } = place;
      // Weights are evaluated at (row, key), where an attention kernel stores nothing.
      if (cluster.group?.members.has(user) === true) continue;
      const at = evaluatedAt(user, node, cluster);
      const first = [...mine.keys()].every(
        (other) => other === cluster || rankOfKernel(other) > cluster.rank,
      );
      const reads = new Set([...cluster.reads, ...own]);
      reads.delete(node);
      const room = reads.size + writeBound.get(cluster)! + 1 < target.limits.storageBuffers;
      if (at !== undefined && first && room) return { cluster, at, reads };
    }
    return undefined;
  }

  function rankOfKernel(kernel: Cluster | Node): number {
    if (!('op' in kernel)) return kernel.rank;
    const place = places.get(kernel)!;
    return place.kind === 'free' || place.kind === 'stored' ? place.rank : 0;
  }
}

function addUse(uses: Uses, kernel: Cluster | Node, points: number): void {
  uses.set(kernel, Math.max(uses.get(kernel) ?? 0, points));
}

/**
 * Points at which a member evaluates an input from outside its cluster: a contraction re-reads each operand once per tile, a
 * sort by counting each key once per element of its line, a search its boundaries once a step of each value.
 */
function pointsOf(user: Node, input: Node, cluster: Cluster, target: Target): number {
  const size = sizeOf(dims(input));
  if (user.op === 'argSort' && !target.cooperative) return size * dims(user)[user.attrs.axis]!;
  if (user.op === 'searchSorted' && user.inputs[0] === input)
    return sizeOf(dims(user)) * Math.ceil(Math.log2(dims(input).at(-1)! + 1));
  if (user.op !== 'dot' && user.op !== 'conv') {
    const isProduct = cluster.kind === 'dot' || cluster.kind === 'conv';
    // What is the same along a row of results, as a bias is, is computed once a row of a tile.
    if (isProduct && input.op === 'broadcast')
      return Math.max(sizeOf(dims(input.inputs[0]!)), Math.ceil(size / tileWidth));
    return size === 1 ? 1 : Math.max(size, sizeOf(dims(user)));
  }
  const { m, n } = contractExtents(user);
  const across = user.inputs[0] === input ? n : m;
  // Every row of an attention kernel goes through the keys for itself.
  return size * Math.max(1, Math.ceil(across / (cluster.group === undefined ? tileWidth : 1)));
}

/** Where the cluster evaluates `node` for its direct user, when that covers each element exactly once. */
function evaluatedAt(user: Node, node: Node, cluster: Cluster): Indices | undefined {
  if (isElementwise(user.op)) return cluster.members.get(user);
  const full = cluster.full;
  if (user.op !== 'reduce' || full === undefined) return undefined;
  return dims(node).every((dim, axis) => dim === full.shape[axis]) ? full.at : undefined;
}

/** µs to compute a free node wherever it is read, and to store and read it. */
function storingCost(
  node: Node,
  place: { readonly closure: ReadonlySet<Node>; readonly reads: ReadonlySet<Node> },
  uses: Uses,
  target: Target,
): { readonly inline: number; readonly store: number } {
  // A view costs no arithmetic: if anything is worth storing, it is what it views.
  const kind = facts(node.op).class;
  if (uses.size === 0 || kind === 'source' || kind === 'view') return { inline: 0, store: 0 };
  const size = sizeOf(dims(node));
  let work = 0;
  for (const inner of place.closure) if (sizeOf(dims(inner)) > 1) work += facts(inner.op).flops;
  let reads = 0;
  for (const read of place.reads) reads += nodeBytes(read);
  const bytes = nodeBytes(node);
  let inline = 0;
  for (const points of uses.values())
    inline += reads / target.bandwidth + (points * work) / target.arithmetic;
  const once = reads / target.bandwidth + (size * work) / target.arithmetic;
  return { inline, store: once + ((1 + uses.size) * bytes) / target.bandwidth + target.launch };
}
