// Rules that nodes name by number. Nodes are plain data: a `customVjp` node has the number of a
// derivative (autograd/custom.ts), not the derivative. Whatever makes such a node, a copy or one
// read from a text as well, has it hold the rule, so that a rule lives as long as the nodes that
// name it, or as long as something else that may make more of them.

import type { Node } from '../node.ts';
import { WeakValues } from './weak-values.ts';

/** A rule, which has a number for each result of its function. */
export class NamedRule {
  static #count = 0;
  readonly numbers: readonly number[];

  constructor(results: number) {
    this.numbers = Array.from({ length: results }, () => NamedRule.#count++);
    for (const number of this.numbers) rules.set(number, this);
  }
}

const rules = new WeakValues<number, NamedRule>();
const held = new WeakMap<Node, NamedRule>();

/** The rule of a number, if something holds it. */
export function ruleNamed(number: number): NamedRule | undefined {
  return rules.get(number);
}

/** The node holds the rule that it names. */
export function holdRule(node: Node, number: number): void {
  const rule = rules.get(number);
  if (rule !== undefined) held.set(node, rule);
}

/** How many numbers have a rule. */
export function ruleCount(): number {
  return rules.size;
}
