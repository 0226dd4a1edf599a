// Clustering: which nodes share a kernel. Nodes are visited in recording order. An anchor (dot, conv, reduce, scan, scatter)
// opens a cluster with an iteration domain; an elementwise node or bijective view of a member joins it when its own indices
// are known at every point of that domain (its *alignment*), which makes it an epilogue, or, after a reduction is broadcast
// back over its row, a later stage of the same row kernel. Everything else stays free: computed inline where it is read.
//
// Acyclicity by ranks: clusters are numbered as they open, and a node joins only the highest-ranked cluster among all it
// depends on, so a cluster reads from lower ranks only. A free node depending on a member of rank r has rank r + ½.

import { CompilerBug } from '../errors.ts';
import { dims, topological, type Graph, type Node } from '../ir/graph.ts';
import { axisIndex, constantIndex, delinearize, linearize, type IndexExpr } from '../ir/index-expr.ts';
import { facts, isElementwise } from '../ir/ops.ts';
import { sizeOf } from '../ir/shape.ts';
import { viewIndices, type Indices } from './evaluate.ts';
import type { Axis } from './kernel.ts';
import { overflowCut } from './overflow.ts';
import { isThroughView, type AnchorKind, type Cluster, type Inline, type Place } from './place.ts';
import type { Target } from './target.ts';

export interface Clustering {
  readonly order: readonly Node[];
  readonly users: ReadonlyMap<Node, readonly Node[]>;
  readonly places: ReadonlyMap<Node, Place>;
  readonly clusters: readonly Cluster[];
}

/** Expression nodes one kernel may hold: generated code stays readable, and pipelines compile in bounded time. */
export const kernelNodeLimit = 192;

/** Different points one kernel may evaluate an inlined node at. */
const contextLimit = 48;

const none: ReadonlySet<Node> = new Set();

export function makeAxis(name: string, extent: number): Axis {
  return { name, extent, atom: extent <= 1 ? constantIndex(0) : axisIndex(name, extent) };
}

/**
 * Assigns every node reachable from the outputs a place. Nodes join freely first; where a kernel would then write more buffers
 * than it may bind, the latest joined are barred and the pass runs again. Values that readers can likely compute again do not
 * count as written, but for the clusters of `strict` anchors.
 */
export function clusterNodes(
  graph: Graph,
  target: Target,
  scalars: ReadonlySet<Node>,
  strict: ReadonlySet<Node> = new Set(),
): Clustering {
  const order = topological(graph.outputs);
  const users = usersOf(order);
  const outputs = new Set(graph.outputs);
  const cuts = new Map<Node, number>();
  for (let round = 0; round < 40; round++) {
    const pass = new ClusterPass(graph, target, scalars, cuts);
    for (const node of order) pass.visit(node);
    const before = cuts.size === 0 ? -1 : [...cuts.values()].reduce((sum, id) => sum + id, 0);
    for (const cluster of pass.clusters) {
      const cut = overflowCut(
        cluster,
        users,
        outputs,
        target.limits.storageBuffers,
        pass.places,
        (node) => pass.readsOf(node),
        strict,
      );
      if (cut !== undefined) cuts.set(cluster.anchors[0]!, cut);
    }
    const after = cuts.size === 0 ? -1 : [...cuts.values()].reduce((sum, id) => sum + id, 0);
    if (before === after) return { order, users, places: pass.places, clusters: pass.clusters };
  }
  throw new CompilerBug('cluster', 'kernels do not settle within the binding limit');
}

/** The nodes that read each node. */
function usersOf(order: readonly Node[]): Map<Node, Node[]> {
  const users = new Map<Node, Node[]>();
  for (const node of order) {
    for (const input of new Set(node.inputs)) {
      const list = users.get(input);
      if (list === undefined) users.set(input, [node]);
      else list.push(node);
    }
  }
  return users;
}

class ClusterPass {
  readonly places = new Map<Node, Place>();
  readonly clusters: Cluster[] = [];
  readonly #target: Target;
  readonly #scalars: ReadonlySet<Node>;
  readonly #outputs: ReadonlySet<Node>;
  /** Latest node that may join the cluster of an anchor: set where more would overflow its kernel. */
  readonly #cuts: ReadonlyMap<Node, number>;
  /** Row clusters by the shape and axes they reduce. */
  readonly #rows = new Map<string, Cluster[]>();

