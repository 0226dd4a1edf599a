// Why kernels are separate: for every kernel that reads what another writes, why its work is not
// done there, and why it does not compute the value itself; for kernels that read the same large
// value, why they are not one. Takes a graph and its kernels, gives reasons as data. Nothing is
// decided here: the refusals that the rules recorded (cluster/refusal.ts) are joined with facts of
// the finished kernels.

import { dims, type Graph, type Node } from '../ir/graph.ts';
import { facts, hasLoops } from '../ir/ops.ts';
import { sizeOf } from '../ir/shape.ts';
import { nodeBytes } from './cost.ts';
import { reducedAxes } from './cluster/domain.ts';
import { argsOf, type Expr } from './expression/expr.ts';
import type { Kernel, KernelKind } from './kernel.ts';
import { unpacked } from './memory/pack.ts';
import type { Cluster } from './cluster/place.ts';
import type { StorageReason, Refusal } from './cluster/refusal.ts';
import type { KernelSchedule } from './schedule.ts';
import type { Target } from './target.ts';

/** The iteration space of a kernel, for comparison: its kind and the extents of its axes. */
export interface Loops {
  readonly kind: KernelKind;
  readonly extents: Readonly<Record<string, number>>;
  /** Of several kernels in one dispatch, those of each. */
  readonly parts?: readonly Loops[];
}

/** What a reduction folds: these axes of this shape. */
export interface ReductionShape {
  readonly shape: readonly number[];
  readonly axes: readonly number[];
}

/**
 * Why the second kernel's work is not done in the first: a rule, and the node of the second kernel
 * that met it.
 */
export type Reason =
  | (Exclude<Refusal, { rule: 'order' }> & { readonly node: Node })
  /**
   * It also needs a value of another kernel (an index; undefined where that value is nowhere
   * computed for itself).
   */
  | {
      readonly rule: 'order';
      readonly node: Node;
      readonly needs: Node;
      readonly kernel: number | undefined;
    }
  /**
   * Products, convolutions, scans, scatters and sorts run in loops made for them; none joins
   * another's.
   */
  | { readonly rule: 'own-loops'; readonly node: Node }
  /** A reduction needs rows to run over, and the first kernel has none. */
  | { readonly rule: 'no-rows'; readonly node: Node; readonly loops: Loops }
  | {
      readonly rule: 'axes';
      readonly node: Node;
      readonly own: ReductionShape;
      readonly theirs: ReductionShape;
    }
  /** A reduction joined a later kernel over the same rows. */
  | { readonly rule: 'joined'; readonly node: Node; readonly kernel: number }
  /** Of kernels over the same rows only the latest few are tried. */
  | { readonly rule: 'latest'; readonly node: Node }
  /** The iteration spaces differ, and kernels are not merged across spaces. */
  | { readonly rule: 'loops'; readonly first: Loops; readonly second: Loops }
  /**
   * Two maps of one size: the second needs a value at other points than those where the first
   * computes it.
   */
  | { readonly rule: 'points-differ'; readonly value: Node }
  /** Two maps of one size: the last kernels that they wait for differ (undefined: none). */
  | { readonly rule: 'stage'; readonly first: number | undefined; readonly second: number | undefined }
  /** Two maps of one size: one of its own kind was opened between them. */
  | { readonly rule: 'grouped' }
  /** The second depends on a kernel that depends on the first. */
  | { readonly rule: 'between'; readonly kernel: number }
  /** One kernel would bind more buffers than the target allows. */
  | { readonly rule: 'merged-bindings'; readonly count: number; readonly limit: number };

/** Two kernels that are not one. Indices are places in the schedule's list. */
export interface Separation {
  /** `reads`: the second reads the value that the first writes; `siblings`: both read it. */
  readonly relation: 'reads' | 'siblings';
  readonly first: number;
  readonly second: number;
  readonly value: Node;
  /** Why the second's work is not done in the first; at least one reason. */
  readonly reasons: readonly Reason[];
  /** Why the value is stored rather than computed again by the second; only of `reads`. */
  readonly kept: StorageReason | undefined;
}

/** A shared input counts as large when it is this part of what the smaller kernel moves. */
const largePart = 1 / 4;

/**
 * Every pair of kernels of which one reads what the other writes, or which both read something
 * large, with reasons.
 */
