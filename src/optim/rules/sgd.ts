// Stochastic gradient descent, with momentum (Polyak, 1964; Nesterov, 1983) as PyTorch has it.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { add, mul, sub } from '../../tensor/ops/elementwise/arithmetic.ts';
import { FamilyOptimizer, family, type ClassOptions, type FunctionalOptions } from '../family.ts';
import type { FunctionalOptimizer } from '../functional.ts';
import type { Trainable } from '../optimizer.ts';
import { decayed, type Rule } from '../rule.ts';

interface SgdSettings {
  /** How much of the last direction is kept; 0 by default. */
  readonly momentum?: number;
  /**
   * How much less than fully a gradient counts in the direction, but for the first; 0 by default.
   */
  readonly dampening?: number;
  /** Looks ahead along the direction; false by default. */
  readonly nesterov?: boolean;
  /** Added to the gradient, times the parameter; 0 by default. */
  readonly weightDecay?: number;
}

/** The learning rate is 0.001 by default. */
export type SgdOptions = ClassOptions<SgdSettings>;

const sgdSettings: arg.Table<SgdSettings> = {
  momentum: arg.notNegative,
  dampening: arg.number,
  nesterov: arg.flag,
  weightDecay: arg.notNegative,
};

function sgdRule(settings: SgdSettings): Rule {
  const { momentum = 0, dampening = 0, nesterov = false, weightDecay = 0 } = settings;
  if (nesterov && (momentum === 0 || dampening !== 0)) {
    throw new TensorError('E_VALUE', 'sgd', 'nesterov needs a momentum and no dampening');
  }
  return {
    slots: momentum === 0 ? {} : { direction: 0 },
    step({ value, grad, slots, lr, clock }) {
      const g = decayed(grad, value, weightDecay);
      if (momentum === 0) return { value: sub(value, mul(g, lr)), slots };
      const fresh = dampening === 0 ? g : mul(g, clock.pick(1, 1 - dampening));
      const direction = add(mul(slots['direction']!, momentum), fresh);
      const along = nesterov ? add(g, mul(direction, momentum)) : direction;
      return { value: sub(value, mul(along, lr)), slots: { direction } };
    },
  };
}

const described = family<SgdSettings>({
  className: 'SGD',
  functionName: 'sgd',
  settings: sgdSettings,
  lr: 1e-3,
  rule: sgdRule,
});

/** p −= lr·g, or lr times a direction that gradients are gathered in. */
export class SGD extends FamilyOptimizer<SgdSettings> {
  constructor(params: Trainable<SgdOptions>, options: SgdOptions = {}) {
    super(described, params, options);
  }
}

/** `SGD` as functions on trees. */
export function sgd(options: FunctionalOptions<SgdSettings> = {}): FunctionalOptimizer {
  return described.functions(options);
}
