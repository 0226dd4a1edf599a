// Rewrite rules as data. A pass is a list of rules and a walk: every node, inputs first, is offered
// to the rules of its op until none applies. Rules are exact: the replacement computes the same
// bits (of NaN, only that it is NaN), and a rule never makes the graph more expensive, so that
// passes can be repeated in any order.

import { CompilerBug } from '../../errors.ts';
import { rebuild, rewrite, type Graph, type GraphBuilder, type Node } from '../graph.ts';
import type { Op } from '../ops.ts';
import { printNode } from '../text/print.ts';
import { sameShape } from '../shape.ts';
import { noteRule } from '../origin/trace.ts';
import { Slot } from '../../slot.ts';

/**
 * One rewrite: the replacement of a node of one of `ops`, or undefined where the law does not hold.
 */
export interface RewriteRule {
  readonly name: string;
  /** The equation, left side first. */
  readonly law: string;
  readonly ops: readonly Op[];
  readonly apply: (node: Node, b: GraphBuilder) => Node | undefined;
}

/** Makes a rule whose `apply` sees nodes of exactly the ops it names. */
export function rule<K extends Op>(
  name: string,
  law: string,
  ops: K | readonly K[],
  apply: (node: Extract<Node, { op: K }>, b: GraphBuilder) => Node | undefined,
): RewriteRule {
  return {
    name,
    law,
    ops: typeof ops === 'string' ? [ops] : ops,
    apply: apply as unknown as RewriteRule['apply'],
  };
}

/** If one node is rewritten more often than this, two rules undo each other. */
const tooMany = 100;

/** More rules of some passes, of what selects (selections.ts). */
export const selectionRules: Readonly<
  Record<'canonicalise' | 'removeDeadCode' | 'simplify', Slot<readonly RewriteRule[]>>
> = {
  canonicalise: new Slot('the rules of selections'),
  removeDeadCode: new Slot('the rules of parts that nobody reads'),
  simplify: new Slot('the identities of selections'),
};

/** The rules of each op, in their order. */
function byOp(rules: readonly RewriteRule[]): ReadonlyMap<Op, readonly RewriteRule[]> {
  const rulesOf = new Map<Op, RewriteRule[]>();
  for (const each of rules) {
    for (const op of each.ops) {
      const list = rulesOf.get(op);
      if (list === undefined) rulesOf.set(op, [each]);
      else list.push(each);
    }
  }
  return rulesOf;
}

/**
 * A pass that applies `rules` everywhere, and before them those of the slot, if they are there; where several fit, the first in
 * the list wins.
 */
export function rulePass(
  pass: string,
  rules: readonly RewriteRule[],
  rare?: Slot<readonly RewriteRule[]>,
): (graph: Graph) => Graph {
  const own = byOp(rules);
  const both = new WeakMap<readonly RewriteRule[], typeof own>();
  const table = (): typeof own => {
    const more = rare?.filled;
    if (more === undefined) return own;
    const known = both.get(more) ?? byOp([...more, ...rules]);
    both.set(more, known);
    return known;
  };

  const rewriteToFixpoint = (start: Node, b: GraphBuilder, rulesOf: typeof own): Node => {
    let node = start;
    for (let steps = 0; steps < tooMany; steps++) {
      const next = step(node, b, rulesOf);
      if (next === undefined) return node;
      node = next;
    }
    throw new CompilerBug(pass, `the rules do not come to rest at ${printNode(start)}`);
  };

  const step = (node: Node, b: GraphBuilder, rulesOf: typeof own): Node | undefined => {
    for (const each of rulesOf.get(node.op) ?? []) {
      const next = each.apply(node, b);
      if (next === undefined || next === node) continue;
      if (next.dtype !== node.dtype || !sameShape(next.shape, node.shape)) {
        throw new CompilerBug(
          pass,
          `rule ${each.name} changes the type: ${printNode(node)} to ${printNode(next)}`,
        );
      }
      noteRule(each);
      return next;
    }
    return undefined;
  };

  return (graph) => {
    const rulesOf = table();
    return rewrite(graph, (node, inputs, b) => rewriteToFixpoint(rebuild(node, inputs, b), b, rulesOf));
  };
}
