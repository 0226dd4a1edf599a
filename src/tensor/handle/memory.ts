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
import type { Lost, Storage } from '../storage/storage.ts';

let retainedMemoryLimit = 256 * 2 ** 20;

interface Retained {
  readonly storage: WeakRef<Storage>;
  readonly bytes: number;
  readonly why: Lost;
}

/** Values without an owner that something recorded earlier may still need, oldest first. */
let retained: Retained[] = [];
let retainedBytes = 0;
/** Values that are given up as soon as no pending result reads them. */
let condemned: { readonly storage: Storage; readonly why: Lost }[] = [];
let condemnedBytes = 0;
/** The two lists are swept above these lengths and this size. */
const minSweepLength = 256;
const minSweepBytes = 16 * 2 ** 20;
let retainedSweepLength = minSweepLength;
let condemnedSweepLength = minSweepLength;
let condemnedSweepBytes = minSweepBytes;

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
  const before = retainedMemoryLimit;
  retainedMemoryLimit = bytes;
  return before;
}

/** Notes that no tensor refers to this value any more; `reclaim` frees it. */
export function giveUp(storage: Storage, why: Lost): void {
  condemned.push({ storage, why });
  condemnedBytes += storage.bytes;
}

/**
 * Frees what was given up and nothing can ask for, and of the rest the oldest over the budget.
 * Called after a flush.
 */
export function reclaim(): void {
  for (const storage of takeUnread()) {
    const { doomed } = storage;
    storage.doomed = undefined;
    if (doomed !== undefined) giveUp(storage, doomed);
  }
  if (condemned.length === 0 && retainedBytes <= retainedMemoryLimit) return;
  const isNeeded = neededByPending();
  const before = condemned;
  condemned = [];
  condemnedBytes = 0;
  for (const { storage, why } of before) {
    if (storage.owners > 0 || storage.lost !== undefined) continue;
    // Pending values set aside may never be read: the last group to be collected releases what they
    // read.
    if (storage.readers > 0) storage.doomed = why;
    else if (isNeeded(storage)) giveUp(storage, why);
    else if (storage.lingering) keepForLate(storage, why);
    else storage.lose(why);
  }
  condemnedSweepLength = Math.max(minSweepLength, 2 * condemned.length);
  condemnedSweepBytes = Math.max(minSweepBytes, 2 * condemnedBytes);
  if (retainedBytes > retainedMemoryLimit) evict(isNeeded);
}

/** As `reclaim`, when there is little to look through or much to win. */
export function reclaimSoon(): void {
  const isMuch = condemned.length > condemnedSweepLength || condemnedBytes > condemnedSweepBytes;
  if (isMuch || pendingHandles().size === 0) reclaim();
}

function keepForLate(storage: Storage, why: Lost): void {
  retained.push({ storage: new WeakRef(storage), bytes: storage.bytes, why });
  retainedBytes += storage.bytes;
  if (retained.length <= retainedSweepLength) return;
  const alive = retained.filter((item) => ownerless(item) !== undefined);
  for (const { bytes } of retained) retainedBytes -= bytes;
  for (const { bytes } of alive) retainedBytes += bytes;
  retained = alive;
  retainedSweepLength = Math.max(minSweepLength, 2 * alive.length);
}

/** Frees the oldest values over the budget that no pending result reads. */
function evict(isNeeded: (storage: Storage) => boolean): void {
  retained = retained.filter((item) => {
    const storage = ownerless(item);
    if (storage !== undefined && (retainedBytes <= retainedMemoryLimit || isNeeded(storage))) return true;
    retainedBytes -= item.bytes;
    storage?.lose(item.why);
    return false;
  });
}

/** The value, if it is there and still has no owner. */
function ownerless({ storage }: Retained): Storage | undefined {
  const value = storage.deref();
  return value === undefined || value.lost !== undefined || value.owners > 0 ? undefined : value;
}

/** Gives a value up. What was recorded from it and not computed yet still gets it. */
export function disposeHandle(handle: Handle): void {
  if (handle.gone !== undefined) return;
  if (handle.trace === undefined) attachIfComputed(handle);
  handle.gone = 'disposed';
  dropPending(handle);
  const { storage } = handle;
  handle.storage = undefined;
  if (storage === undefined || !storage.unshare() || storage.lost !== undefined) return;
  giveUp(storage, 'disposed');
  reclaim();
}

/** Tells the realised values that pending results are computed from. */
export function neededByPending(): (storage: Storage) => boolean {
  const found = new Set<Storage>();
  const seen = new Set<Node>();
  const stack = [...pendingHandles()].map((handle) => canonical(handle.node));
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (seen.has(node)) continue;
    seen.add(node);
    // Reads by values that were set aside are counted in the Storage.
    if (groupOf(node) !== undefined) continue;
    const storage = storageOf(node);
    if (storage !== undefined && storage.lost === undefined) found.add(storage);
    else for (const input of node.inputs) stack.push(canonical(input));
  }
  return (storage) => storage.readers > 0 || found.has(storage);
}
