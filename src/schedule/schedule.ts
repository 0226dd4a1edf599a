// The scheduler: a graph becomes an ordered list of kernels. Clustering decides what is computed together, storage what
// reaches memory; here each kernel's expressions are built and the kernels put in dependency order.

import { CompilerBug } from '../errors.ts';
import { dims, type Graph, type Node } from '../ir/graph.ts';
import { constantIndex, delinearize, linearize } from '../ir/index-expr.ts';
import { sizeOf } from '../ir/shape.ts';
import { buildBody, dispersedWrites } from './body.ts';
import { clusterNodes, type Clustering } from './cluster.ts';
import { nodeBytes, nodeFlops } from './cost.ts';
import { makeAxis } from './domain.ts';
import type { Evaluator, Indices } from './evaluate.ts';
import type { Axis, Body, Kernel, Write } from './kernel.ts';
import { nameKernels, orderKernels } from './order.ts';
import { keyOf } from './place.ts';
import { kernelEvaluator, type Plan } from './plan.ts';
import { chooseStorage, type Storage } from './store.ts';
import type { Target } from './target.ts';

export interface Schedule {
  /** In an order that respects every dependency. */
  readonly kernels: readonly Kernel[];
  /** Where each node lives, and what is in memory: the decisions behind the kernels. */
  readonly clustering: Clustering;
  readonly storage: Storage;
}

/**
 * Kernels for every node that must reach memory. `scalars` are rank-0 parameters supplied as numbers at each run, by slot;
 * `donations` name results that may be written over a parameter.
 */
export function scheduleGraph(
  graph: Graph,
  target: Target,
  scalars: ReadonlyMap<Node, number>,
  donations: ReadonlyMap<Node, Node> = new Map(),
): Schedule {
  const { clustering, storage } = settleStorage(graph, target, new Set(scalars.keys()));
  const inMemory = (node: Node): boolean =>
    storage.stored.has(node) || (node.op === 'parameter' && !scalars.has(node));
  const isFree = (node: Node): boolean => {
    const kind = clustering.places.get(node)?.kind;
    return kind === 'free' || kind === 'stored';
  };
  const plans: Plan[] = [];
  for (const cluster of clustering.clusters) {
    const writes = storage.clusterWrites.get(cluster)!;
    if (writes.size > 0) plans.push({ cluster, writes, axis: undefined });
  }
  const computed = storage.mapped.filter((node) => sizeOf(dims(node)) > 0);
  plans.push(...groupMaps(computed, clustering, inMemory, scalars, target));
  const kernels = plans.map((plan) => buildKernel(plan, inMemory, isFree, scalars, target));
  return { kernels: nameKernels(orderKernels(kernels, donations)), clustering, storage };
}

/**
 * Clusters and storage that fit the binding limit. Clustering bets on values being recomputed by their readers; where that
 * does not come true and a kernel overflows, its cluster is formed again without the bet.
 */
function settleStorage(
  graph: Graph,
  target: Target,
  scalars: ReadonlySet<Node>,
): { clustering: Clustering; storage: Storage } {
  const strict = new Set<Node>();
  for (;;) {
    const clustering = clusterNodes(graph, target, scalars, strict);
    const storage = chooseStorage(graph, clustering, target);
    const before = strict.size;
    for (const [cluster, writes] of storage.clusterWrites) {
      if (cluster.reads.size + writes.size > target.limits.storageBuffers) strict.add(keyOf(cluster));
    }
    if (strict.size === before) return { clustering, storage };
  }
}