  constructor(graph: Graph, target: Target, scalars: ReadonlySet<Node>, cuts: ReadonlyMap<Node, number>) {
    this.#target = target;
    this.#scalars = scalars;
    this.#outputs = new Set(graph.outputs);
    this.#cuts = cuts;
  }

  visit(node: Node): void {
    this.places.set(node, this.#place(node));
  }

  #place(node: Node): Place {
    // Nothing is computed for an empty tensor, and nothing can read from it.
    if (sizeOf(dims(node)) === 0) return { kind: 'free', rank: 0, closure: none, reads: none, contexts: 0 };
    switch (node.op) {
      case 'parameter':
        return this.#scalars.has(node)
          ? { kind: 'free', rank: 0, closure: none, reads: none, contexts: 0 }
          : { kind: 'leaf' };
      case 'reduce':
      case 'argReduce':
        return this.#joinRow(node) ?? this.#openRow(node);
      case 'dot':
      case 'conv':
        return this.#openContract(node);
      case 'scan':
        return this.#openScan(node);
      case 'scatter':
        return this.#openScatter(node);
      default:
        return this.#join(node) ?? this.#free(node);
    }
  }

  /** Rank of what a reader of `node` depends on. */
  rankOf(node: Node): number {
    const place = this.places.get(node)!;
    switch (place.kind) {
      case 'leaf':
        return 0;
      case 'member':
        return place.cluster.rank;
      case 'free':
      case 'stored':
        return place.rank;
      default:
        return place satisfies never;
    }
  }

  /** The stored nodes that reading `node` inline touches. Views of members are looked through, never stored themselves. */
  readsOf(node: Node): ReadonlySet<Node> {
    const place = this.places.get(node)!;
    if (place.kind === 'free') return place.reads;
    if (place.kind === 'member' && isThroughView(node) && !this.#outputs.has(node))
      return this.readsOf(node.inputs[0]!);
    return new Set([node]);
  }

  #free(node: Node): Place {
    let place = this.#inline(node);
    if (!this.#fits(place)) {
      // Too much for one kernel: the heaviest free inputs are stored until the rest fits.
      const weight = (input: Node): number => {
        const at = this.places.get(input)!;
        return at.kind === 'free' ? at.closure.size + at.contexts + 64 * at.reads.size : 0;
      };
      for (const input of [...new Set(node.inputs)].sort((x, y) => weight(y) - weight(x))) {
        this.#store(input);
        place = this.#inline(node);
        if (this.#fits(place)) break;
      }
    }
    return place;
  }

  /** What computing the node inline would drag along. */
  #inline(node: Node): Inline {
    let rank = 0;
    let [pointwise, viewed] = [isElementwise(node.op) ? 1 : 0, 0];
    const closure = new Set<Node>([node]);
    const reads = new Set<Node>();
    for (const input of new Set(node.inputs)) {
      const place = this.places.get(input)!;
      rank = Math.max(rank, place.kind === 'member' ? place.cluster.rank + 0.5 : this.rankOf(input));
      for (const read of this.readsOf(input)) reads.add(read);
      if (place.kind !== 'free') continue;
      for (const inner of place.closure) closure.add(inner);
      if (isElementwise(input.op)) pointwise = Math.max(pointwise, place.contexts);
      else viewed += place.contexts;
    }
    return { kind: 'free', rank, closure, reads, contexts: pointwise + viewed };
  }

