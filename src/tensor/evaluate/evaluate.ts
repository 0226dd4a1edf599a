// Evaluation turns pending values into stored values. It computes one pending value together with all other
// results of the graph that it is connected to, so that no loop leaves a growing graph behind. Results are
// pending values that no other pending value uses, values that `assign` made, and intermediate values that
// were found to be used again later.

import { TensorError } from '../../errors.ts';
import { topological, type Node } from '../../ir/graph.ts';
import { showType } from '../../ir/infer.ts';
import { bindGroup, Group, groupOf, oldestAside } from '../handle/aside.ts';
import { entryFor, sharedFor } from './cache.ts';
import { execute } from './execute.ts';
import { showHandle, type Handle } from '../handle/handle.ts';
import { bindStorage, isExample, storageOf } from '../handle/leaf.ts';
import { reclaim } from '../handle/memory.ts';
import {
  canonical,
  currentTrace,
  dropPending,
  currentHandle,
  isFree,
  noteLateUse,
  pendingHandles,
  renewBuilder,
  setPending,
  attachIfComputed,
} from '../handle/recording.ts';
import { graphKeyOf } from './graph-key.ts';
import { anomalies, recorded } from '../handle/recorded.ts';
import { StoredValue } from '../storage/storage.ts';

const largeGraph = 20_000;

/** Called at each read; a promise that it gives rejects the read when it rejects. */
export type ReadCheck = () => Promise<void> | undefined;

const judges = new Set<ReadCheck>();

/** Calls `judge` at each read, until the function that this gives is called. */
export function onRead(judge: ReadCheck): () => void {
  judges.add(judge);
  return () => void judges.delete(judge);
}

/** The packed bytes of a value, computing it first. Throws E_STATE inside a traced function. */
export function readBytes(handle: Handle): Promise<Uint8Array> {
  if (currentTrace() !== undefined) {
    throw new TensorError(
      'E_STATE',
      'data',
      `the value of ${showHandle(handle)} is not known while a function is being traced`,
      'return it from the compiled function and read it there',
    );
  }
  currentHandle(handle, 'data');
  const storage = evaluate(handle);
  if (storage.part !== undefined) {
    const problem = `${showHandle(handle)} is split over several processes, of which this one has a part`;
    throw new TensorError('E_STATE', 'data', problem, 'gather(x), which all of them call, or localPart(x)');
  }
  const bytes = storage.read();
  const judged: Promise<void>[] = [];
  for (const judge of judges) {
    const verdict = judge();
    if (verdict !== undefined) judged.push(verdict);
  }
  return judged.length === 0 ? bytes : Promise.all([bytes, ...judged]).then(([read]) => read);
}

/** As `readBytes`, of a value that stays where it is. */
export function readable(handle: Handle, op: string): Promise<StoredValue> {
  currentHandle(handle, op);
  return evaluate(handle).settled();
}

/**
 * The StoredValue of a value, computing it first (queued, when the device is not open yet). `isOfMany`: by
 * a program for many sizes, where these are new and there is one.
 */
export function evaluate(handle: Handle, isOfMany: boolean = false): StoredValue {
  if (!attachIfComputed(handle)) {
    noteLateUse(handle);
    evaluateTogether([handle], isOfMany);
  }
  return handle.storage!;
}

/** Computes these values, and what is connected with any of them, in one program. */
export function evaluateAll(handles: readonly Handle[]): void {
  const open = handles.filter((handle) => !attachIfComputed(handle));
  open.forEach(noteLateUse);
  if (open.length > 0) evaluateTogether(open);
}

/** Computes everything pending. */
export function evaluatePending(): void {
  for (let next = oldest(); next !== undefined; next = oldest()) {
    if (attachIfComputed(next)) dropPending(next);
    else evaluateTogether([next]);
  }
}

function oldest(): Handle | undefined {
  const [first] = pendingHandles();
  return first ?? oldestAside();
}

/**
 * Computes everything pending when a great deal has been recorded, so that endless recording stays
 * bounded.
 */
export function evaluateLarge(): void {
  const { trace, builder, pending, aside } = recorded();
  if (trace !== undefined) return;
  if (builder.size > largeGraph || pending.size + aside.size > largeGraph) evaluatePending();
}

