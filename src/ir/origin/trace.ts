// Records what a pass did to a graph, for reports: the node that replaces each node, and the rules that were
// applied. Without a trace, a rewrite and a rule cost one more comparison each.

import type { Node } from '../node.ts';

/** A rule as reports name it. */
export interface AppliedRule {
  readonly name: string;
  /** The equation, left side first. */
  readonly law: string;
}

/** What one pass did. */
export interface PassTrace {
  /**
   * What each node became in a walk over the graph. Passes that walk several times have entries for
   * the nodes between two walks too.
   */
  readonly made: ReadonlyMap<Node, Node>;
  /** The rules applied to each such node, in order. */
  readonly rules: ReadonlyMap<Node, readonly AppliedRule[]>;
}

class Tracing implements PassTrace {
  readonly made = new Map<Node, Node>();
  readonly rules = new Map<Node, AppliedRule[]>();
  current: Node | undefined;
}

let tracing: Tracing | undefined;

/** Runs a pass and tells what it did. */
export function tracePass<T>(run: () => T): { readonly result: T; readonly trace: PassTrace } {
  const before = tracing;
  const trace = new Tracing();
  tracing = trace;
  try {
    return { result: run(), trace };
  } finally {
    tracing = before;
  }
}

/** A walk over a graph comes to a node. */
export function enterRewrite(node: Node): void {
  if (tracing !== undefined) tracing.current = node;
}

/** A rule was applied to the node that the walk has come to. */
export function noteRule(rule: AppliedRule): void {
  if (tracing?.current === undefined) return;
  const applied = tracing.rules.get(tracing.current);
  if (applied === undefined) tracing.rules.set(tracing.current, [rule]);
  else applied.push(rule);
}

/** The walk leaves the node; `made` stands for it from now on. */
export function leaveRewrite(made: Node): void {
  if (tracing?.current === undefined) return;
  tracing.made.set(tracing.current, made);
  tracing.current = undefined;
}

/** What stands for a node when the pass is done. */
export function madeOf(node: Node, { made }: PassTrace): Node {
  let at = node;
  for (let next = made.get(at); next !== undefined && next !== at; next = made.get(at)) at = next;
  return at;
}

/** The rules that were applied to a node, and to what it became, in order. */
export function rulesOf(node: Node, { made, rules }: PassTrace): readonly AppliedRule[] {
  const found: AppliedRule[] = [];
  let at = node;
  for (;;) {
    found.push(...(rules.get(at) ?? []));
    const next = made.get(at);
    if (next === undefined || next === at) return found;
    at = next;
  }
}
