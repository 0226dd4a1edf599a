// detectAnomaly: every value that is computed is looked at; one with a NaN or an infinity rejects
// where it, or anything made of it, is read, with the operation and the user's line that made the
// first. Functions given to `compile` are called as they are meanwhile.

import { load } from '../../compile/chunks.ts';
import { interpreter } from '../../compile/slots.ts';
import { showValue, TensorError } from '../../errors.ts';
import { isCallable } from '../../ir/arguments.ts';
import type { Node } from '../../ir/graph.ts';
import { currentSession } from '../session.ts';
import { judge } from './judge.ts';
import { follow, isFollowed, isFollowing } from './trail.ts';
import type { Watched } from './watched.ts';

/**
 * Looks for the first NaN or infinity: `detectAnomaly(true)` from here on, `detectAnomaly(false)`
 * no longer, and with a function while it runs (until its promise settles). A value that is not
 * finite then rejects where it is read, naming the operation and line that made it, forwards or
 * backwards. Slow: for finding a mistake.
 */
export function detectAnomaly(on: boolean): void;
export function detectAnomaly<T>(fn: () => T): T;
export function detectAnomaly<T>(what: boolean | (() => T)): T | undefined {
  if (typeof what === 'boolean') {
    follow(what);
    return undefined;
  }
  if (!isCallable(what)) {
    const problem = `expects true, false or a function, got ${showValue(what)}`;
    throw new TensorError('E_VALUE', 'detectAnomaly', problem);
  }
  const session = currentSession();
  const before = isFollowing();
  follow(true);
  let result: T;
  try {
    result = what();
  } catch (error) {
    follow(before, session);
    throw error;
  }
  if (!(result instanceof Promise)) {
    follow(before, session);
    return result;
  }
  return result.finally(() => follow(before, session)) as T;
}

/** Whether the computation of these nodes is to be looked at. */
export function isWatched(nodes: Iterable<Node>): boolean {
  if (isFollowing()) return true;
  for (const node of nodes) if (isFollowed(node)) return true;
  return false;
}

/** Has results rejected when read, if they, or what they are computed from, are not finite. */
export function watch({ results, leaves }: Watched): void {
  const held = [...leaves.values(), ...results.values()];
  for (const storage of held) storage.pin();
  const guards = [...leaves.values()].flatMap(({ guard }) => (guard === undefined ? [] : [guard]));
  const verdict = (async (): Promise<void> => {
    try {
      // An anomaly of an input is reported before one found here.
      await Promise.all(guards);
      await load(['interpreter']);
      await judge(results, leaves, interpreter.value);
    } finally {
      for (const storage of held) storage.unpin();
    }
  })();
  // The rejection reaches the reads of the value.
  verdict.catch(() => undefined);
  for (const storage of results.values()) storage.guard = verdict;
}
