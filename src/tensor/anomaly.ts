// detectAnomaly: looks at every value that is computed. If one has a NaN or an infinity, reading it, or
// anything computed from it, throws an error with the operation and the line that made the first such value.
// Meanwhile, functions that were given to `compile` are called without being compiled.

import { load } from '../compile/chunks.ts';
import { interpreter, type Interpreter } from '../compile/slots.ts';
import { showValue, TensorError, SinterError } from '../errors.ts';
import { isCallable } from '../ir/arguments.ts';
import { type Node, dims } from '../ir/graph.ts';
import { fill } from '../slot.ts';
import { currentSession, SessionPart, type Session } from './session.ts';
import { type CallSite, callOf } from '../ir/origin/call-site.ts';
import { isInexact } from '../ir/dtype.ts';
import type { Fault } from '../ir/interpret/culprit.ts';
import { stridesOf, type FixedShape } from '../ir/shape.ts';
import { unpackBytes, type HostArray } from '../ir/value.ts';
import { showHandle } from './handle/handle.ts';
import { anomalies, type AnomalySearch, type Watched } from './handle/recorded.ts';
import { showElement } from './show/number.ts';
import type { StoredValue } from './storage/storage.ts';
import { onNode, type Cause } from '../ir/origin/origin.ts';

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
function isWatched(nodes: Iterable<Node>): boolean {
  if (isFollowing()) return true;
  for (const node of nodes) if (isFollowed(node)) return true;
  return false;
}

/** Has results rejected when read, if they, or what they are computed from, are not finite. */
function watch({ results, leaves }: Watched): void {
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

// Whether results are finite, and what made the first that is not: where `watch` found that it has to know.

/** Rejects with the anomaly of the first result that is not finite. */
export async function judge(
  results: ReadonlyMap<Node, StoredValue>,
  leaves: ReadonlyMap<Node, StoredValue>,
  { culpritOf, faultOf }: Interpreter,
): Promise<void> {
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

function nameOf(call: CallSite | undefined, node: Node): string {
  const op = call?.op ?? node.op;
  return call?.module === undefined ? op : `${op} in ${call.module}`;
}

/** `[1,2]`: the indices of an element. */
function placeIn({ place }: Fault, shape: FixedShape): string {
  const strides = stridesOf(shape);
  return `[${shape.map((size, axis) => Math.floor(place / strides[axis]!) % size).join(',')}]`;
}

// Where nodes were recorded, while anomalies are looked for: for each the user's line, or the node
// whose derivative it carries.

/** Weak: nodes go with the graphs they are of. */
const calls = new WeakMap<Node, CallSite>();
const causes = new WeakMap<Node, Cause>();

/** Ends the following of a session, while there is any. */
const following = new SessionPart((): { end: (() => void) | undefined } => ({ end: undefined }));

/** Frames of a stack that are looked through for the user's line. */
const deepest = 60;

/** From now on the lines of operations recorded in a session are kept, or, with `false`, no longer. */
export function follow(on: boolean, session: Session = currentSession()): void {
  const state = following.of(session);
  if (on === (state.end !== undefined)) return;
  state.end?.();
  state.end = on ? begin(session) : undefined;
}

/** What evaluations ask from then on. */
const search: AnomalySearch = { isWatched, watch };

function begin(session: Session): () => void {
  fill([anomalies, search]);
  return onNode((node, cause) => {
    if (currentSession() !== session) return;
    if (cause !== undefined) causes.set(node, cause);
    else if (node.op !== 'parameter' && node.op !== 'constant') {
      const call = callOf(stackHere());
      calls.set(node, { ...call, op: call.op ?? node.op });
    }
  });
}

function stackHere(): string {
  const usual = Error.stackTraceLimit;
  Error.stackTraceLimit = deepest;
  const { stack = '' } = new Error();
  Error.stackTraceLimit = usual;
  return stack;
}

/** Whether lines are being kept in this session. */
export function isFollowing(): boolean {
  return following.current.end !== undefined;
}

/** Whether this node was recorded while they were. */
function isFollowed(node: Node): boolean {
  return calls.has(node) || causes.has(node);
}

/** The call that a node was recorded in, or whose derivative it carries. */
function trailOf(node: Node): { readonly call: CallSite | undefined; readonly isGradient: boolean } {
  let isGradient = false;
  for (let at = node; ;) {
    const cause = causes.get(at);
    if (cause === undefined) return { call: calls.get(at), isGradient };
    isGradient ||= cause.kind === 'gradient';
    at = cause.of;
  }
}
