// Memory that tensors give up: disposed values, and old values that `assign` replaced. The collector frees what nothing can
// reach; but it does not see device memory, so replaced values that something *might* still reach are kept only up to a
// budget, oldest first. A late reader of a value that went this way gets an error, never a wrong number.

import type { Node } from '../ir/graph.ts';
import type { Handle } from './handle.ts';
import { canonical, pendingHandles, storageOf } from './recording.ts';
import type { Storage } from './storage.ts';

let overwrittenBudget = 256 * 2 ** 20;

/** Replaced values that history may still need, oldest first. */
let replaced: { readonly storage: WeakRef<Storage>; readonly bytes: number }[] = [];
let replacedBytes = 0;
/** Values without an owner that pending results still read. */
let condemned: Storage[] = [];

/**
 * Bytes of replaced values kept for results that were recorded before `assign` and are read after it. Gives the budget
 * before; default 256 MiB.
 */
export function setOverwrittenBudget(bytes: number): number {
  const before = overwrittenBudget;
  overwrittenBudget = bytes;
  return before;
}

/** Notes that the last tensor standing for this value has moved on. */
export function overwritten(storage: Storage): void {
  replaced.push({ storage: new WeakRef(storage), bytes: storage.bytes });
  replacedBytes += storage.bytes;
}

/** Frees what `dispose` left to pending readers, and the oldest replaced values over the budget. Called after a flush. */
export function reclaim(): void {
  if (condemned.length === 0 && replacedBytes <= overwrittenBudget) return;
  const needed = readByPending();
  for (const storage of condemned) if (!needed.has(storage)) storage.lose('disposed');
  condemned = condemned.filter((storage) => storage.lost === undefined);
  if (replacedBytes <= overwrittenBudget) return;
  const kept: typeof replaced = [];
  for (const item of replaced) {
    const storage = item.storage.deref();
    const mayGo = storage === undefined || storage.lost !== undefined || storage.owners > 0;
    if (!mayGo && (replacedBytes <= overwrittenBudget || needed.has(storage))) {
      kept.push(item);
      continue;
    }
    replacedBytes -= item.bytes;
    if (!mayGo) storage.lose('overwritten');
  }
  replaced = kept;
}

/** Gives a value up. Results recorded from it and not computed yet still get it. */
export function disposeHandle(handle: Handle): void {
  if (handle.gone !== undefined) return;
  handle.gone = 'disposed';
  pendingHandles().delete(handle);
  const { storage } = handle;
  handle.storage = undefined;
  if (storage === undefined || !storage.unshare() || storage.lost !== undefined) return;
  condemned.push(storage);
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
