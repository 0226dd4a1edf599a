// Where nodes were recorded, while anomalies are looked for: for each the user's line, or the node
// whose derivative it carries.

import type { Node } from '../../ir/graph.ts';
import { callOf, type CallSite } from '../../ir/call-site.ts';
import { onNode, type Cause } from '../../ir/origin/origin.ts';
import { currentSession, SessionPart, type Session } from '../session.ts';

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

function begin(session: Session): () => void {
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
export function isFollowed(node: Node): boolean {
  return calls.has(node) || causes.has(node);
}

/** The call that a node was recorded in, or whose derivative it carries. */
export function trailOf(node: Node): { readonly call: CallSite | undefined; readonly isGradient: boolean } {
  let isGradient = false;
  for (let at = node; ;) {
    const cause = causes.get(at);
    if (cause === undefined) return { call: calls.get(at), isGradient };
    isGradient ||= cause.kind === 'gradient';
    at = cause.of;
  }
}
