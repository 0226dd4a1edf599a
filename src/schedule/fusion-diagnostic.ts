// Why kernels are separate: for every kernel that reads what another writes, why its work is not
// done there, and why it does not compute the value itself; for kernels that read the same large
// value, why they are not one. Takes a graph and its kernels, gives reasons as data. Nothing is
// decided here: the rejections that the rules recorded (fusion/rejection.ts) are joined with facts of
// the finished kernels.

import { dims, nodeBytes, type Graph, type Node } from '../ir/graph.ts';
import { facts, hasLoops } from '../ir/ops.ts';
import { sizeOf } from '../ir/shape.ts';
import { reducedAxes } from './fusion/domain.ts';
import { argsOf, type Expr } from './expression/expr.ts';
import type { Kernel, KernelKind, Write } from './kernel.ts';
import { unpacked } from './memory/pack.ts';
import type { FusionGroup } from './fusion/place.ts';
import type { StorageReason, Rejection } from './fusion/rejection.ts';
import type { KernelSchedule } from './schedule.ts';
import type { StoragePlan } from './store/store.ts';
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
  | (Exclude<Rejection, { rule: 'order' }> & { readonly node: Node })
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
export interface FusionDiagnostic {
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
export function fusionDiagnostics(
  graph: Graph,
  schedule: KernelSchedule,
  target: Target,
): FusionDiagnostic[] {
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
  readonly fusionGroups: readonly (FusionGroup | undefined)[];
  readonly kernelOfFusionGroup = new Map<FusionGroup, number>();
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
    this.fusionGroups = kernels.map((kernel, i) => {
      const fusionGroup = fusionGroupOf(kernel, storage);
      if (fusionGroup !== undefined) this.kernelOfFusionGroup.set(fusionGroup, i);
      return fusionGroup;
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

  levelOf(node: Node): number {
    const place = this.schedule.fusion.places.get(node);
    if (place === undefined || place.kind === 'leaf') return 0;
    return place.kind === 'member' ? place.fusionGroup.level : place.level;
  }

  /**
   * The kernel that a value comes from, or that the last of what it is computed from comes from.
   */
  kernelOf(node: Node): number | undefined {
    const written = this.writer.get(node);
    if (written !== undefined) return written;
    return this.kernelOfLevel(this.levelOf(node));
  }

  /** The kernel of the fusion group that a level counts up to. */
  kernelOfLevel(level: number): number | undefined {
    const fusionGroup = this.schedule.fusion.fusionGroups[Math.floor(level) - 1];
    return fusionGroup === undefined ? undefined : this.kernelOfFusionGroup.get(fusionGroup);
  }

  /**
   * Whether fusion made the node a member; false if storage added it to the fusion group's kernel.
   */
  joined(node: Node, fusionGroup: FusionGroup): boolean {
    const place = this.schedule.fusion.places.get(node);
    return place?.kind === 'member' && place.fusionGroup === fusionGroup;
  }

  loops(kernel: number): Loops {
    return loopsOf(this.kernels[kernel]!);
  }
}

/** The fusion group that a kernel computes: it stores a value of the group, or a part of a concatenation. */
function fusionGroupOf({ kind, nodes, writes }: Kernel, storage: StoragePlan): FusionGroup | undefined {
  if (kind === 'map') return undefined;
  const [{ node, isPart }] = writes as readonly [Write, ...Write[]];
  for (const [fusionGroup, stored] of storage.fusionGroupWrites) {
    const parts = storage.pieces.get(fusionGroup) ?? [];
    const isOwn = isPart === true ? parts.some((piece) => piece.whole === node) : stored.has(node);
    if (isOwn && fusionGroup.fusionRoots.every((root) => nodes.includes(root))) return fusionGroup;
  }
  return undefined;
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

function readPairs(view: View): FusionDiagnostic[] {
  return view.kernels.flatMap((kernel, second) =>
    kernel.reads.flatMap((value): FusionDiagnostic[] => {
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
  const fusionGroup = view.fusionGroups[first];
  if (fusionGroup === undefined || !view.joined(value, fusionGroup)) return whyTwo(view, first, second);
  const inside = view.nodes[second]!;
  // The first nodes on paths from the value that are not members of the first kernel's fusion group.
  const frontier = new Set<Node>();
  const seen = new Set<Node>([value]);
  for (const node of seen) {
    for (const user of view.schedule.fusion.users.get(node) ?? []) {
      if (!inside.has(user)) continue;
      if (view.joined(user, fusionGroup)) seen.add(user);
      else frontier.add(user);
    }
  }
  const reasons = [...frontier].flatMap((node) => whyFrontier(view, node, fusionGroup, first, second));
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
  fusionGroup: FusionGroup,
  first: number,
  second: number,
): readonly Reason[] {
  const own = whyRefused(view, node, fusionGroup, first, second);
  if (facts(node.op).class !== 'view' || own?.rule !== 'alignment') return own === undefined ? [] : [own];
  const readers = new Set<Node>();
  const views = new Set<Node>([node]);
  for (const at of views) {
    for (const user of view.schedule.fusion.users.get(at) ?? []) {
      if (!view.nodes[second]!.has(user)) continue;
      if (facts(user.op).class === 'view') views.add(user);
      else readers.add(user);
    }
  }
  const theirs = [...readers].map((reader) =>
    isFusionRoot(reader) ? whyOtherLoops(view, reader, fusionGroup, first, second) : undefined,
  );
  return theirs.map((reason) => {
    const isFinal = reason?.rule === 'own-loops' || reason?.rule === 'no-rows' || reason?.rule === 'axes';
    return isFinal ? reason : own;
  });
}

/** Why a node that depends on a member of the fusion group is no member itself. */
function whyRefused(
  view: View,
  node: Node,
  fusionGroup: FusionGroup,
  first: number,
  second: number,
): Reason | undefined {
  const noted = view.schedule.fusion.refused.get(node)?.find((entry) => entry.fusionGroup === fusionGroup);
  if (noted !== undefined) {
    const { rejection } = noted;
    if (rejection.rule !== 'order') return { ...rejection, node };
    return { rule: 'order', node, needs: rejection.needs, kernel: view.kernelOf(rejection.needs) };
  }
  if (isFusionRoot(node)) return whyOtherLoops(view, node, fusionGroup, first, second);
  const later = node.inputs.find((input) => view.levelOf(input) > fusionGroup.level);
  if (later === undefined) return undefined;
  return { rule: 'order', node, needs: later, kernel: view.kernelOf(later) };
}

function whyOtherLoops(
  view: View,
  node: Node,
  fusionGroup: FusionGroup,
  first: number,
  second: number,
): Reason | undefined {
  if (node.op !== 'reduce' && node.op !== 'argReduce') return { rule: 'own-loops', node };
  if (fusionGroup.full === undefined) return { rule: 'no-rows', node, loops: view.loops(first) };
  const own = foldOf(node);
  const theirs = { shape: fusionGroup.full.shape, axes: fusionGroup.full.axes };
  if (!sameFold(own, theirs)) return { rule: 'axes', node, own, theirs };
  const place = view.schedule.fusion.places.get(node);
  // A kernel opened after the node was placed could not be asked.
  if (place?.kind !== 'member' || place.fusionGroup.level < fusionGroup.level) return undefined;
  return place.fusionGroup.fusionRoots[0] === node
    ? { rule: 'latest', node }
    : { rule: 'joined', node, kernel: view.kernelOfFusionGroup.get(place.fusionGroup) ?? second };
}

function siblingPairs(view: View): FusionDiagnostic[] {
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
  const [fusionGroup, other] = [view.fusionGroups[first], view.fusionGroups[second]];
  const fusionRoot = other?.fusionRoots[0];
  if (fusionGroup === undefined || other === undefined || fusionRoot === undefined) return [loops];
  const noted = other.fusionRoots.flatMap((node) => whyRefused(view, node, fusionGroup, first, second) ?? []);
  if (noted.length > 0) return distinct(noted);
  const turned = fusionGroup.fusionRoots.flatMap(
    (node) => whyRefused(view, node, other, second, first) ?? [],
  );
  return turned.length > 0 ? distinct(turned) : [loops];
}

function whyTwoMaps(view: View, first: number, second: number): readonly Reason[] {
  const [one, two] = [view.kernels[first]!, view.kernels[second]!];
  const size = (kernel: Kernel): number => sizeOf(dims(kernel.writes[0]!.node));
  if (size(one) !== size(two))
    return [{ rule: 'loops', first: view.loops(first), second: view.loops(second) }];
  const level = (kernel: Kernel): number => Math.max(...kernel.writes.map(({ node }) => view.levelOf(node)));
  if (level(one) !== level(two))
    return [{ rule: 'stage', first: view.kernelOfLevel(level(one)), second: view.kernelOfLevel(level(two)) }];
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
function isFusionRoot(node: Node): boolean {
  return hasLoops(node.op);
}

/** One reason per rule, also if several nodes were refused by it. */
function distinct(reasons: readonly Reason[]): readonly Reason[] {
  return [...new Map(reasons.toReversed().map((reason) => [reason.rule, reason])).values()].reverse();
}
