// The derivative of every primitive, one row per op; the type makes a missing row an error. Rows
// are written by family in rules-*.ts.

import { CompilerBug } from '../errors.ts';
import { below } from '../ir/build.ts';
import { isComplex } from '../ir/dtype.ts';
import type { GraphBuilder, Node } from '../ir/graph.ts';
import { isElementwise, type Op } from '../ir/ops.ts';
import type { OfProcesses } from './rules-collective.ts';
import type { VjpRule } from './cotangent.ts';
import { customRule } from './custom.ts';
import { fusionRootRules } from './rules-root.ts';
import { complexRule, complexRules } from './rules-complex.ts';
import { contractionRules } from './rules-contraction.ts';
import { elementwiseRules } from './rules-elementwise.ts';
import { viewRules } from './rules-view.ts';
import { collectiveDerivative, factorDerivative } from './slots.ts';

const ofCollective = (b: GraphBuilder, node: OfProcesses, g: Node): readonly (Node | undefined)[] =>
  collectiveDerivative.value.cotangents(b, node, g);

/**
 * `flat`: nothing flows to the inputs, because there are none, they are integers, or the derivative
 * is 0.
 */
export const rules: { readonly [K in Op]: VjpRule<K> | 'flat' } = {
  ...elementwiseRules,
  ...viewRules,
  ...fusionRootRules,
  ...contractionRules,
  factor: (b, node, g, wanted) => factorDerivative.value(b, node, g, wanted),
  iterate: () => {
    throw new CompilerBug('vjp', 'a loop is differentiated as a whole');
  },
  ...complexRules,
  allReduce: ofCollective,
  allGather: ofCollective,
  reduceScatter: ofCollective,
  allToAll: ofCollective,
  permuteRanks: ofCollective,
  broadcastRank: ofCollective,
  parameter: 'flat',
  constant: 'flat',
  iota: 'flat',
  randomBits: 'flat',
  rankIndex: 'flat',
  stopGradient: 'flat',
  customVjp: customRule,
  barrier: (_, __, g) => [g, undefined],
  // Gradients lie as the values do.
  shard: (b, { attrs }, g) => [b.add('shard', [g], attrs) as Node],
  toPart: ofCollective,
  toWhole: ofCollective,
  // Beyond the bound the cotangent may be anything, and nothing depends on what is there.
  bounded: (b, { inputs, attrs }, g) => [below(b, g, attrs.axis, inputs[1]!)],
};

/** The rule of a node, for walks that do not know which op they meet. */
export function ruleFor(node: Node): VjpRule | 'flat' {
  const rule = rules[node.op] as unknown as VjpRule | 'flat';
  const isReal = !isComplex(node.dtype) && !node.inputs.some((input) => isComplex(input.dtype));
  return isReal ? rule : complexRule(node, rule, isElementwise(node.op));
}