/** Map nodes of one size and rank share a kernel while it fits and each can be computed at the group's own point. */
function groupMaps(
  nodes: readonly Node[],
  clustering: Clustering,
  inMemory: (node: Node) => boolean,
  scalars: ReadonlyMap<Node, number>,
  target: Target,
): Plan[] {
  const groups = new Map<string, { axis: Axis; writes: Map<Node, Indices> }[]>();
  const plans: Plan[] = [];
  for (const node of nodes) {
    const place = clustering.places.get(node)!;
    const size = sizeOf(dims(node));
    const rank = place.kind === 'free' || place.kind === 'stored' ? place.rank : 0;
    const key = `${size}/${rank}`;
    const list = groups.get(key) ?? [];
    groups.set(key, list);
    // Only the newest group may take the node: an older one could not see what the newer ones store.
    const open = list.at(-1);
    const axis = open?.axis ?? makeAxis('i', size);
    const writes = new Map(open?.writes);
    writes.set(node, delinearize(axis.atom, dims(node)));
    const merged =
      open === undefined ? undefined : readsOfMap({ cluster: undefined, writes, axis }, inMemory, scalars);
    const room = target.limits.storageBuffers;
    if (open !== undefined && merged !== undefined && merged.size + writes.size <= room) {
      open.writes.set(node, writes.get(node)!);
      continue;
    }
    const fresh = { axis: makeAxis('i', size), writes: new Map<Node, Indices>() };
    fresh.writes.set(node, delinearize(fresh.axis.atom, dims(node)));
    list.push(fresh);
    plans.push({ cluster: undefined, writes: fresh.writes, axis: fresh.axis });
  }
  return plans;
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

/**
 * Builds a kernel. Stored free nodes are read rather than computed, unless that makes the kernel bind more buffers than the
 * target allows: then it computes some of them again from what it reads anyway.
 */
function buildKernel(
  plan: Plan,
  inMemory: (node: Node) => boolean,
  isFree: (node: Node) => boolean,
  scalars: ReadonlyMap<Node, number>,
  target: Target,
): Kernel {
  const room = target.limits.storageBuffers;
  const again = new Set<Node>();
  for (;;) {
    const kernel = attemptKernel(plan, (node) => inMemory(node) && !again.has(node), scalars);
    const bound = kernel.reads.length + plan.writes.size;
    if (bound <= room) return kernel;
    const candidate = kernel.reads.find((node) => isFree(node) && !again.has(node));
    if (candidate === undefined)
      throw new CompilerBug('schedule', `a kernel binds ${bound} buffers, more than ${room}`);
    again.add(candidate);
  }
}

function attemptKernel(
  plan: Plan,
  inMemory: (node: Node) => boolean,
  scalars: ReadonlyMap<Node, number>,
): Kernel {
  const reads = new Set<Node>();
  const evaluator = kernelEvaluator(plan, inMemory, scalars, (node) => {
    if (plan.writes.has(node)) {
      throw new CompilerBug(
        'schedule',
        `a kernel would read its own output ${node.op} #${node.id} at another point`,
      );
    }
    reads.add(node);
  });
  const body = buildBody(plan, evaluator);
  const writes = writesOf(plan, body, evaluator);
  const written = [...plan.writes.keys()];
  const nodes = [...new Set([...evaluator.computed, ...written])];
  const bytes = [...reads, ...written].reduce((sum, node) => sum + nodeBytes(node), 0);
  return {
    name: '',
    kind: plan.cluster?.kind ?? 'map',
    body,
    reads: [...reads],
    writes,
    pool: evaluator.pool,
    nodes,
    flops: nodes.reduce((sum, node) => sum + nodeFlops(node), 0),
    bytes,
  };
}

/** What a kernel stores at each point; scatters and digit ranks write elsewhere than at their point, by their own template. */
function writesOf(plan: Plan, body: Body, evaluator: Evaluator): Write[] {
  if (body.kind === 'scatter') return [{ node: body.node, index: body.index, value: body.operand }];
  if (body.kind === 'ranks') return [{ node: body.node as Node, index: constantIndex(0), value: body.key }];
  if (plan.cluster?.kind === 'disperse') return dispersedWrites(plan.writes.keys(), plan.cluster, evaluator);
  return Array.from(plan.writes, ([node, at]) => ({
    node,
    index: linearize(at, dims(node)),
    value: evaluator.value(node, at),
  }));
}
