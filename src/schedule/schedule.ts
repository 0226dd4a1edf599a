// The scheduler: takes a graph, gives an ordered list of kernels. Fusion decides which nodes
// are computed together, storage which values are written to memory; here each kernel's expressions
// are built, small kernels are merged, and all are put in dependency order.

import { CompilerBug } from '../errors.ts';
import { collectiveOf, dims, nodeBytes, topological, type Graph, type Need, type Node } from '../ir/graph.ts';
import { constantIndex, linearize, offsetIndex } from '../ir/index-algebra/expr.ts';
import { isElementwise } from '../ir/ops.ts';
import { sizeOf } from '../ir/shape.ts';
import { collectiveKernel, loopKernel } from './body/iterate.ts';
import { buildBody, dispersedWrites } from './body/body.ts';
import { fusionGroupNodes, type Fusion } from './fusion/fusion.ts';
import { masks } from './body/masks.ts';
import { kernelFlops } from './cost.ts';
import { mergeMaps } from './merge/multi-tensor.ts';
import type { Body, Kernel, Write } from './kernel.ts';
import { groupMaps, isCheapScalar } from './merge/maps.ts';
import { nameKernels } from './memory/names.ts';
import { orderKernels } from './memory/order.ts';
import { bindingsOf, type Donations } from './fusion/overflow.ts';
import type { Packs } from './memory/pack.ts';
import { keyOf, readsWhole } from './fusion/place.ts';
import { kernelEvaluator, type KernelPlan, type PlacedPart } from './body/plan.ts';
import { slicing, type Evaluator, type Indices } from './expression/evaluate.ts';
import { checkReach } from './fusion/reach.ts';
import { fixpoint } from './fixpoint.ts';
import { chooseStorage, type StoragePlan } from './store/store.ts';
import type { Target } from './target.ts';

export interface KernelSchedule {
  /** In an order that respects every dependency. */
  readonly kernels: readonly Kernel[];
  /** Tensors that must lie together, because a kernel reads or writes them as one. */
  readonly packs: Packs;
  /** Where each node lives, and what is in memory: the decisions behind the kernels. */
  readonly fusion: Fusion;
  readonly storage: StoragePlan;
}

/**
 * Kernels for every node that must reach memory. `scalars` are rank-0 parameters supplied as
 * numbers at each run, by slot; `donations` name results that may be written over a parameter.
 * Without `mayPack` every tensor lies for itself, as those of a loop's iterations have to.
 */
export function scheduleGraph(
  graph: Graph,
  target: Target,
  scalars: ReadonlyMap<Node, number>,
  donations: Donations = new Map(),
  mayPack = true,
): KernelSchedule {
  const { fusion, storage } = storageFixpoint(graph, target, new Set(scalars.keys()), donations);
  /** Values that were to be stored, of which every reader turned out to be computed by the same kernel. */
  const unread = new Set<Node>();
  const inMemory = (node: Node): boolean =>
    (storage.stored.has(node) && !unread.has(node) && !isCheapScalar(node, fusion)) ||
    (node.op === 'parameter' && !scalars.has(node));
  // What parameters that are scalars are computed to in every kernel.
  const isKnown = (n: Node): boolean =>
    topological([n]).every(
      (node) => scalars.has(node) || node.op === 'constant' || (isElementwise(node.op) && !inMemory(node)),
    );
  const isFree = (node: Node): boolean => {
    const place = fusion.places.get(node);
    // What the kernels of its parts have written in pieces is in no other place.
    return place?.kind === 'free' || (place?.kind === 'stored' && place.pieces === undefined);
  };
  const plans: KernelPlan[] = [];
  for (const fusionGroup of fusion.fusionGroups) {
    const writes = storage.fusionGroupWrites.get(fusionGroup)!;
    const pieces = (storage.pieces.get(fusionGroup) ?? []).map(({ part, whole, start }) => {
      const at = fusionGroup.members.get(part);
      if (at === undefined) throw new CompilerBug('schedule', 'a part has no place');
      return { part, whole, start, at };
    });
    if (writes.size + pieces.length > 0) plans.push({ fusionGroup, writes, pieces, axis: undefined });
  }
  const computed = storage.mapped.filter((node) => sizeOf(dims(node)) > 0);
  plans.push(...groupMaps(computed, storage.mappedParts, fusion, inMemory, scalars, donations, target));
  const demand = masks.filled?.neededElements(graph, isKnown) ?? new Map<Node, readonly Need[]>();
  const values = { scalars, demand, repeated: fusion.repeated };
  let made = plans.map((plan) => ({
    plan,
    kernel: buildKernel(plan, inMemory, isFree, values, donations, target),
  }));
  for (;;) {
    const more = unreadWrites(made, graph, isFree);
    if (more.size === 0) break;
    for (const node of more) unread.add(node);
    made = made.flatMap((one) => {
      const writes = new Map([...one.plan.writes].filter(([node]) => !more.has(node)));
      if (writes.size === one.plan.writes.size) return [one];
      const plan = { ...one.plan, writes };
      return writes.size + plan.pieces.length > 0
        ? [{ plan, kernel: buildKernel(plan, inMemory, isFree, values, donations, target) }]
        : [];
    });
  }
  const built = made.map(({ kernel }) => kernel);
  const maps = built.flatMap(({ body, writes }) => (body.kind === 'map' ? writes : []));
  const ends = { outputs: new Set(graph.outputs), donations };
  const { kernels, packs } =
    maps.length < 2 || !mayPack ? { kernels: built, packs: new Map() } : mergeMaps(built, ends, target);
  const ordered = nameKernels(orderKernels(kernels, donations, packs), packs);
  return { kernels: ordered, packs, fusion, storage: without(unread, storage) };
}

