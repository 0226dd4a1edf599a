// Optimizers that step by signs of gradients: Lion (Chen et al., 2023) and Rprop (Riedmiller and
// Braun, 1993), the latter by PyTorch's formulas.

import * as arg from '../../ir/arguments.ts';
import { add, mul, sub } from '../../tensor/ops/elementwise/arithmetic.ts';
import { eq, gt, lt, where } from '../../tensor/ops/elementwise/compare.ts';
import { clamp, sign } from '../../tensor/ops/elementwise/elementwise.ts';
import { FamilyOptimizer, family, type ClassOptions, type FunctionalOptions } from '../family.ts';
import type { FunctionalOptimizer } from '../functional.ts';
import type { Trainable } from '../optimizer.ts';
import type { Rule } from '../rule.ts';
import { decay } from './adam.ts';

interface LionSettings {
  /**
   * How much of the running mean counts in the step, and how much of it is kept; 0.9 and 0.99 by
   * default.
   */
  readonly betas?: readonly [number, number];
  /** Taken from the parameter itself: p −= lr·weightDecay·p; 0 by default. */
  readonly weightDecay?: number;
}

interface RpropSettings {
  /** What a step is multiplied by where the sign changed, and where it did not; 0.5 and 1.2. */
  readonly etas?: readonly [number, number];
  /** The shortest and the longest step; 1e-6 and 50 by default. */
  readonly stepSizes?: readonly [number, number];
}

/** The learning rate is 0.0001 by default. */
export type LionOptions = ClassOptions<LionSettings>;
/** The learning rate, 0.01 by default, is the length of the first step. */
export type RpropOptions = ClassOptions<RpropSettings>;

const lionFamily = family<LionSettings>({
  className: 'Lion',
  functionName: 'lion',
  settings: {
    betas: arg.tupleOf<readonly [number, number]>(decay, decay),
    weightDecay: arg.notNegative,
  },
  lr: 1e-4,
  rule: lionRule,
});

const rpropFamily = family<RpropSettings>({
  className: 'Rprop',
  functionName: 'rprop',
  settings: {
    etas: arg.tupleOf<readonly [number, number]>(arg.positive, arg.positive),
    stepSizes: arg.tupleOf<readonly [number, number]>(arg.notNegative, arg.positive),
  },
  lr: 1e-2,
  rule: rpropRule,
});

function lionRule({ betas = [0.9, 0.99], weightDecay = 0 }: LionSettings): Rule {
  const [now, kept] = betas;
  return {
    slots: { mean: 0 },
    step({ value, grad, slots, lr }) {
      const past = slots['mean']!;
      const direction = sign(add(mul(past, now), mul(grad, 1 - now)));
      const along = weightDecay === 0 ? direction : add(direction, mul(value, weightDecay));
      const mean = add(mul(past, kept), mul(grad, 1 - kept));
      return { value: sub(value, mul(along, lr)), slots: { mean } };
    },
  };
}

function rpropRule({ etas = [0.5, 1.2], stepSizes = [1e-6, 50] }: RpropSettings): Rule {
  const [shorter, longer] = etas;
  const [least, most] = stepSizes;
  return {
    slots: { last: 0, size: 0 },
    step({ value, grad, slots, lr, clock }) {
      const agrees = mul(grad, slots['last']!);
      const turned = lt(agrees, 0);
      const known = where(eq(clock.time, 1), lr, slots['size']!);
      // Products rather than a choice between numbers, which would be one of f32.
      const shrunk = where(turned, mul(known, shorter), known);
      const grown = where(gt(agrees, 0), mul(known, longer), shrunk);
      const size = clamp(grown, least, most);
      // Where the sign changed, this step waits for the next gradient.
      const last = where(turned, 0, grad);
      return { value: sub(value, mul(sign(last), size)), slots: { last, size } };
    },
  };
}

/** p −= lr·sign(a running mean of gradients). */
export class Lion extends FamilyOptimizer<LionSettings> {
  constructor(params: Trainable<LionOptions>, options: LionOptions = {}) {
    super(lionFamily, params, options);
  }
}

/** Each element has a step of its own, which grows while its gradient keeps its sign. */
export class Rprop extends FamilyOptimizer<RpropSettings> {
  constructor(params: Trainable<RpropOptions>, options: RpropOptions = {}) {
    super(rpropFamily, params, options);
  }
}

/** `Lion` as functions on trees. */
export function lion(options: FunctionalOptions<LionSettings> = {}): FunctionalOptimizer {
  return lionFamily.functions(options);
}

/** `Rprop` as functions on trees. */
export function rprop(options: FunctionalOptions<RpropSettings> = {}): FunctionalOptimizer {
  return rpropFamily.functions(options);
}