export function separations(graph: Graph, schedule: KernelSchedule, target: Target): Separation[] {
  const view = new View(graph, schedule, target);
  return [...readPairs(view), ...siblingPairs(view)];
}

/** A schedule with the look-ups that reasons need. */
class View {
  readonly kernels: readonly Kernel[];
  readonly schedule: KernelSchedule;
  readonly target: Target;
  readonly outputs: ReadonlySet<Node>;
  /** Kernel that writes each node. */
  readonly writer = new Map<Node, number>();
  readonly clusters: readonly (Cluster | undefined)[];
  readonly kernelOfCluster = new Map<Cluster, number>();
  readonly nodes: readonly ReadonlySet<Node>[];
  /** Kernels that each kernel waits for, directly or through others. */
  readonly before: ReadonlySet<number>[] = [];

  constructor(graph: Graph, schedule: KernelSchedule, target: Target) {
    const { storage, packs } = schedule;
    const kernels = schedule.kernels.map((kernel) => unpacked(kernel, packs));
    this.kernels = kernels;
    this.schedule = schedule;
    this.target = target;
    this.outputs = new Set(graph.outputs);
    const clusterOf = new Map<Node, Cluster>();
    for (const [cluster, writes] of storage.clusterWrites) {
      for (const node of writes.keys()) clusterOf.set(node, cluster);
    }
    this.clusters = kernels.map((kernel, i) => {
      const cluster = kernel.kind === 'map' ? undefined : clusterOf.get(kernel.writes[0]!.node);
      if (cluster !== undefined) this.kernelOfCluster.set(cluster, i);
      return cluster;
    });
    this.nodes = kernels.map((kernel) => new Set(kernel.nodes));
    kernels.forEach((kernel, i) => {
      const before = new Set<number>();
      for (const read of kernel.reads) {
        const from = this.writer.get(read);
        if (from === undefined) continue;
        before.add(from);
        for (const earlier of this.before[from]!) before.add(earlier);
      }
      this.before.push(before);
      for (const { node } of kernel.writes) this.writer.set(node, i);
    });
  }

  rankOf(node: Node): number {
    const place = this.schedule.clustering.places.get(node);
    if (place === undefined || place.kind === 'leaf') return 0;
    return place.kind === 'member' ? place.cluster.rank : place.rank;
  }

  /**
   * The kernel that a value comes from, or that the last of what it is computed from comes from.
   */
  kernelOf(node: Node): number | undefined {
    const written = this.writer.get(node);
    if (written !== undefined) return written;
    return this.kernelOfRank(this.rankOf(node));
  }

  /** The kernel of the cluster that a rank counts up to. */
  kernelOfRank(rank: number): number | undefined {
    const cluster = this.schedule.clustering.clusters[Math.floor(rank) - 1];
    return cluster === undefined ? undefined : this.kernelOfCluster.get(cluster);
  }

  /**
   * Whether clustering made the node a member; false if storage added it to the cluster's kernel.
   */
  joined(node: Node, cluster: Cluster): boolean {
    const place = this.schedule.clustering.places.get(node);
    return place?.kind === 'member' && place.cluster === cluster;
  }

  loops(kernel: number): Loops {
    return loopsOf(this.kernels[kernel]!);
  }
}

/** The iteration space of a kernel. */
export function loopsOf({ kind, body }: Kernel): Loops {
  if (body.kind === 'batched-dispatch') return { kind, extents: {}, parts: body.parts.map(loopsOf) };
  const extents: Record<string, number> = {};
  for (const part of Object.values(body) as readonly unknown[]) {
    if (typeof part === 'object' && part !== null && 'atom' in part && 'extent' in part && 'name' in part)
      extents[String(part.name)] = Number(part.extent);
  }
  return { kind, extents };
}

function readPairs(view: View): Separation[] {
  return view.kernels.flatMap((kernel, second) =>
    kernel.reads.flatMap((value): Separation[] => {
      const first = view.writer.get(value);
      if (first === undefined || first === second) return [];
      const kept = view.schedule.storage.kept.get(value);
      return [
        { relation: 'reads', first, second, value, reasons: whyNotThere(view, first, second, value), kept },
      ];
    }),
  );
}