  #fits(place: Inline): boolean {
    const room = this.#target.limits.storageBuffers - 1;
    return (
      place.closure.size <= kernelNodeLimit && place.reads.size <= room && place.contexts <= contextLimit
    );
  }

  /** Has a free node stored; a view hands this on to what it views, for views cost nothing to repeat. */
  #store(node: Node): void {
    const place = this.places.get(node)!;
    if (place.kind !== 'free' || place.closure.size === 0 || facts(node.op).class === 'source') return;
    this.places.set(node, { kind: 'stored', rank: place.rank });
  }

  /** Tries to make an elementwise node or view a member of the highest-ranked cluster it depends on. */
  #join(node: Node): Place | undefined {
    let best: Cluster | undefined;
    let rank = 0;
    for (const input of node.inputs) {
      const place = this.places.get(input)!;
      rank = Math.max(rank, this.rankOf(input));
      if (place.kind === 'member' && (best === undefined || place.cluster.rank > best.rank))
        best = place.cluster;
    }
    if (best === undefined || best.rank < rank || best.kind === 'scatter') return undefined;
    const at = align(node, best);
    if (at === undefined || !this.#admit(node, best)) return undefined;
    best.members.set(node, at);
    return { kind: 'member', cluster: best };
  }

  /** Whether the cluster's kernel still fits its limits with `node` in it; if so its outside reads are entered. */
  #admit(node: Node, cluster: Cluster): boolean {
    const reads = new Set(cluster.reads);
    let size = cluster.members.size + 1;
    for (const input of node.inputs) {
      const place = this.places.get(input)!;
      if (place.kind === 'member' && place.cluster === cluster) continue;
      for (const read of this.readsOf(input)) reads.add(read);
      if (place.kind === 'free') size += place.closure.size;
    }
    const cut = this.#cuts.get(cluster.anchors[0]!) ?? Infinity;
    if (node.id > cut || size > kernelNodeLimit || reads.size >= this.#target.limits.storageBuffers)
      return false;
    for (const read of reads) cluster.reads.add(read);
    return true;
  }

  #open(
    node: Node,
    kind: AnchorKind,
    axes: Record<string, Axis>,
    at: Indices,
    full?: Cluster['full'],
  ): Place {
    const cluster: Cluster = {
      rank: this.clusters.length + 1,
      kind,
      anchors: [node],
      axes,
      members: new Map([[node, at]]),
      ...(full === undefined ? {} : { full }),
      hosted: new Set(),
      reads: new Set(),
    };
    // A prologue that would overflow the kernel's bindings is stored first.
    const room = this.#target.limits.storageBuffers - 1;
    const reads = new Set<Node>();
    for (const input of node.inputs) for (const read of this.readsOf(input)) reads.add(read);
    if (reads.size > room) node.inputs.forEach((input) => this.#store(input));
    for (const input of node.inputs) for (const read of this.readsOf(input)) cluster.reads.add(read);
    this.clusters.push(cluster);
    return { kind: 'member', cluster };
  }

  #openRow(node: Node): Place {
    const shape = dims(node.inputs[0]!);
    const axes = reducedAxes(node);
    const kept = shape.filter((_, axis) => !axes.includes(axis));
    const row = makeAxis('row', sizeOf(kept));
    const column = makeAxis('col', sizeOf(axes.map((axis) => shape[axis]!)));
    const outer = delinearize(row.atom, kept);
    const inner = delinearize(
      column.atom,
      axes.map((axis) => shape[axis]!),
    );
    let [o, i] = [0, 0];
    const at = shape.map((_, axis) => (axes.includes(axis) ? inner[i++]! : outer[o++]!));
    const place = this.#open(node, 'row', { row, column }, outer, { shape, axes, at });
    const key = rowKey(shape, axes);
    const list = this.#rows.get(key) ?? [];
    this.#rows.set(key, list);
    if (place.kind === 'member') list.push(place.cluster);
    return place;
  }

  /** A reduction whose input is a member of (or shares reads with) a row cluster over the same shape and axes. */
  #joinRow(node: Node): Place | undefined {
    const input = node.inputs[0]!;
    const place = this.places.get(input)!;
    const shape = dims(input);
    const axes = reducedAxes(node);
    const rank = this.rankOf(input);
    for (const cluster of (this.#rows.get(rowKey(shape, axes)) ?? []).slice(-4).toReversed()) {
      const full = cluster.full!;
      const isMember = place.kind === 'member' && place.cluster === cluster;
      if (isMember ? !sameIndices(cluster.members.get(input)!, full.at) : rank >= cluster.rank) continue;
      if (
        !isMember &&
        ![...this.readsOf(input)].some((read) => cluster.reads.has(read) && sizeOf(dims(read)) > 1)
      )
        continue;
      if (!this.#admit(node, cluster)) continue;
      const kept = full.at.filter((_, axis) => !axes.includes(axis));
      cluster.members.set(node, kept);
      cluster.anchors.push(node);
      return { kind: 'member', cluster };
    }
    return undefined;
  }

  #openContract(node: Node): Place {
    const shape = dims(node);
    if (node.op === 'dot') {
      const batchRank = node.attrs.lhsBatch.length;
      const mRank = node.inputs[0]!.shape.length - batchRank - node.attrs.lhsContract.length;
      const parts = [
        shape.slice(0, batchRank),
        shape.slice(batchRank, batchRank + mRank),
        shape.slice(batchRank + mRank),
      ];
      const [batch, m, n] = (['batch', 'm', 'n'] as const).map((name, i) =>
        makeAxis(name, sizeOf(parts[i]!)),
      );
      const k = makeAxis('k', sizeOf(node.attrs.lhsContract.map((axis) => dims(node.inputs[0]!)[axis]!)));
      const at = [batch, m, n].flatMap((axis, i) => delinearize(axis!.atom, parts[i]!));
      return this.#open(node, 'dot', { batch: batch!, m: m!, n: n!, k }, at);
    }
    // conv [N,O,S…]: batch = (N, group), m = output channel in its group, n = position, k = (channel, window).
    const groups = node.op === 'conv' ? node.attrs.groups : 1;
    const [count, channels, ...space] = shape;
    const batch = makeAxis('batch', count! * groups);
    const m = makeAxis('m', channels! / groups);
    const n = makeAxis('n', sizeOf(space));
    const k = makeAxis('k', sizeOf(dims(node.inputs[1]!).slice(1)));
    const [image, group] = delinearize(batch.atom, [count!, groups]);
    const channel = linearize([group!, m.atom], [groups, channels! / groups]);
    return this.#open(node, 'conv', { batch, m, n, k }, [image!, channel, ...delinearize(n.atom, space)]);
  }

  #openScan(node: Node): Place {
    const shape = dims(node);
    const along = node.op === 'scan' ? node.attrs.axis : 0;
    const rest = shape.filter((_, axis) => axis !== along);
    const line = makeAxis('line', sizeOf(rest));
    const position = makeAxis('pos', shape[along]!);
    const outer = delinearize(line.atom, rest);
    let o = 0;
    const at = shape.map((_, axis) => (axis === along ? position.atom : outer[o++]!));
    return this.#open(node, 'scan', { line, position }, at);
  }

  #openScatter(node: Node): Place {
    const shape = dims(node);
    const along = node.op === 'scatter' ? node.attrs.axis : 0;
    const rest = shape.filter((_, axis) => axis !== along);
    const line = makeAxis('line', sizeOf(rest));
    const slot = makeAxis('slot', shape[along]!);
    const update = makeAxis('upd', dims(node.inputs[1]!)[along]!);
    const outer = delinearize(line.atom, rest);
    let o = 0;
    const at = shape.map((_, axis) => (axis === along ? slot.atom : outer[o++]!));
    return this.#open(node, 'scatter', { line, slot, update }, at);
  }
}

