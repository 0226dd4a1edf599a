// Which map nodes share a kernel: those of one size and rank, as long as it fits, in an order in which none waits for itself.

import { dims, type Node } from '../ir/graph.ts';
import { delinearize } from '../ir/index-expr.ts';
import { sizeOf } from '../ir/shape.ts';
import type { Clustering } from './cluster.ts';
import { makeAxis } from './domain.ts';
import type { Axis } from './kernel.ts';
import { bindingsOf, type Donations } from './overflow.ts';
import { kernelEvaluator, type Plan } from './plan.ts';
import type { Target } from './target.ts';

/** Nodes of a number that is computed wherever it is needed. */
const scalarClosure = 8;

type MapPlan = Plan & { readonly axis: Axis };

/** A number that takes a few operations on inputs: readers compute it again rather than wait for the kernel that stores it. */
export function isCheapScalar(node: Node, { places }: Clustering): boolean {
  const place = places.get(node)!;
  return (
    place.kind === 'free' &&
    dims(node).length === 0 &&
    place.closure.size <= scalarClosure &&
    [...place.reads].every((read) => read.op === 'parameter')
  );
}

/**
 * Map nodes of one size and rank share a kernel while it fits and each can be computed at the group's own point. Those that read
 * a tensor in common stay together where they can, so that equal parts of a model get equal kernels.
 */
export function groupMaps(
  nodes: readonly Node[],
  clustering: Clustering,
  inMemory: (node: Node) => boolean,
  scalars: ReadonlyMap<Node, number>,
  donations: Donations,
  target: Target,
): Plan[] {
  const room = target.limits.storageBuffers;
  const mapped = new Set(nodes);
  const alone = new Map(
    nodes.map((node) => [node, readsOfMap(withNodes(undefined, [node]), inMemory, scalars)]),
  );
  /** Other map nodes that a node is computed from. */
  const sourcesOf = (node: Node): Node[] =>
    [...(alone.get(node) ?? [])].filter((read) => mapped.has(read) && read !== node);
  const fits = (plan: MapPlan): boolean => {
    const reads = readsOfMap(plan, inMemory, scalars);
    return reads !== undefined && bindingsOf(reads, plan.writes.keys(), donations) <= room;
  };
  const groupOf = (node: Node): string => {
    const place = clustering.places.get(node)!;
    const rank = place.kind === 'free' || place.kind === 'stored' ? place.rank : 0;
    return `${isCheapScalar(node, clustering) ? 'scalar' : sizeOf(dims(node))}/${rank}`;
  };
  const plans: MapPlan[] = [];
  /** The newest plan of each group: only that one may take nodes, an older one could not see what the newer ones store. */
  const newest = new Map<string, number>();
  /** The plan that computes a node, by its place among the plans. */
  const planOf = new Map<Node, number>();
  /** Whether a plan must run before nodes, other than to compute what they read itself. */
  const precedes = (plan: number, part: readonly Node[]): boolean => {
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
    const joined = open === undefined ? undefined : withNodes(plans[open], part);
    const joins = joined !== undefined && fits(joined) && !precedes(open!, part);
    const at = joins ? open! : plans.length;
    plans[at] = joins ? joined : withNodes(undefined, part);
    newest.set(key, at);
    for (const node of part) planOf.set(node, at);
  };
  /** Adds a node behind what it is computed from. */
  const settle = (node: Node): void => {
    const stack = [node];
    for (let next = stack.at(-1); next !== undefined; next = stack.at(-1)) {
      const missing = planOf.has(next) ? [] : sourcesOf(next).filter((source) => !planOf.has(source));
      stack.push(...missing);
      if (missing.length > 0) continue;
      if (!planOf.has(next)) add([next]);
      stack.pop();
    }
  };
  for (const part of partsOf(nodes, groupOf, (node) => alone.get(node))) {
    const plan = withNodes(undefined, part);
    const reads = part.length > 1 && fits(plan) ? readsOfMap(plan, inMemory, scalars)! : undefined;
    // A part that waits for no other map kernel can be computed whole, before them all.
    if (
      reads !== undefined &&
      ![...reads].some((node) => mapped.has(node)) &&
      !part.some((node) => planOf.has(node))
    )
      add(part);
    else for (const node of part) settle(node);
  }
  return plans;
}

function withNodes(plan: MapPlan | undefined, nodes: readonly Node[]): MapPlan {
  const axis = plan?.axis ?? makeAxis('i', sizeOf(dims(nodes[0]!)));
  const writes = new Map(plan?.writes);
  for (const node of nodes) writes.set(node, delinearize(axis.atom, dims(node)));
  return { cluster: undefined, writes, pieces: [], axis };
}

/**
 * Nodes of one group that read each other, or a tensor of their size in common; each part in order, the parts in the order of
 * their first.
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

/** What a map plan reads; undefined when it would compute one of its results again at another point. */
function readsOfMap(
  plan: Plan,
  inMemory: (node: Node) => boolean,
  scalars: ReadonlyMap<Node, number>,
): ReadonlySet<Node> | undefined {
  const reads = new Set<Node>();
  let repeats = false;
  const evaluator = kernelEvaluator(
    plan,
    inMemory,
    scalars,
    (node) => reads.add(node),
    () => (repeats = true),
  );
  for (const [node, at] of plan.writes) evaluator.value(node, at);
  return repeats ? undefined : reads;
}
