// Memory that tensors give up: disposed values, and old values that `assign` replaced. The collector frees what nothing can
// reach; but it does not see device memory, so values that a late reader *might* still need are kept only up to a budget,
// oldest first. A reader that comes even later gets an error, never a wrong number.

import type { Node } from '../ir/graph.ts';
import type { Handle } from './handle.ts';
import { canonical, pendingHandles, settle, storageOf } from './recording.ts';
import type { Lost, Storage } from './storage.ts';

let givenUpBudget = 256 * 2 ** 20;

/** Values without an owner that something recorded earlier may still need, oldest first. */
let givenUp: { readonly storage: WeakRef<Storage>; readonly bytes: number; readonly why: Lost }[] = [];
let givenUpBytes = 0;
/** Disposed values that only pending results read. */
let condemned: Storage[] = [];

/**
 * Bytes of values that `assign` replaced or `dispose` gave up which are kept for what was recorded from them before and is
 * read after. Gives the budget before; default 256 MiB.
 */
export function setGivenUpBudget(bytes: number): number {
  const before = givenUpBudget;
  givenUpBudget = bytes;
  return before;
}

/** Notes that the last tensor standing for this value has moved on. */
export function overwritten(storage: Storage): void {
  keepForLate(storage, 'overwritten');
}

function keepForLate(storage: Storage, why: Lost): void {
  givenUp.push({ storage: new WeakRef(storage), bytes: storage.bytes, why });
  givenUpBytes += storage.bytes;
}

/** Frees what `dispose` left to pending readers, and the oldest values over the budget. Called after a flush. */
export function reclaim(): void {
  if (condemned.length === 0 && givenUpBytes <= givenUpBudget) return;
  const needed = readByPending();
  const unread = condemned.filter((storage) => !needed.has(storage));
  condemned = condemned.filter((storage) => needed.has(storage));
  for (const storage of unread) {
    if (storage.lingering) keepForLate(storage, 'disposed');
    else storage.lose('disposed');
  }
  if (givenUpBytes <= givenUpBudget) return;
  const kept: typeof givenUp = [];
  for (const item of givenUp) {
    const storage = item.storage.deref();
    const isSettled = storage === undefined || storage.lost !== undefined || storage.owners > 0;
    if (!isSettled && (givenUpBytes <= givenUpBudget || needed.has(storage))) {
      kept.push(item);
      continue;
    }
    givenUpBytes -= item.bytes;
    if (!isSettled) storage.lose(item.why);
  }
  givenUp = kept;
}

/** Gives a value up. What was recorded from it and not computed yet still gets it. */
export function disposeHandle(handle: Handle): void {
  if (handle.gone !== undefined) return;
  if (handle.trace === undefined) settle(handle);
  handle.gone = 'disposed';
  pendingHandles().delete(handle);
  const { storage } = handle;
  handle.storage = undefined;
  if (storage === undefined || !storage.unshare() || storage.lost !== undefined) return;
  if (storage.lingering) keepForLate(storage, 'disposed');
  else condemned.push(storage);
  reclaim();
}

/** The realised values that pending results are computed from. */
export function readByPending(): Set<Storage> {
  const found = new Set<Storage>();
  const seen = new Set<Node>();
  const stack = [...pendingHandles()].map((handle) => canonical(handle.node));
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (seen.has(node)) continue;
    seen.add(node);
    const storage = storageOf(node);
    if (storage !== undefined) found.add(storage);
    else for (const input of node.inputs) stack.push(canonical(input));
  }
  return found;
}