/** What is stored but for some values. */
function without(unread: ReadonlySet<Node>, storage: StoragePlan): StoragePlan {
  if (unread.size === 0) return storage;
  const isLeft = (node: Node): boolean => !unread.has(node);
  const left = <T>(all: ReadonlyMap<Node, T>): ReadonlyMap<Node, T> =>
    new Map([...all].filter(([node]) => isLeft(node)));
  return {
    ...storage,
    fusionGroupWrites: new Map(
      Array.from(storage.fusionGroupWrites, ([fusionGroup, writes]) => [fusionGroup, left(writes)]),
    ),
    mapped: storage.mapped.filter(isLeft),
    stored: new Set([...storage.stored].filter(isLeft)),
    kept: left(storage.kept),
  };
}

/** Of the values that any kernel may compute, those that are stored and that no other kernel reads. */
function unreadWrites(
  made: readonly { readonly plan: KernelPlan; readonly kernel: Kernel }[],
  graph: Graph,
  isFree: (node: Node) => boolean,
): ReadonlySet<Node> {
  const needed = new Set<Node>([...graph.outputs, ...made.flatMap(({ kernel }) => kernel.reads)]);
  const isUnread = (node: Node): boolean => isFree(node) && !needed.has(node);
  return new Set(made.flatMap(({ plan }) => [...plan.writes.keys()].filter(isUnread)));
}

/**
 * Fusion groups and storage that fit the binding limit. Fusion bets on values being recomputed by
 * their readers; where that does not come true and a kernel overflows, its fusion group is formed again
 * without the bet.
 */
function storageFixpoint(
  graph: Graph,
  target: Target,
  scalars: ReadonlySet<Node>,
  donations: Donations,
): { fusion: Fusion; storage: StoragePlan } {
  return fixpoint('storage', new Set<Node>(), (strict) => {
    const fusion = fusionGroupNodes(graph, target, scalars, strict, donations);
    const storage = chooseStorage(graph, fusion, target, strict);
    const overflowing = [...storage.fusionGroupWrites].flatMap(([fusionGroup, writes]) => {
      if (readsWhole(fusionGroup.kind)) return [];
      const bound = bindingsOf(fusionGroup.reads, writes.keys(), donations);
      return bound > target.limits.storageBuffers ? [keyOf(fusionGroup)] : [];
    });
    const stricter = new Set([...strict, ...overflowing]);
    return stricter.size === strict.size ? { settled: { fusion, storage } } : { revised: stricter };
  });
}

/** Which parameters are run-time scalars, by slot, and what of values is needed, where that is not all. */
interface Values {
  readonly scalars: ReadonlyMap<Node, number>;
  readonly demand: ReadonlyMap<Node, readonly Need[]>;
  /** Reductions that every kernel repeats which reads them. */
  readonly repeated: ReadonlySet<Node>;
}

/**
 * Builds a kernel. Stored free nodes are read rather than computed, unless that makes the kernel
 * bind more buffers than the target allows: then it computes some of them again, first those that
 * it reads most of the sources of anyway.
 */
