// The recording: the graph that operations are being added to, its pending values (not computed
// yet), and which nodes are computed. An evaluation (evaluate/evaluate.ts) turns pending values into
// evaluated ones and starts a new interning table.

import { TensorError } from '../../errors.ts';
import { isDistinct } from '../../ir/build.ts';
import { GraphBuilder, type Node } from '../../ir/graph.ts';
import { isView } from '../../ir/ops.ts';
import { Handle, showHandle, type MappingScope, type TraceScope } from './handle.ts';
import { freshParameter, storageOf } from './leaf.ts';
import { recorded } from './recorded.ts';
import type { StoredValue } from '../storage/storage.ts';

const leaves = new WeakMap<Node, Handle>();
const spent = new WeakSet<Node>();

/** The builder that operations are recorded with now. */
export function builder(): GraphBuilder {
  const { trace, builder: own } = recorded();
  return trace === undefined ? own : trace.builder;
}

/** Starts a new interning table; nodes of the old one stay valid. */
export function renewBuilder(): void {
  recorded().builder = new GraphBuilder();
}

/** Values recorded outside `compile` that no evaluation has computed or passed over, oldest first. */
export function pendingHandles(): ReadonlySet<Handle> {
  return recorded().pending;
}

/** Adds a value that waits for an evaluation; one example of what is mapped never does. */
export function addPending(handle: Handle): void {
  const { mapping, pending } = recorded();
  if (mapping?.own.has(handle) === true) return;
  if (handle.state.kind === 'aside') handle.takeBack();
  pending.add(handle);
}

/** Removes a value that no evaluation need compute on its own. */
export function dropPending(handle: Handle): void {
  if (handle.state.kind === 'aside') handle.takeBack();
  recorded().pending.delete(handle);
}

/**
 * Replaces the pending values. In a Set of their own: tables that one Set outgrows refer to their
 * successors, so a single promoted one would carry every later step into the old generation
 * (measured: 60 KB a step).
 */
export function setPending(handles: Iterable<Handle>): void {
  recorded().pending = new Set(handles);
}

/**
 * As `noGrad`, for a function whose only results are what it assigns to tensors: nothing else that
 * it records is computed for its own sake, or keeps old values alive.
 */
export function assigning<T>(fn: () => T): T {
  if (currentTrace() !== undefined) return withGrad(false, fn);
  const before = new Set(pendingHandles());
  try {
    return withGrad(false, fn);
  } finally {
    setPending([...pendingHandles()].filter((handle) => handle.isKept || before.has(handle)));
  }
}

export function currentTrace(): TraceScope | undefined {
  return recorded().trace;
}

/**
 * Runs `fn` with operations recorded into `trace`, or outside of any. A function that is mapped around
 * it maps what `trace` becomes, such as a loop, and not what is recorded into it.
 */
export function withTrace<T>(trace: TraceScope | undefined, fn: () => T): T {
  const state = recorded();
  const outer = state.trace;
  state.trace = trace;
  try {
    return withMapping(undefined, fn);
  } finally {
    state.trace = outer;
  }
}

export function currentMapping(): MappingScope | undefined {
  return recorded().mapping;
}

/** Runs `fn` as the function that is mapped (or none), or as part of the one around it. */
export function withMapping<T>(mapping: MappingScope | undefined, fn: () => T): T {
  const state = recorded();
  const outer = state.mapping;
  state.mapping = mapping;
  try {
    return fn();
  } finally {
    state.mapping = outer;
  }
}

/** Runs `fn`: what it records is computed only where something else asks for it. */
export function inScratch<T>(fn: () => T): T {
  const state = recorded();
  const outer = state.scratch;
  state.scratch = true;
  try {
    return fn();
  } finally {
    state.scratch = outer;
  }
}

/**
 * Throws E_STATE where a function that is mapped is about to change a value from outside: it stands
 * for one example, of which there are many.
 */
export function checkOwn(handle: Handle, op: string): void {
  const { mapping } = recorded();
  if (mapping === undefined || mapping.own.has(handle)) return;
  throw new TensorError(
    'E_STATE',
    op,
    `the function that vmap maps cannot change ${showHandle(handle)}, which is outside of it`,
    'return the new value from the function, and assign it outside',
  );
}

export function gradEnabled(): boolean {
  return recorded().gradEnabled;
}

/** Runs `fn` with gradient tracking on or off. */
export function withGrad<T>(on: boolean, fn: () => T): T {
  const state = recorded();
  const before = state.gradEnabled;
  state.gradEnabled = on;
  try {
    return fn();
  } finally {
    state.gradEnabled = before;
  }
}

/** The node that computes this value: markers and identity views are looked through. */
export function canonical(node: Node): Node {
  let at = node;
  while (at.op === 'stopGradient' || at.op === 'customVjp' || isDistinct(at)) at = at.inputs[0]!;
  return at;
}

