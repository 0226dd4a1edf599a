// detectAnomaly: every value that is computed is looked at; one with a NaN or an infinity rejects
// where it, or anything made of it, is read, with the operation and the user's line that made the
// first. Functions given to `compile` are called as they are meanwhile.

import { showValue, SinterError, TensorError } from '../../errors.ts';
import { isCallable } from '../../ir/arguments.ts';
import type { Call } from '../../ir/call-site.ts';
import { isInexact } from '../../ir/dtype.ts';
import { dims, type Node } from '../../ir/graph.ts';
import { stridesOf, type FixedShape } from '../../ir/shape.ts';
import { unpackBytes, type HostArray } from '../../ir/value.ts';
import { showHandle } from '../recording/handle.ts';
import { showElement } from '../show/number.ts';
import type { Storage } from '../storage/storage.ts';
import { culpritOf, faultOf, type Fault } from './culprit.ts';
import { follow, following, isFollowed, trailOf } from './trail.ts';

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
  const before = following();
  follow(true);
  let result: T;
  try {
    result = what();
  } catch (error) {
    follow(before);
    throw error;
  }
  if (!(result instanceof Promise)) {
    follow(before);
    return result;
  }
  return result.finally(() => follow(before)) as T;
}

/** A computation whose results are looked at: its nodes down to what was computed before. */
export interface Watched {
  /** Results and where they will be. */
  readonly results: ReadonlyMap<Node, Storage>;
  /** Values that the walk ends at. */
  readonly leaves: ReadonlyMap<Node, Storage>;
}

/** Whether the computation of these nodes is to be looked at. */
export function isWatched(nodes: Iterable<Node>): boolean {
  if (following()) return true;
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
      await judge(results, leaves);
    } finally {
      for (const storage of held) storage.unpin();
    }
  })();
  // The rejection reaches the reads of the value.
  verdict.catch(() => undefined);
  for (const storage of results.values()) storage.guard = verdict;
}

async function judge(results: Watched['results'], leaves: Watched['leaves']): Promise<void> {
  const suspects: Node[] = [];
  for (const [node, storage] of results) {
    if (!isInexact(node.dtype)) continue;
    // A value that could not be computed has an error of its own.
    const value = await storage.unguarded().then(
      (bytes) => unpackBytes(bytes, storage.dtype, storage.shape),
      () => undefined,
    );
    if (value !== undefined && faultOf(value) !== undefined) suspects.push(node);
  }
  if (suspects.length === 0) return;
  const values = new Map<Node, HostArray>();
  for (const [node, storage] of leaves)
    values.set(node, unpackBytes(await storage.unguarded(), storage.dtype, storage.shape));
  for (const suspect of suspects.toSorted((a, b) => a.id - b.id)) {
    const found = culpritOf(suspect, (node) => values.get(node));
    if (found === undefined) continue;
    if ('node' in found) throw anomaly(found.node, found.fault, found.from);
    const where = showHandle({ dtype: found.input.dtype, shape: dims(found.input) });
    const problem = `NaN came in with an input, ${where}, at ${placeIn(found.fault, dims(found.input))}`;
    throw new SinterError('E_VALUE', `detectAnomaly: ${problem}`);
  }
}

/** `log: made -Infinity at [1] of f32[3] from 0`, with the line. */
function anomaly(node: Node, fault: Fault, from: readonly number[]): SinterError {
  const { call, isGradient } = trailOf(node);
  const name = nameOf(call, node);
  const who = isGradient ? `the gradient of ${name}` : name;
  const shape = dims(node);
  const type = showHandle({ dtype: node.dtype, shape });
  const sources =
    from.length === 0 ? '' : ` from ${from.map((value) => showElement(value, node.dtype)).join(' and ')}`;
  const by = name === node.op || from.length === 0 ? '' : ` by ${node.op}`;
  const at = call?.at === undefined ? '' : `\n  at ${call.at}`;
  const what = `made ${showElement(fault.value, node.dtype)} at ${placeIn(fault, shape)} of ${type}${by}${sources}`;
  return new SinterError('E_VALUE', `detectAnomaly: ${who} ${what}${at}`);
}

function nameOf(call: Call | undefined, node: Node): string {
  const op = call?.op ?? node.op;
  return call?.module === undefined ? op : `${op} in ${call.module}`;
}

/** `[1,2]`: the indices of an element. */
function placeIn({ place }: Fault, shape: FixedShape): string {
  const strides = stridesOf(shape);
  return `[${shape.map((size, axis) => Math.floor(place / strides[axis]!) % size).join(',')}]`;
}