function evaluateTogether(asked: readonly Handle[], isOfMany: boolean = false): void {
  const targets = new Set(asked);
  const young = [...pendingHandles()].filter((handle) => targets.has(handle) || !attachIfComputed(handle));
  for (const target of targets) if (!pendingHandles().has(target)) young.push(target);
  setPending([]);
  let region = explore(young);
  let handles = connected(young, region, targets);
  // Connected values that were set aside are pending again. Some of those that connected them may
  // be gone by now.
  const stops = [...new Set(asked.flatMap((target) => region.asideWith(target)))];
  const back = stops.flatMap((group) => group.close());
  if (stops.length > 0) {
    const all = [
      ...new Set([...back.filter((handle) => targets.has(handle) || !attachIfComputed(handle)), ...handles]),
    ];
    region = explore(all);
    handles = connected(all, region, targets);
  }

  if (region.hasLost) handles = withoutDoomed(handles, region);
  // Late values first and on their own: what reads them then has the structure it will have in
  // every step to come.
  const late = handles.filter((handle) => handle.isLate);
  if (late.length > 0) {
    compute(late, region, targets, isOfMany);
    handles = handles.filter((handle) => !attachIfComputed(handle));
    region = explore(handles);
  }
  if (handles.length > 0) compute(handles, region, targets, isOfMany);
  renewBuilder();
  reclaim();
}

/** The handles that are connected with a target; the others are set aside. */
function connected(handles: readonly Handle[], region: Region, targets: ReadonlySet<Handle>): Handle[] {
  const here = new Set(Array.from(targets, (target) => region.partOf(target)));
  const groups = new Map<number, Group>();
  const taken: Handle[] = [];
  for (const handle of handles) {
    const part = region.partOf(handle);
    if (targets.has(handle) || here.has(part)) {
      taken.push(handle);
      continue;
    }
    const group = groups.get(part) ?? region.asideWith(handle).reduce((a, b) => a.join(b), new Group());
    groups.set(part, group);
    group.add(handle);
  }
  if (groups.size > 0) region.bind(groups);
  return taken;
}

/**
 * Computes the results among connected handles; the other handles note the structure that passed
 * them over.
 */
function compute(
  handles: readonly Handle[],
  region: Region,
  targets: ReadonlySet<Handle>,
  isOfMany: boolean,
): void {
  const results = new Set<Node>();
  for (const handle of handles) {
    const node = canonical(handle.node);
    if (targets.has(handle) || handle.isKept || !region.consumed.has(node)) results.add(node);
  }
  const graphKey = graphKeyOf([...results], (node) =>
    region.uncomputed.has(node) ? undefined : storageOf(node),
  );
  const shared = isOfMany ? sharedFor(graphKey) : undefined;
  const entry = shared === undefined ? entryFor(graphKey) : undefined;
  const plan = shared ?? entry!.plan(graphKey.constants);
  const search = anomalies.filled;
  const leaves = search?.isWatched(results) === true ? leavesUnder([...results], region) : undefined;
  const made = new Map<Node, StoredValue>();
  const outputs = plan.outputs.map((position) => {
    const { node } = graphKey.parts[position]!;
    const storage = StoredValue.promised(node.dtype, node.shape as readonly number[]);
    bindStorage(node, storage);
    made.set(node, storage);
    return storage;
  });
  const inputs = shared?.inputs ?? graphKey.leaves;
  const { executable, scalars } = plan;
  execute({ executable, inputs, outputs, scalars, isPartial: shared !== undefined });
  if (leaves !== undefined) search?.watch({ results: made, leaves });
  const unfinished: number[] = [];
  for (const handle of handles) {
    const isMade = made.has(canonical(handle.node));
    const position = graphKey.position(handle.node);
    if (isMade) attachIfComputed(handle);
    else if (position !== undefined && entry !== undefined) handle.passOver(entry, position);
    // Its value, or its gradient, can still be asked for.
    const hasHistory = handle.isPulled || handle.hasHistory;
    if (position !== undefined && (!isMade || hasHistory)) unfinished.push(position);
  }
  for (const leaf of graphKey.leavesUnder(unfinished)) leaf.lingering = true;
}

/** What the walk down from these nodes ends at. */
function leavesUnder(roots: readonly Node[], { uncomputed }: Region): Map<Node, StoredValue> {
  const leaves = new Map<Node, StoredValue>();
  const isLeaf = (node: Node): boolean => {
    const at = canonical(node);
    const storage = uncomputed.has(at) ? undefined : storageOf(at);
    if (storage !== undefined) leaves.set(node, storage);
    return storage !== undefined;
  };
  topological(roots, isLeaf);
  return leaves;
}

/**
 * The handles that can be computed; what was computed from a lost value fails when it is read,
 * naming the value.
 */
function withoutDoomed(handles: readonly Handle[], region: Region): Handle[] {
  const doomed = new Set<Node>();
  for (const node of [...region.uncomputed.keys()].sort((a, b) => a.id - b.id)) {
    if (node.op === 'parameter' || node.inputs.some((input) => doomed.has(canonical(input))))
      doomed.add(node);
  }
  const lost = handles.filter((handle) => doomed.has(canonical(handle.node)));
  const reasons = lost.map((handle) => lostLeaf(canonical(handle.node)));
  lost.forEach((handle, i) => bindFailure(handle, reasons[i]!));
  return handles.filter((handle) => !attachIfComputed(handle));
}

