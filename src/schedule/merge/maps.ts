// Groups map nodes that share a kernel: nodes of one size and level, as long as their kernel stays within the
// limits and no group depends on itself.

import { dims, type Node } from '../../ir/graph.ts';
import { delinearize } from '../../ir/index-algebra/expr.ts';
import { sizeOf } from '../../ir/shape.ts';
import { sameIndices } from '../fusion/align.ts';
import type { Fusion } from '../fusion/fusion.ts';
import { makeAxis } from '../fusion/domain.ts';
import type { PartOfWhole } from '../fusion/place.ts';
import type { Indices } from '../expression/evaluate.ts';
import { workLimit } from '../fusion/inline.ts';
import type { Axis } from '../kernel.ts';
import { bindingsOf, type Donations } from '../fusion/overflow.ts';
import { kernelEvaluator, type KernelPlan, type PlacedPart } from '../body/plan.ts';
import type { Target } from '../target.ts';

/** The most nodes of a scalar that is recomputed wherever it is read. */
const scalarClosure = 8;

/** Operations that a kernel of several map nodes may hold. */
const groupLimit = 2 * workLimit;

/** A kernel under construction. */
interface Group {
  readonly axis: Axis;
  readonly writes: Map<Node, Indices>;
  /** What it reads from memory. */
  readonly reads: Set<Node>;
  /** Its operations; common subexpressions count once per result. */
  size: number;
}

/** Reads and operations that nodes would add to a group. */
interface Addition {
  readonly reads: ReadonlySet<Node>;
  readonly size: number;
}

/**
 * A scalar that takes a few operations on parameters: readers recompute it, so that they need not
 * wait for a kernel that stores it.
 */
export function isCheapScalar(node: Node, { places }: Fusion): boolean {
  const place = places.get(node)!;
  return (
    place.kind === 'free' &&
    dims(node).length === 0 &&
    place.closure.size <= scalarClosure &&
    [...place.reads].every((read) => read.op === 'parameter')
  );
}

/**
 * Map nodes of one size and level share a kernel while it fits and each can be computed at the
 * group's own point. Those that read a tensor in common stay together where they can, so that equal
 * parts of a model get equal kernels.
 */
export function groupMaps(
  nodes: readonly Node[],
  /** Nodes that are written as parts of a concatenation. */
  parts: ReadonlyMap<Node, PartOfWhole>,
  fusion: Fusion,
  inMemory: (node: Node) => boolean,
  scalars: ReadonlyMap<Node, number>,
  donations: Donations,
  target: Target,
): KernelPlan[] {
  const room = target.limits.storageBuffers;
  const mapped = new Set(nodes);
  const bring = (part: readonly Node[], group?: Group): Addition | undefined =>
    additionOf(part, group, inMemory, scalars);
  const alone = new Map(nodes.map((node) => [node, bring([node])]));
  const partsIn = (whole: Node): readonly Node[] =>
    whole.inputs.filter((input) => parts.get(input as Node)?.whole === whole) as readonly Node[];
  /** Other map nodes that a node is computed from. */
  const sourcesOf = (node: Node): Node[] =>
    [...(alone.get(node)?.reads ?? [])].flatMap((read) =>
      mapped.has(read) && read !== node ? [read] : partsIn(read),
    );
  const fits = (part: readonly Node[], more: Addition, group?: Group): boolean => {
    const writes = [...(group?.writes.keys() ?? []), ...part];
    if (bindingsOf(new Set([...(group?.reads ?? []), ...more.reads]), writes, donations) > room) return false;
    return more.size + (group?.size ?? 0) <= groupLimit;
  };
  const groupOf = (node: Node): string => {
    const place = fusion.places.get(node)!;
    const level = place.kind === 'free' || place.kind === 'stored' ? place.level : 0;
    return `${isCheapScalar(node, fusion) ? 'scalar' : sizeOf(dims(node))}/${level}`;
  };
  const plans: Group[] = [];
  /**
   * The newest plan of each group: only that one may take nodes, an older one could not see what
   * the newer ones store.
   */
  const newest = new Map<string, number>();
  /** The plan that computes a node, by its place among the plans. */
  const planOf = new Map<Node, number>();
  /** Whether nodes depend on a plan through a value that the group itself would not compute. */
  const precedes = (plan: number, part: readonly Node[]): boolean => {
    const read = part.flatMap((node) => [...(alone.get(node)?.reads ?? [])]);
    if (read.flatMap(partsIn).some((source) => planOf.get(source) === plan)) return true;
    const seen = new Set<number>([plan]);
    const stack = part.flatMap(sourcesOf).flatMap((source) => planOf.get(source) ?? []);
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      if (seen.has(next)) continue;
      seen.add(next);
      for (const node of plans[next]!.writes.keys())
        for (const source of sourcesOf(node)) {
          const before = planOf.get(source)!;
          if (before === plan) return true;
          stack.push(before);
        }
    }
    return false;
  };
  const add = (part: readonly Node[]): void => {
    const key = groupOf(part[0]!);
    const open = newest.get(key);
    const group = open === undefined ? undefined : plans[open];
    const more = group === undefined ? undefined : bring(part, group);
    const joins = more !== undefined && fits(part, more, group) && !precedes(open!, part);
    const at = joins ? open! : plans.length;
    if (!joins)
      plans.push({
        axis: makeAxis('i', sizeOf(dims(part[0]!))),
        writes: new Map(),
        reads: new Set(),
        size: 0,
      });
    const home = plans[at]!;
    const own = joins ? more : part.length === 1 ? alone.get(part[0]!) : bring(part);
    for (const read of own?.reads ?? []) home.reads.add(read);
    home.size += own?.size ?? 0;
    for (const node of part) home.writes.set(node, delinearize(home.axis.atom, dims(node)));
    newest.set(key, at);
    for (const node of part) planOf.set(node, at);
  };
  /** Adds a node behind what it is computed from. */
  const append = (node: Node): void => {
    const stack = [node];
    for (let next = stack.at(-1); next !== undefined; next = stack.at(-1)) {
      const missing = planOf.has(next) ? [] : sourcesOf(next).filter((source) => !planOf.has(source));
      stack.push(...missing);
      if (missing.length > 0) continue;
      if (!planOf.has(next)) add([next]);
      stack.pop();
    }
  };
  for (const part of partsOf(nodes, groupOf, (node) => alone.get(node)?.reads)) {
    const whole = part.length > 1 ? bring(part) : undefined;
    const reads = whole !== undefined && fits(part, whole) ? whole.reads : undefined;
    // A part that depends on no other map kernel is computed whole, before all of them.
    if (
      reads !== undefined &&
      ![...reads].some((node) => mapped.has(node)) &&
      !part.some((node) => planOf.has(node))
    )
      add(part);
    else for (const node of part) append(node);
  }
  return plans.map(({ axis, writes }) => {
    const [own, pieces] = [new Map<Node, Indices>(), [] as PlacedPart[]];
    for (const [node, at] of writes) {
      const part = parts.get(node);
      if (part === undefined) own.set(node, at);
      else pieces.push({ ...part, at });
    }
    return { fusionGroup: undefined, writes: own, pieces, axis };
  });
}

