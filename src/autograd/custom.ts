// Derivatives given by the user. A `customVjp` node is its first input, `value`, on the way
// forward; on the way back nothing flows into `value`, and the registered rule gives the cotangents
// of the other inputs, the arguments. Nodes hold plain data only, so they name the rule by number;
// a function is registered once however many nodes use it.

import { TensorError } from '../errors.ts';
import { sameShape } from '../ir/shape.ts';
import { showType } from '../ir/infer.ts';
import type { GraphBuilder, Node } from '../ir/graph.ts';
import type { Rule } from './cotangent.ts';

/**
 * Cotangents of `args` from the cotangent `g` of the result: one node of the argument's dtype and
 * shape each, or undefined for none. `value` is the customVjp node itself, so a second derivative
 * through it follows the same rule. Arguments that are not `wanted` may be left undefined.
 */
export type CustomRule = (
  b: GraphBuilder,
  args: readonly Node[],
  value: Node,
  g: Node,
  wanted: readonly boolean[],
) => readonly (Node | undefined)[];

const registered: CustomRule[] = [];
const numbers = new WeakMap<CustomRule, number>();

/**
 * The number under which customVjp nodes name this rule; the same function always has the same one.
 */
export function registerRule(rule: CustomRule): number {
  const known = numbers.get(rule);
  if (known !== undefined) return known;
  const number = registered.push(rule) - 1;
  numbers.set(rule, number);
  return number;
}

/** The rule of this number. Throws E_GRAD when there is none, as for a graph read from a file. */
export function ruleOf(number: number): CustomRule {
  const rule = registered[number];
  if (rule !== undefined) return rule;
  throw new TensorError('E_GRAD', 'customVjp', `no rule ${number} is registered in this process`);
}

/** The rule of customVjp nodes: the user's, with what it gives checked. */
export const customRule: Rule<'customVjp'> = (b, node, g, wanted) => {
  const args = node.inputs.slice(1);
  const given = ruleOf(node.attrs.rule)(b, args, node as Node, g, wanted.slice(1));
  if (given.length !== args.length) {
    throw new TensorError(
      'E_GRAD',
      'customVjp',
      `the rule gave ${given.length} cotangent(s) for ${args.length} argument(s)`,
    );
  }
  given.forEach((cotangent, i) => {
    const arg = args[i]!;
    if (cotangent === undefined) return;
    if (cotangent.dtype !== arg.dtype || !sameShape(cotangent.shape, arg.shape)) {
      const problem = `argument ${i} is ${showType(arg)}, but its cotangent ${showType(cotangent)}`;
      throw new TensorError('E_GRAD', 'customVjp', problem);
    }
  });
  return [undefined, ...given];
};
