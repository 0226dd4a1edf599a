// The derivative of every primitive, one row per op; the type makes a missing row an error. Rows
// are written by family in rules-*.ts.

import type { Op } from '../ir/ops.ts';
import type { Rule } from './cotangent.ts';
import { customRule } from './custom.ts';
import { anchorRules } from './rules-anchor.ts';
import { contractionRules } from './rules-contraction.ts';
import { elementwiseRules } from './rules-elementwise.ts';
import { factorRule } from './rules-factor.ts';
import { viewRules } from './rules-view.ts';

/**
 * `flat`: nothing flows to the inputs, because there are none, they are integers, or the derivative
 * is 0.
 */
export const rules: { readonly [K in Op]: Rule<K> | 'flat' } = {
  ...elementwiseRules,
  ...viewRules,
  ...anchorRules,
  ...contractionRules,
  factor: factorRule,
  parameter: 'flat',
  constant: 'flat',
  iota: 'flat',
  randomBits: 'flat',
  stopGradient: 'flat',
  customVjp: customRule,
};

/** The rule of an op, for walks that do not know which op they meet. */
export function ruleFor(op: Op): Rule | 'flat' {
  return rules[op] as unknown as Rule | 'flat';
}
