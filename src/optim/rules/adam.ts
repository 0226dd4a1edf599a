// Adam (Kingma and Ba, 2015), its variant that never forgets a large gradient (AMSGrad: Reddi et
// al., 2018), and AdamW, whose weight decay does not pass through the moments (Loshchilov and
// Hutter, 2019).

import * as arg from '../../ir/arguments.ts';
import { sqrt, square } from '../../tensor/ops/elementwise/elementwise.ts';
import { add, div, maximum, mul, sub } from '../../tensor/ops/elementwise/arithmetic.ts';
import { FamilyOptimizer, family, type ClassOptions, type FunctionalOptions } from '../family.ts';
import type { FunctionalOptimizer } from '../functional.ts';
import type { Trainable } from '../optimizer.ts';
import type { Rule } from '../rule.ts';

interface AdamSettings {
  /**
   * How much of the running mean and of the running mean square is kept; 0.9 and 0.999 by default.
   */
  readonly betas?: readonly [number, number];
  /** Added to the divisor; 1e-8 by default. */
  readonly eps?: number;
  /** 0 by default, for `AdamW` 0.01. */
  readonly weightDecay?: number;
  /** Divides by the largest mean square so far; false by default. */
  readonly amsgrad?: boolean;
}

/** The learning rate is 0.001 by default. */
export type AdamOptions = ClassOptions<AdamSettings>;

/** How much is kept of a running mean. */
export const decay: arg.Kind<number> = arg.kind(
  'a number in [0, 1)',
  (value) => arg.share.accepts(value) && value !== 1,
);

const adamSettings: arg.Table<AdamSettings> = {
  betas: arg.tupleOf<readonly [number, number]>(decay, decay),
  eps: arg.notNegative,
  weightDecay: arg.notNegative,
  amsgrad: arg.flag,
};
function adamRule(settings: AdamSettings, weightDecay: number, decoupled: boolean): Rule {
  const { betas = [0.9, 0.999], eps = 1e-8, amsgrad = false } = settings;
  const [beta1, beta2] = betas;
  return {
    slots: amsgrad ? { mean: 0, meanSquare: 0, maxMeanSquare: 0 } : { mean: 0, meanSquare: 0 },
    step({ value, grad, slots, lr, clock }) {
      const decay = weightDecay === 0 ? undefined : mul(value, weightDecay);
      const g = decay === undefined || decoupled ? grad : add(grad, decay);
      const start = decay === undefined || !decoupled ? value : sub(value, mul(decay, lr));
      const mean = add(mul(slots['mean']!, beta1), mul(g, 1 - beta1));
      const meanSquare = add(mul(slots['meanSquare']!, beta2), mul(square(g), 1 - beta2));
      const maxMeanSquare = amsgrad ? maximum(slots['maxMeanSquare']!, meanSquare) : meanSquare;
      const spread = add(sqrt(mul(maxMeanSquare, clock.unbias(beta2))), eps);
      const step = div(mul(mul(mean, clock.unbias(beta1)), lr), spread);
      const moments = { mean, meanSquare };
      return { value: sub(start, step), slots: amsgrad ? { ...moments, maxMeanSquare } : moments };
    },
  };
}

const coupled = family<AdamSettings>({
  className: 'Adam',
  functionName: 'adam',
  settings: adamSettings,
  lr: 1e-3,
  rule: (settings) => adamRule(settings, settings.weightDecay ?? 0, false),
});

const decoupled = family<AdamSettings>({
  className: 'AdamW',
  functionName: 'adamW',
  settings: adamSettings,
  lr: 1e-3,
  rule: (settings) => adamRule(settings, settings.weightDecay ?? 0.01, true),
});

/** p −= lr·mean / (√meanSquare + eps), both unbiased. Weight decay is added to the gradient. */
export class Adam extends FamilyOptimizer<AdamSettings> {
  constructor(params: Trainable<AdamOptions>, options: AdamOptions = {}) {
    super(coupled, params, options);
  }
}

/** As `Adam`, with weight decay taken from the parameter itself: p −= lr·weightDecay·p. */
export class AdamW extends FamilyOptimizer<AdamSettings> {
  constructor(params: Trainable<AdamOptions>, options: AdamOptions = {}) {
    super(decoupled, params, options);
  }
}

/** `Adam` as functions on trees. */
export function adam(options: FunctionalOptions<AdamSettings> = {}): FunctionalOptimizer {
  return coupled.functions(options);
}

/** `AdamW` as functions on trees. */
export function adamW(options: FunctionalOptions<AdamSettings> = {}): FunctionalOptimizer {
  return decoupled.functions(options);
}