/** Why the work of `second` that needs `value` is not done by `first`, which computes it. */
function whyNotThere(view: View, first: number, second: number, value: Node): readonly Reason[] {
  const cluster = view.clusters[first];
  if (cluster === undefined || !view.joined(value, cluster)) return whyTwo(view, first, second);
  const inside = view.nodes[second]!;
  // The first nodes on paths from the value that are not members of the first kernel's cluster.
  const frontier = new Set<Node>();
  const seen = new Set<Node>([value]);
  for (const node of seen) {
    for (const user of view.schedule.clustering.users.get(node) ?? []) {
      if (!inside.has(user)) continue;
      if (view.joined(user, cluster)) seen.add(user);
      else frontier.add(user);
    }
  }
  const reasons = [...frontier].flatMap((node) => whyFrontier(view, node, cluster, first, second));
  // What waits for the second kernel's own results is there because of what computes those.
  const causes = reasons.filter((reason) => reason.rule !== 'order' || reason.kernel !== second);
  const told = causes.length > 0 ? causes : reasons;
  return told.length === 0 ? whyTwo(view, first, second) : distinct(told);
}

/**
 * As `whyRefused`, of what reads a view where the view is no hindrance of its own: that would not
 * have joined either.
 */
function whyFrontier(
  view: View,
  node: Node,
  cluster: Cluster,
  first: number,
  second: number,
): readonly Reason[] {
  const own = whyRefused(view, node, cluster, first, second);
  if (facts(node.op).class !== 'view' || own?.rule !== 'alignment') return own === undefined ? [] : [own];
  const readers = new Set<Node>();
  const views = new Set<Node>([node]);
  for (const at of views) {
    for (const user of view.schedule.clustering.users.get(at) ?? []) {
      if (!view.nodes[second]!.has(user)) continue;
      if (facts(user.op).class === 'view') views.add(user);
      else readers.add(user);
    }
  }
  const theirs = [...readers].map((reader) =>
    isAnchor(reader) ? whyOtherLoops(view, reader, cluster, first, second) : undefined,
  );
  return theirs.map((reason) => {
    const isFinal = reason?.rule === 'own-loops' || reason?.rule === 'no-rows' || reason?.rule === 'axes';
    return isFinal ? reason : own;
  });
}

/** Why a node that depends on a member of the cluster is no member itself. */
function whyRefused(
  view: View,
  node: Node,
  cluster: Cluster,
  first: number,
  second: number,
): Reason | undefined {
  const noted = view.schedule.clustering.refused.get(node)?.find((entry) => entry.cluster === cluster);
  if (noted !== undefined) {
    const { refusal } = noted;
    if (refusal.rule !== 'order') return { ...refusal, node };
    return { rule: 'order', node, needs: refusal.needs, kernel: view.kernelOf(refusal.needs) };
  }
  if (isAnchor(node)) return whyOtherLoops(view, node, cluster, first, second);
  const later = node.inputs.find((input) => view.rankOf(input) > cluster.rank);
  if (later === undefined) return undefined;
  return { rule: 'order', node, needs: later, kernel: view.kernelOf(later) };
}

function whyOtherLoops(
  view: View,
  node: Node,
  cluster: Cluster,
  first: number,
  second: number,
): Reason | undefined {
  if (node.op !== 'reduce' && node.op !== 'argReduce') return { rule: 'own-loops', node };
  if (cluster.full === undefined) return { rule: 'no-rows', node, loops: view.loops(first) };
  const own = foldOf(node);
  const theirs = { shape: cluster.full.shape, axes: cluster.full.axes };
  if (!sameFold(own, theirs)) return { rule: 'axes', node, own, theirs };
  const place = view.schedule.clustering.places.get(node);
  // A kernel opened after the node was placed could not be asked.
  if (place?.kind !== 'member' || place.cluster.rank < cluster.rank) return undefined;
  return place.cluster.anchors[0] === node
    ? { rule: 'latest', node }
    : { rule: 'joined', node, kernel: view.kernelOfCluster.get(place.cluster) ?? second };
}

