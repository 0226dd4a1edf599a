// Where nodes were recorded, while anomalies are looked for: for each the user's line, or the node
// whose derivative it carries.

import type { Node } from '../../ir/graph.ts';
import { callOf, type CallSite } from '../../ir/call-site.ts';
import { setWitness, type Cause } from '../../ir/origin/origin.ts';

/** Weak: nodes go with the graphs they are of. */
const calls = new WeakMap<Node, CallSite>();
const causes = new WeakMap<Node, Cause>();
/** Nothing is recorded until anomaly detection is first switched on. */
let everFollowed = false;
let isFollowing = false;

/** Frames of a stack that are looked through for the user's line. */
const deepest = 60;
let usualDepth = 10;

/** From now on the lines of recorded operations are kept, or, with `false`, no longer. */
export function follow(on: boolean): void {
  if (on === isFollowing) return;
  isFollowing = on;
  if (!on) {
    Error.stackTraceLimit = usualDepth;
    setWitness(undefined);
    return;
  }
  everFollowed = true;
  usualDepth = Error.stackTraceLimit;
  Error.stackTraceLimit = deepest;
  setWitness((node, cause) => {
    if (cause !== undefined) causes.set(node, cause);
    else if (node.op !== 'parameter' && node.op !== 'constant') {
      const call = callOf(new Error().stack ?? '');
      calls.set(node, { ...call, op: call.op ?? node.op });
    }
  });
}

/** Whether lines are being kept. */
export function following(): boolean {
  return isFollowing;
}

/** Whether this node was recorded while they were. */
export function isFollowed(node: Node): boolean {
  return everFollowed && (calls.has(node) || causes.has(node));
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