function buildKernel(
  plan: KernelPlan,
  inMemory: (node: Node) => boolean,
  isFree: (node: Node) => boolean,
  values: Values,
  donations: Donations,
  target: Target,
): Kernel {
  const [fusionRoot] = plan.fusionGroup?.fusionRoots ?? [];
  if (fusionRoot?.op === 'iterate') return loopKernel(fusionRoot, [...plan.writes.keys()]);
  const collective = fusionRoot && collectiveOf(fusionRoot);
  if (collective !== undefined) return collectiveKernel(collective);
  const room = target.limits.storageBuffers;
  const attempt = (
    recomputed: ReadonlySet<Node>,
  ): { kernel: Kernel; bound: number; recomputed: ReadonlySet<Node> } => {
    const kernel = attemptKernel(plan, (node) => inMemory(node) && !recomputed.has(node), values, target);
    const written = new Set(kernel.writes.map(({ node }) => node));
    const bound = bindingsOf(new Set(kernel.reads), written, donations);
    return { kernel, bound, recomputed };
  };
  let best = attempt(new Set());
  while (best.bound > room) {
    const { kernel, bound, recomputed } = best;
    const trials = kernel.reads.filter(isFree).map((node) => attempt(new Set([...recomputed, node])));
    if (trials.length === 0)
      throw new CompilerBug('schedule', `a kernel binds ${bound} buffers, more than ${room}`);
    best = trials.reduce((a, b) => (b.bound < a.bound ? b : a));
  }
  return best.kernel;
}

function attemptKernel(
  plan: KernelPlan,
  inMemory: (node: Node) => boolean,
  { scalars, demand, repeated }: Values,
  target: Target,
): Kernel {
  const reads = new Set<Node>();
  const asked = new Map<Node, Indices>();
  const evaluator = kernelEvaluator(
    plan,
    inMemory,
    scalars,
    (node) => {
      if (plan.writes.has(node)) {
        throw new CompilerBug(
          'schedule',
          `a kernel would read its own output ${node.op} #${node.id} at another point`,
        );
      }
      reads.add(node);
    },
    undefined,
    (node, at) => repeated.has(node) && asked.set(node, at).size > 0,
  );
  const whole = buildBody(plan, evaluator, asked);
  const body = demand.size === 0 ? whole : masks.value.withNeeds(whole, plan, evaluator, demand);
  const writes = writesOf(plan, body, evaluator);
  const written = [...plan.writes.keys(), ...plan.pieces.map(({ part }) => part)];
  const nodes = [...new Set([...evaluator.computed, ...written])];
  const { pool } = evaluator;
  const slices = pool.dynamics.size === 0 ? undefined : slicing.value(pool);
  const bytesOf = (node: Node): number => slices?.get(node) ?? nodeBytes(node);
  const bytes = [...reads, ...written].reduce((sum, node) => sum + bytesOf(node), 0);
  const kernel: Kernel = {
    name: '',
    kind: plan.fusionGroup?.kind ?? 'map',
    body,
    reads: [...reads],
    writes,
    pool,
    nodes,
    flops: kernelFlops(nodes),
    bytes,
  };
  checkReach(
    kernel,
    plan.axis === undefined ? Object.values(plan.fusionGroup?.axes ?? {}) : [plan.axis],
    target,
  );
  return kernel;
}

/**
 * What a kernel stores at each point; scatters, digit ranks and matrix algorithms write elsewhere than at their point,
 * by their own template.
 */
function writesOf(plan: KernelPlan, body: Body, evaluator: Evaluator): Write[] {
  if (body.kind === 'scatter') return [{ node: body.node, index: body.index, value: body.operand }];
  if (body.kind === 'scatter-add-atomic')
    return [{ node: body.node as Node, index: body.index, value: body.value }];
  if (body.kind === 'jacobi-rows' || body.kind === 'complete-rows')
    return [{ node: body.node as Node, index: constantIndex(0), value: body.value }];
  if (body.kind === 'radix-rank')
    return [{ node: body.node as Node, index: constantIndex(0), value: body.key }];
  if (body.kind === 'factor')
    return [{ node: body.node as Node, index: constantIndex(0), value: body.operands.at(-1)!.value }];
  if (plan.fusionGroup?.kind === 'permute-scatter')
    return dispersedWrites.value(plan.writes.keys(), plan.fusionGroup, evaluator);
  const writes = Array.from(plan.writes, ([node, at]): Write => ({
    node,
    index: linearize(at, dims(node)),
    value: evaluator.value(node, at),
  }));
  return [...writes, ...plan.pieces.map((piece) => pieceWrite(piece, evaluator))];
}

/** A part of a concatenation at its own indices, stored behind the parts before it. */
function pieceWrite({ part, whole, start, at }: PlacedPart, evaluator: Evaluator): Write {
  if (whole.op !== 'concat') throw new CompilerBug('schedule', `a part of a ${whole.op}`);
  const { axis } = whole.attrs;
  const inWhole = at.map((index, a) => (a === axis ? offsetIndex(index, start) : index));
  return {
    node: whole,
    index: linearize(inWhole, dims(whole)),
    value: evaluator.value(part, at),
    isPart: true,
  };
}
