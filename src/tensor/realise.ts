// Realising: a flush computes a pending value together with every other result of the graph it is connected to, so that a
// loop never leaves a growing graph behind. Results are the pending values that no other pending value consumes, those
// that `assign` made, and intermediate ones that were found to be used again later.

import { TensorError } from '../errors.ts';
import type { Node } from '../ir/graph.ts';
import { showType } from '../ir/infer.ts';
import { entryFor } from './cache.ts';
import { execute } from './execute.ts';
import { showHandle, type Handle } from './handle.ts';
import { reclaim } from './memory.ts';
import {
  bindStorage,
  builder,
  canonical,
  currentTrace,
  here,
  isFree,
  noteLateUse,
  pendingHandles,
  renewBuilder,
  settle,
  storageOf,
} from './recording.ts';
import { skeletonOf } from './skeleton.ts';
import { Storage } from './storage.ts';

const largeGraph = 20_000;

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
  here(handle, 'data');
  return realise(handle).read();
}

/** The Storage of a value, computing it first (queued, when the device is not open yet). */
export function realise(handle: Handle): Storage {
  if (!settle(handle)) {
    noteLateUse(handle);
    flush(handle);
  }
  return handle.storage!;
}

/** Computes everything pending. */
export function flushAll(): void {
  for (let [first] = pendingHandles(); first !== undefined; [first] = pendingHandles()) {
    if (settle(first)) pendingHandles().delete(first);
    else flush(first);
  }
}

/** Computes everything pending when a great deal has been recorded, so that endless recording stays bounded. */
export function flushLarge(): void {
  if (currentTrace() !== undefined) return;
  if (builder().size > largeGraph || pendingHandles().size > largeGraph) flushAll();
}

function flush(target: Handle): void {
  const { handles, doomed } = connected(target);
  const lost = handles.filter((handle) => doomed.has(canonical(handle.node)));
  const reasons = lost.map((handle) => lostLeaf(canonical(handle.node)));
  lost.forEach((handle, i) => bindFailure(handle, reasons[i]!));
  // Late values first and on their own: what reads them then has the structure it will have in every step to come.
  const late = handles.filter((handle) => handle.storage === undefined && handle.late);
  if (late.length > 0) compute(late, target);
  const alive = handles.filter((handle) => !settle(handle));
  if (alive.length > 0) compute(alive, target);
  renewBuilder();
  reclaim();
}

/** Computes the results among connected handles; the other handles learn where they were passed by. */
function compute(handles: readonly Handle[], target: Handle): void {
  const consumed = consumedBy(handles);
  const results = new Set<Node>();
  for (const handle of handles) {
    const node = canonical(handle.node);
    if (handle === target || handle.keep || handle.late || !consumed.has(node)) results.add(node);
  }
  const skeleton = skeletonOf([...results], computedStorage);
  const entry = entryFor(skeleton);
  const plan = entry.plan(skeleton.literals);
  const outputs = plan.outputs.map((position) => {
    const node = skeleton.parts[position]!.node;
    const { dtype, shape } = node;
    const storage = Storage.promised(dtype, shape as readonly number[]);
    bindStorage(node, storage);
    return storage;
  });
  execute({ executable: plan.executable, inputs: skeleton.leaves, outputs, scalars: plan.scalars });
  let lingers = false;
  for (const handle of handles) {
    pendingHandles().delete(handle);
    lingers ||= handle.requiresGrad;
    if (settle(handle)) continue;
    lingers = true;
    const position = skeleton.position(handle.node);
    if (position !== undefined) handle.passed = { entry, position };
  }
  if (lingers) for (const leaf of skeleton.leaves) leaf.lingering = true;
}

/** Whatever was computed from a lost value fails when it is read, naming the value. */
function bindFailure(handle: Handle, lost: string): void {
  const storage = Storage.promised(handle.dtype, handle.shape);
  storage.fail(
    new TensorError(
      'E_STATE',
      'data',
      `${showHandle(handle)} was computed from ${lost}`,
      'read it before that, or keep a copy of the value it needs',
    ),
  );
  bindStorage(canonical(handle.node), storage);
  settle(handle);
  pendingHandles().delete(handle);
}

/** Words for the first lost leaf under a node, e.g. `t3 f32[4], which was donated`. */
function lostLeaf(root: Node): string {
  const seen = new Set<Node>([root]);
  for (const node of seen) {
    const storage = storageOf(node);
    if (storage?.lost !== undefined && node.op === 'parameter') {
      return `${node.attrs.name} ${showType(node)}, which was ${storage.lost}`;
    }
    if (storage === undefined || storage.lost !== undefined)
      for (const input of node.inputs) seen.add(canonical(input));
  }
  return 'a value that is gone';
}

/** Where the walk over pending nodes ends: the value, if it is there to be read. */
function computedStorage(node: Node): Storage | undefined {
  const storage = storageOf(node);
  return storage?.lost === undefined ? storage : undefined;
}

interface Connected {
  /** In recording order; the target is among them. */
  readonly handles: readonly Handle[];
  /** Nodes that cannot be computed because a value under them is lost. */
  readonly doomed: ReadonlySet<Node>;
}

/** The pending handles whose graphs share an uncomputed node with the target's, directly or through others. */
function connected(target: Handle): Connected {
  for (const handle of pendingHandles()) if (settle(handle)) pendingHandles().delete(handle);
  const candidates = new Set(pendingHandles()).add(target);
  const order = uncomputed([...candidates].map((handle) => canonical(handle.node)));
  const index = new Map<Node, number>(order.map((node, i) => [node, i]));
  const parent = Int32Array.from(order.keys());
  const find = (start: number): number => {
    let at = start;
    while (parent[at] !== at) {
      parent[at] = parent[parent[at]!]!;
      at = parent[at]!;
    }
    return at;
  };
  const doomed = new Set<Node>();
  order.forEach((node, i) => {
    if (node.op === 'parameter') doomed.add(node);
    for (const operand of node.inputs) {
      const input = canonical(operand);
      const k = index.get(input);
      if (k === undefined) continue;
      if (doomed.has(input)) doomed.add(node);
      // Constants and counters are shared by unrelated graphs and connect nothing.
      if (!isFree(input)) parent[find(k)] = find(i);
    }
  });
  const group = (handle: Handle): number => find(index.get(canonical(handle.node))!);
  const wanted = group(target);
  return {
    handles: [...candidates].filter((handle) => handle === target || group(handle) === wanted),
    doomed,
  };
}

/** Nodes under `roots` that are not computed, inputs first. */
function uncomputed(roots: readonly Node[]): Node[] {
  const seen = new Set<Node>(roots);
  for (const node of seen) {
    for (const operand of node.inputs) {
      const input = canonical(operand);
      if (computedStorage(input) === undefined) seen.add(input);
    }
  }
  return [...seen].sort((a, b) => a.id - b.id);
}

/** Nodes that another node under the handles reads. */
function consumedBy(handles: readonly Handle[]): Set<Node> {
  const consumed = new Set<Node>();
  for (const node of uncomputed(handles.map((handle) => canonical(handle.node)))) {
    for (const input of node.inputs) consumed.add(canonical(input));
  }
  return consumed;
}
