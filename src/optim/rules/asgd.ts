// Averaged stochastic gradient descent (Polyak and Juditsky, 1992), by PyTorch's formulas: the
// average of the parameters is kept in a slot of its own.

import * as arg from '../../ir/arguments.ts';
import { add, div, maximum, mul, pow, sub } from '../../tensor/ops/elementwise/arithmetic.ts';
import { FamilyOptimizer, family, type ClassOptions, type FunctionalOptions } from '../family.ts';
import type { FunctionalOptimizer } from '../functional.ts';
import type { Trainable } from '../optimizer.ts';
import { decayed, type Rule } from '../rule.ts';

interface AsgdSettings {
  /** The decay of the parameters; 1e-4 by default. */
  readonly lambd?: number;
  /** The power of the decay of the rate; 0.75 by default. */
  readonly alpha?: number;
  /** Steps before averaging starts; 1e6 by default. */
  readonly t0?: number;
  readonly weightDecay?: number;
}

/** The learning rate is 0.01 by default. */
export type AsgdOptions = ClassOptions<AsgdSettings>;

const described = family<AsgdSettings>({
  className: 'ASGD',
  functionName: 'asgd',
  settings: {
    lambd: arg.notNegative,
    alpha: arg.notNegative,
    t0: arg.notNegative,
    weightDecay: arg.notNegative,
  },
  lr: 1e-2,
  rule: asgdRule,
});

function asgdRule({ lambd = 1e-4, alpha = 0.75, t0 = 1e6, weightDecay = 0 }: AsgdSettings): Rule {
  return {
    slots: { average: 0 },
    step({ value, grad, slots, lr, clock }) {
      const g = decayed(grad, value, weightDecay);
      // The rate and the weight of a step are those that the step before it left behind.
      const done = sub(clock.time, 1);
      const rate = div(lr, pow(add(mul(mul(done, lambd), lr), 1), alpha));
      const weight = div(1, maximum(sub(done, t0), 1));
      const next = sub(mul(value, sub(1, mul(rate, lambd))), mul(g, rate));
      const past = slots['average']!;
      return { value: next, slots: { average: add(past, mul(sub(next, past), weight)) } };
    },
  };
}

/** p −= lr_t·(g + lambd·p), with the average of p kept in the slot `average`. */
export class ASGD extends FamilyOptimizer<AsgdSettings> {
  constructor(params: Trainable<AsgdOptions>, options: AsgdOptions = {}) {
    super(described, params, options);
  }
}

/** `ASGD` as functions on trees. */
export function asgd(options: FunctionalOptions<AsgdSettings> = {}): FunctionalOptimizer {
  return described.functions(options);
}