function bindFailure(handle: Handle, lost: Lost): void {
  const storage = StoredValue.promised(handle.dtype, handle.shape);
  storage.fail(
    new TensorError('E_STATE', 'data', `${showHandle(handle)} was computed from ${lost.what}`, lost.hint),
  );
  bindStorage(canonical(handle.node), storage);
  attachIfComputed(handle);
}

/** Why a value cannot be computed, and what to do. */
interface Lost {
  readonly what: string;
  readonly hint: string;
}

/** The first lost leaf under a node, e.g. `t3 f32[4], which was donated`. */
function lostLeaf(root: Node): Lost {
  const hint = 'read it before that, or keep a copy of the value it needs';
  const seen = new Set<Node>([root]);
  for (const node of seen) {
    const storage = storageOf(node);
    if (isExample(node)) {
      const what = `one example, ${showType(node)}, which exists only inside the function that vmap maps`;
      return { what, hint: 'return it from that function, and read the result' };
    }
    if (storage?.lost !== undefined && node.op === 'parameter')
      return { what: `${node.attrs.name} ${showType(node)}, which was ${storage.lost}`, hint };
    if (storage === undefined || storage.lost !== undefined)
      for (const input of node.inputs) seen.add(canonical(input));
  }
  return { what: 'a value that is gone', hint };
}

/** Where the walk over pending nodes ends: the value, if it is there to be read. */
function computedStorage(node: Node): StoredValue | undefined {
  const storage = storageOf(node);
  return storage?.lost === undefined ? storage : undefined;
}

/** What is not computed yet under some values, as far as it is not aside. */
interface Region {
  /** Nodes, with their numbers. */
  readonly uncomputed: ReadonlyMap<Node, number>;
  /** Nodes that others read. */
  readonly consumed: ReadonlySet<Node>;
  /** Some value that is needed is gone for good. */
  readonly hasLost: boolean;
  /** Equal for handles whose graphs share an uncomputed node, directly or through others. */
  partOf(handle: Handle): number;
  /** The groups of values aside that a handle is connected with. */
  asideWith(handle: Handle): Group[];
  /** Makes nodes of these parts nodes of groups. */
  bind(groups: ReadonlyMap<number, Group>): void;
}

/** Walks down from handles to what is computed or aside, joining what is connected (union-find). */
function explore(handles: readonly Handle[]): Region {
  const uncomputed = new Map<Node, number>();
  const consumed = new Set<Node>();
  const parent: number[] = [];
  const places = new Map<Group, number>();
  /** The number of a node, or of the group aside that it is of. */
  const enter = (node: Node): number => {
    const group = isFree(node) ? undefined : groupOf(node);
    const known = group === undefined ? undefined : places.get(group);
    if (known !== undefined) return known;
    const number = parent.push(parent.length) - 1;
    if (group === undefined) uncomputed.set(node, number);
    else places.set(group, number);
    return number;
  };
  const find = (start: number): number => {
    let at = start;
    while (parent[at] !== at) {
      parent[at] = parent[parent[at]!]!;
      at = parent[at]!;
    }
    return at;
  };
  let hasLost = false;
  const placeOf = new Map<Handle, number>();
  for (const handle of handles) {
    const node = canonical(handle.node);
    placeOf.set(handle, uncomputed.get(node) ?? enter(node));
  }
  for (const [node, number] of uncomputed) {
    hasLost ||= node.op === 'parameter';
    for (const operand of node.inputs) {
      const input = canonical(operand);
      const isKnown = consumed.has(input) && places.size === 0;
      consumed.add(input);
      let place = uncomputed.get(input);
      if (place === undefined && !isKnown && computedStorage(input) === undefined) place = enter(input);
      // Constants and counters are shared by unrelated graphs and connect nothing.
      if (place !== undefined && !isFree(input)) parent[find(place)] = find(number);
    }
  }
  const partOf = (handle: Handle): number => find(placeOf.get(handle)!);
  return {
    uncomputed,
    consumed,
    hasLost,
    partOf,
    asideWith: (handle) => {
      if (places.size === 0) return [];
      const part = partOf(handle);
      return [...places].flatMap(([group, place]) => (find(place) === part ? [group] : []));
    },
    bind: (groups) => {
      const reads = new Map<Group, Set<StoredValue>>();
      for (const [node, number] of uncomputed) {
        const group = groups.get(find(number));
        if (group === undefined || isFree(node)) continue;
        bindGroup(node, group.root);
        const read = reads.get(group) ?? new Set();
        reads.set(group, read);
        for (const operand of node.inputs) {
          const storage = computedStorage(canonical(operand));
          if (storage !== undefined) read.add(storage);
        }
      }
      for (const [group, storages] of reads) for (const storage of storages) group.root.read(storage);
    },
  };
}
