// Memory that tensors give up: disposed values, and old values that `assign` replaced. The garbage
// collector frees unreachable values, but does not see how much device memory they hold; so values
// that a later read *might* still need are kept only up to a budget, and freed oldest first. A read
// after that throws an error, never gives a wrong number.

import { showValue, TensorError } from '../../errors.ts';
import type { Node } from '../../ir/graph.ts';
import { groupOf, takeUnread } from './aside.ts';
import type { Handle } from './handle.ts';
import { storageOf } from './leaf.ts';
import { canonical, dropPending, pendingHandles, attachIfComputed } from './recording.ts';
import type { Lost, StoredValue } from '../storage/storage.ts';
import { SessionPart, sessions } from '../session.ts';
import { recorded } from './recorded.ts';

interface Retained {
  readonly storage: WeakRef<StoredValue>;
  readonly bytes: number;
  readonly why: Lost;
}

/** What a session has given up and not freed. */
interface GivenUp {
  /** Bytes of `retained`, at most. */
  retainedMemoryLimit: number;
  /** Values without an owner that something recorded earlier may still need, oldest first. */
  retained: Retained[];
  retainedBytes: number;
  /** Values that are given up as soon as no pending result reads them. */
  condemned: { readonly storage: StoredValue; readonly why: Lost }[];
  condemnedBytes: number;
  /** The two lists are swept above these lengths and this size. */
  retainedSweepLength: number;
  condemnedSweepLength: number;
  condemnedSweepBytes: number;
}

const minSweepLength = 256;
const minSweepBytes = 16 * 2 ** 20;

const givenUp = new SessionPart((): GivenUp => ({
  retainedMemoryLimit: 256 * 2 ** 20,
  retained: [],
  retainedBytes: 0,
  condemned: [],
  condemnedBytes: 0,
  retainedSweepLength: minSweepLength,
  condemnedSweepLength: minSweepLength,
  condemnedSweepBytes: minSweepBytes,
}));

/**
 * Bytes of values that `assign` replaced or `dispose` gave up which are kept for what was recorded
 * from them before and is read after. Gives the budget before; default 256 MiB, `Infinity` keeps
 * all.
 */
export function setRetainedMemoryLimit(bytes: number): number {
  if (!(typeof bytes === 'number' && bytes >= 0)) {
    const problem = `expects a number of bytes, got ${showValue(bytes)}`;
    throw new TensorError('E_VALUE', 'setRetainedMemoryLimit', problem);
  }
  const { current } = givenUp;
  const before = current.retainedMemoryLimit;
  current.retainedMemoryLimit = bytes;
  return before;
}

/** Notes that no tensor refers to this value any more; `reclaim` frees it. */
export function giveUp(storage: StoredValue, why: Lost): void {
  const { current } = givenUp;
  current.condemned.push({ storage, why });
  current.condemnedBytes += storage.bytes;
}

/**
 * Frees what was given up and nothing can ask for, and of the rest the oldest over the budget.
 * Called after an evaluation.
 */
export function reclaim(): void {
  for (const storage of takeUnread()) {
    const { doomed } = storage;
    storage.doomed = undefined;
    if (doomed !== undefined) giveUp(storage, doomed);
  }
  const { current } = givenUp;
  if (current.condemned.length === 0 && !isOverLimit(current)) return;
  const isNeeded = neededByPending();
  const before = current.condemned;
  current.condemned = [];
  current.condemnedBytes = 0;
  for (const { storage, why } of before) {
    if (storage.owners > 0 || storage.lost !== undefined) continue;
    // Pending values set aside may never be read: the last group to be collected releases what they
    // read.
    if (storage.readers > 0) storage.doomed = why;
    else if (isNeeded(storage)) giveUp(storage, why);
    else if (storage.lingering) keepForLate(current, storage, why);
    else storage.lose(why);
  }
  current.condemnedSweepLength = Math.max(minSweepLength, 2 * current.condemned.length);
  current.condemnedSweepBytes = Math.max(minSweepBytes, 2 * current.condemnedBytes);
  if (isOverLimit(current)) evict(current, isNeeded);
}

function isOverLimit({ retainedBytes, retainedMemoryLimit }: GivenUp): boolean {
  return retainedBytes > retainedMemoryLimit;
}

/** As `reclaim`, when there is little to look through or much to win. */
export function reclaimSoon(): void {
  const { condemned, condemnedBytes, condemnedSweepLength, condemnedSweepBytes } = givenUp.current;
  const isMuch = condemned.length > condemnedSweepLength || condemnedBytes > condemnedSweepBytes;
  if (isMuch || pendingHandles().size === 0) reclaim();
}

function keepForLate(state: GivenUp, storage: StoredValue, why: Lost): void {
  state.retained.push({ storage: new WeakRef(storage), bytes: storage.bytes, why });
  state.retainedBytes += storage.bytes;
  if (state.retained.length <= state.retainedSweepLength) return;
  const alive = state.retained.filter((item) => ownerless(item) !== undefined);
  for (const { bytes } of state.retained) state.retainedBytes -= bytes;
  for (const { bytes } of alive) state.retainedBytes += bytes;
  state.retained = alive;
  state.retainedSweepLength = Math.max(minSweepLength, 2 * alive.length);
}

/** Frees the oldest values over the budget that no pending result reads. */
function evict(state: GivenUp, isNeeded: (storage: StoredValue) => boolean): void {
  state.retained = state.retained.filter((item) => {
    const storage = ownerless(item);
    if (storage !== undefined && (!isOverLimit(state) || isNeeded(storage))) return true;
    state.retainedBytes -= item.bytes;
    storage?.lose(item.why);
    return false;
  });
}

/** The value, if it is there and still has no owner. */
function ownerless({ storage }: Retained): StoredValue | undefined {
  const value = storage.deref();
  return value === undefined || value.lost !== undefined || value.owners > 0 ? undefined : value;
}

/** Gives a value up. What was recorded from it and not computed yet still gets it. */
export function disposeHandle(handle: Handle): void {
  if (handle.gone !== undefined) return;
  if (handle.trace === undefined) attachIfComputed(handle);
  const storage = handle.dispose();
  dropPending(handle);
  if (storage === undefined || !storage.unshare() || storage.lost !== undefined) return;
  giveUp(storage, 'disposed');
  reclaim();
}

/** Tells the evaluated values that pending results are computed from, in whichever session they wait. */
export function neededByPending(): (storage: StoredValue) => boolean {
  const found = new Set<StoredValue>();
  const seen = new Set<Node>();
  const stack = sessions().flatMap((session) =>
    Array.from(recorded(session).pending, (handle) => canonical(handle.node)),
  );
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (seen.has(node)) continue;
    seen.add(node);
    // Reads by values that were set aside are counted in the StoredValue.
    if (groupOf(node) !== undefined) continue;
    const storage = storageOf(node);
    if (storage !== undefined && storage.lost === undefined) found.add(storage);
    else for (const input of node.inputs) stack.push(canonical(input));
  }
  return (storage) => storage.readers > 0 || found.has(storage);
}