/**
 * Nodes of one group that read each other, or a tensor of their size in common; each part in order,
 * the parts in the order of their first.
 */
function partsOf(
  nodes: readonly Node[],
  groupOf: (node: Node) => string,
  readsOf: (node: Node) => ReadonlySet<Node> | undefined,
): readonly Node[][] {
  const places = new Map(nodes.map((node, i) => [node, i]));
  const parts = new Set<Node[]>();
  const partOf = new Map<string, Node[]>();
  for (const node of nodes) {
    const [size, group] = [sizeOf(dims(node)), groupOf(node)];
    const links = [...(readsOf(node) ?? []), node]
      .filter((read) => size > 1 && sizeOf(dims(read)) === size)
      .map((read) => `${group} ${read.id}`);
    const [part = [], ...others] = new Set(
      links.map((link) => partOf.get(link)).filter((found) => found !== undefined),
    );
    for (const other of others) {
      part.push(...other);
      parts.delete(other);
      for (const [link, found] of partOf) if (found === other) partOf.set(link, part);
    }
    part.push(node);
    parts.add(part);
    for (const link of links) partOf.set(link, part);
  }
  return [...parts].map((part) => part.sort((x, y) => places.get(x)! - places.get(y)!));
}

/**
 * Reads and operations that nodes add to a group; undefined if one of its results would be
 * recomputed at another point.
 */
function additionOf(
  part: readonly Node[],
  group: Group | undefined,
  inMemory: (node: Node) => boolean,
  scalars: ReadonlyMap<Node, number>,
): Addition | undefined {
  const axis = group?.axis ?? makeAxis('i', sizeOf(dims(part[0]!)));
  const own = new Map(part.map((node) => [node, delinearize(axis.atom, dims(node))]));
  const reads = new Set<Node>();
  let [size, repeats] = [0, false];
  for (const [node, at] of own) {
    const evaluator = kernelEvaluator(
      { fusionGroup: undefined, writes: new Map([[node, at]]), pieces: [], axis },
      inMemory,
      scalars,
      (read) => reads.add(read),
      () => (repeats = true),
      (other, where) => {
        const there = other === node ? undefined : (own.get(other) ?? group?.writes.get(other));
        if (there === undefined) return false;
        if (!sameIndices(there, where)) repeats = true;
        return true;
      },
    );
    evaluator.value(node, at);
    size += evaluator.pool.work;
    if (repeats) return undefined;
  }
  return { reads, size };
}