export function reducedAxes(node: Node): readonly number[] {
  return node.op === 'reduce' ? node.attrs.axes : node.op === 'argReduce' ? [node.attrs.axis] : [];
}

function rowKey(shape: readonly number[], axes: readonly number[]): string {
  return `${shape.join(',')}/${axes.join(',')}`;
}

function sameIndices(a: Indices, b: Indices): boolean {
  return a.length === b.length && a.every((index, axis) => index === b[axis]);
}

/** The node's indices at the cluster's current point, derived from its member inputs; undefined when they are not unique. */
function align(node: Node, cluster: Cluster): Indices | undefined {
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

/** A per-row value spread over its row again: aligned when reading it back at the row's indices gives the same value. */
function alignBroadcast(node: Node, from: Indices, cluster: Cluster): Indices | undefined {
  const shape = dims(node);
  if (shape.length === from.length && sizeOf(shape) === sizeOf(dims(node.inputs[0]!))) return from;
  const candidates: Indices[] = cluster.full === undefined ? [] : [cluster.full.at];
  for (const [member, at] of cluster.members) {
    if (member.op === 'reshape' || member.op === 'permute') candidates.push(at);
    if (candidates.length >= 6) break;
  }
  for (const at of candidates) {
    const fits =
      at.length === shape.length &&
      at.every((index, axis) => fitsAxis(index, shape[axis]!, cluster, at, axis));
    if (fits && sameIndices(viewIndices(node, at), from)) return at;
  }
  return undefined;
}

function fitsAxis(_: IndexExpr, dim: number, cluster: Cluster, at: Indices, axis: number): boolean {
  if (cluster.full !== undefined && at === cluster.full.at) return cluster.full.shape[axis] === dim;
  for (const [member, indices] of cluster.members) if (indices === at) return dims(member)[axis] === dim;
  return false;
}