/** The gradient leaf that a node stands for, in this or an earlier version of its value. */
export function leafOf(node: Node): Handle | undefined {
  return leaves.get(node);
}

export function bindLeaf(node: Node, handle: Handle): void {
  leaves.set(node, handle);
}

/** Whether the node stands for a value whose history `backward` has released. */
export function isSpent(node: Node): boolean {
  return spent.has(node);
}

/** A evaluated value that operations can read. */
export function leafHandle(storage: StoredValue): Handle {
  const handle = new Handle(storage, undefined);
  currentMapping()?.own.add(handle);
  storage.share();
  return handle;
}

/** A handle of a recorded node, pending unless the node has been computed already. */
export function recordedHandle(node: Node, requiresGrad: boolean): Handle {
  const { trace, mapping, scratch, pending } = recorded();
  const handle = new Handle(node, trace, requiresGrad ? 'history' : 'none');
  mapping?.own.add(handle);
  if (trace === undefined && !attachIfComputed(handle) && !scratch && !isFree(canonical(node)))
    pending.add(handle);
  return handle;
}

/** Points a handle at a computed value. */
function attach(handle: Handle, storage: StoredValue): void {
  handle.evaluate(storage);
  storage.share();
  recorded().pending.delete(handle);
}

/**
 * Takes the value of a handle whose node some evaluation has computed: true when it is evaluated. History
 * that no gradient can ask for is dropped: the node gives way to a parameter.
 */
export function attachIfComputed(handle: Handle): boolean {
  if (handle.storage === undefined) {
    const node = canonical(handle.node);
    const storage = storageOf(node);
    if (storage === undefined) return false;
    // What was given up elsewhere is computed again.
    if (storage.lost !== undefined && node.op !== 'parameter') return false;
    attach(handle, storage);
  }
  if (!handle.hasHistory && !handle.isParameter) {
    handle.represent(freshParameter(handle, handle.storage));
    if (handle.leaf) bindLeaf(handle.node, handle);
    if (handle.released) spent.add(handle.node);
  }
  return true;
}

/** Throws E_STATE when the handle's value has been given up. */
export function checkUsable(handle: Handle, op: string): void {
  const { gone } = handle;
  if (gone === undefined) return;
  const hint =
    gone === 'donated'
      ? 'use what the compiled function returned, or do not donate this argument'
      : undefined;
  throw new TensorError('E_STATE', op, `the tensor ${showHandle(handle)} was ${gone}`, hint);
}

/** As `currentHandle`, without asking whether the value can be used. */
export function currentHandleUnchecked(handle: Handle): Handle {
  return within(recorded().trace, handle);
}

function within(trace: TraceScope | undefined, handle: Handle): Handle {
  if (trace === undefined || handle.trace === trace || !trace.encloses(handle.trace)) return handle;
  return trace.tracer(handle);
}

/**
 * As `currentHandleUnchecked`, for inspection only: the traced function does not capture the value
 * by it.
 */
export function seen(handle: Handle): Handle {
  return currentTrace()?.met(handle) ?? handle;
}

/**
 * The handle for this value in the current recording: itself, or inside a traced function the
 * tracer of a value from outside. Throws E_STATE when the value is gone, or was made inside a
 * traced function that has ended.
 */
export function currentHandle(handle: Handle, op: string = 'read'): Handle {
  checkUsable(handle, op);
  const { trace } = recorded();
  const at = within(trace, handle);
  if (at.trace === trace) return at;
  const [where, hint] = at.trace!.home;
  throw new TensorError('E_STATE', op, `the tensor ${showHandle(handle)} exists only inside ${where}`, hint);
}

/** The node that stands for a value in the current recording. */
export function nodeFor(handle: Handle): Node {
  return nodeAt(currentHandle(handle));
}

/** As `nodeFor`, of what `currentHandle` gave. */
export function nodeAt(at: Handle): Node {
  if (at.trace === undefined && !attachIfComputed(at)) noteLateUse(at);
  return at.node;
}

/**
 * A value that an earlier evaluation computed without keeping it is used again: it is computed again,
 * and kept from now on by every evaluation of that structure. So a loop whose state is also read by what
 * it returns stops recomputing.
 */
export function noteLateUse(handle: Handle): void {
  if (handle.state.kind !== 'passed') return;
  const costsNothing = isFree(canonical(handle.node));
  handle.askAgain(costsNothing);
  if (!costsNothing) addPending(handle);
}

/**
 * A handle of a node that no evaluation computes on its own account: an argument of a function being
 * differentiated.
 */
export function unscheduledHandle(node: Node, requiresGrad: boolean): Handle {
  return new Handle(node, currentTrace(), requiresGrad ? 'history' : 'none');
}

/**
 * Whether computing the node costs nothing: views of constants and counters fuse into whatever
 * reads them.
 */
export function isFree(node: Node): boolean {
  let at = node;
  while (isView(at.op) && at.inputs.length === 1) at = at.inputs[0]!;
  return at.op === 'constant' || at.op === 'iota';
}