function siblingPairs(view: View): Separation[] {
  const readers = new Map<Node, number[]>();
  view.kernels.forEach((kernel, i) => {
    for (const read of kernel.reads) readers.set(read, [...(readers.get(read) ?? []), i]);
  });
  // Of all values that two kernels share, only the largest is reported.
  const shared = new Map<string, { first: number; second: number; value: Node }>();
  for (const [value, list] of readers) {
    for (const [k, second] of list.entries()) {
      for (const first of list.slice(0, k)) {
        const smallerBytes = Math.min(view.kernels[first]!.bytes, view.kernels[second]!.bytes);
        if (nodeBytes(value) < largePart * smallerBytes || related(view, first, second)) continue;
        const key = `${first}/${second}`;
        const known = shared.get(key);
        if (known === undefined || nodeBytes(value) > nodeBytes(known.value))
          shared.set(key, { first, second, value });
      }
    }
  }
  return [...shared.values()].map(({ first, second, value }) => ({
    relation: 'siblings',
    first,
    second,
    value,
    reasons: whyTwo(view, first, second),
    kept: undefined,
  }));
}

/** Whether one reads what the other writes. */
function related(view: View, first: number, second: number): boolean {
  const reads = (a: number, b: number): boolean =>
    view.kernels[a]!.reads.some((node) => view.writer.get(node) === b);
  return reads(second, first) || reads(first, second);
}

/**
 * Why two kernels, whatever passes between them, do not share loops: facts of the finished kernels.
 */
function whyTwo(view: View, first: number, second: number): readonly Reason[] {
  const between = [...view.before[second]!].find((kernel) => view.before[kernel]!.has(first));
  if (between !== undefined) return [{ rule: 'between', kernel: between }];
  const [one, two] = [view.kernels[first]!, view.kernels[second]!];
  const loops: Reason = { rule: 'loops', first: view.loops(first), second: view.loops(second) };
  if (one.kind !== two.kind) return [loops];
  if (one.kind === 'map') return whyTwoMaps(view, first, second);
  const [cluster, other] = [view.clusters[first], view.clusters[second]];
  const anchor = other?.anchors[0];
  if (cluster === undefined || other === undefined || anchor === undefined) return [loops];
  const noted = other.anchors.flatMap((node) => whyRefused(view, node, cluster, first, second) ?? []);
  if (noted.length > 0) return distinct(noted);
  const turned = cluster.anchors.flatMap((node) => whyRefused(view, node, other, second, first) ?? []);
  return turned.length > 0 ? distinct(turned) : [loops];
}

function whyTwoMaps(view: View, first: number, second: number): readonly Reason[] {
  const [one, two] = [view.kernels[first]!, view.kernels[second]!];
  const size = (kernel: Kernel): number => sizeOf(dims(kernel.writes[0]!.node));
  if (size(one) !== size(two))
    return [{ rule: 'loops', first: view.loops(first), second: view.loops(second) }];
  const rank = (kernel: Kernel): number => Math.max(...kernel.writes.map(({ node }) => view.rankOf(node)));
  if (rank(one) !== rank(two))
    return [{ rule: 'stage', first: view.kernelOfRank(rank(one)), second: view.kernelOfRank(rank(two)) }];
  const limit = view.target.limits.storageBuffers;
  const written = new Set([...one.writes, ...two.writes].map(({ node }) => node));
  const read = new Set([...one.reads, ...two.reads].filter((node) => !written.has(node)));
  const count = written.size + read.size;
  if (count > limit) return [{ rule: 'merged-bindings', count, limit }];
  const moved = two.reads.find(
    (node) => view.writer.get(node) === first && readsElsewhere(two, node, two.writes[0]!.index),
  );
  return [moved === undefined ? { rule: 'grouped' } : { rule: 'points-differ', value: moved }];
}

/** Whether a kernel reads the node at some other flat element than `index`. */
function readsElsewhere(kernel: Kernel, node: Node, index: unknown): boolean {
  const seen = new Set<Expr>(kernel.writes.map(({ value }) => value));
  for (const expr of seen) {
    if (expr.kind === 'read' && expr.node === node && expr.index !== index) return true;
    for (const arg of argsOf(expr)) seen.add(arg);
  }
  return false;
}

function foldOf(node: Node): ReductionShape {
  return { shape: dims(node.inputs[0]!), axes: reducedAxes(node) };
}

function sameFold(a: ReductionShape, b: ReductionShape): boolean {
  return a.shape.join() === b.shape.join() && a.axes.join() === b.axes.join();
}

/** What opens a kernel. */
function isAnchor(node: Node): boolean {
  return hasLoops(node.op);
}

/** One reason per rule, also if several nodes were refused by it. */
function distinct(reasons: readonly Reason[]): readonly Reason[] {
  return [...new Map(reasons.toReversed().map((reason) => [reason.rule, reason])).values()].reverse();
}
