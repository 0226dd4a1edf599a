// Optimizers after Adam: Adamax (Kingma and Ba, 2015), NAdam (Dozat, 2016), RAdam (Liu et al., 2020)
// and LAMB (You et al., 2020), by PyTorch's formulas where PyTorch has them.

import * as arg from '../../ir/arguments.ts';
import { add, div, maximum, mul, sub } from '../../tensor/ops/elementwise/arithmetic.ts';
import { gt, lt, where } from '../../tensor/ops/elementwise/compare.ts';
import { abs, clamp, exp, expm1, neg, sqrt, square } from '../../tensor/ops/elementwise/elementwise.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { FamilyOptimizer, family, type ClassOptions, type FunctionalOptions } from '../family.ts';
import type { FunctionalOptimizer } from '../functional.ts';
import type { Trainable } from '../optimizer.ts';
import { decayed, length, type Rule, type ShapedSlot } from '../rule.ts';
import { decay } from './adam.ts';

interface MomentSettings {
  /** How much is kept of both running means; 0.9 and 0.999 by default. */
  readonly betas?: readonly [number, number];
  /** Added to the divisor; 1e-8 by default, for `Lamb` 1e-6. */
  readonly eps?: number;
  /** Added to the gradient, times the parameter; for `Lamb` to the step. 0 by default. */
  readonly weightDecay?: number;
}

interface NAdamSettings extends MomentSettings {
  /** How fast the momentum grows towards its limit; 0.004 by default. */
  readonly momentumDecay?: number;
}

/** The learning rate is 0.002 by default. */
export type AdamaxOptions = ClassOptions<MomentSettings>;
/** The learning rate is 0.002 by default. */
export type NAdamOptions = ClassOptions<NAdamSettings>;
/** The learning rate is 0.001 by default. */
export type RAdamOptions = ClassOptions<MomentSettings>;
/** The learning rate is 0.001 by default. */
export type LambOptions = ClassOptions<MomentSettings>;

const settings: arg.Table<MomentSettings> = {
  betas: arg.tupleOf<readonly [number, number]>(decay, decay),
  eps: arg.notNegative,
  weightDecay: arg.notNegative,
};

const adamaxFamily = family<MomentSettings>({
  className: 'Adamax',
  functionName: 'adamax',
  settings,
  lr: 2e-3,
  rule: adamaxRule,
});
const nadamFamily = family<NAdamSettings>({
  className: 'NAdam',
  functionName: 'nadam',
  settings: { ...settings, momentumDecay: arg.notNegative },
  lr: 2e-3,
  rule: nadamRule,
});
const radamFamily = family<MomentSettings>({
  className: 'RAdam',
  functionName: 'radam',
  settings,
  lr: 1e-3,
  rule: radamRule,
});
const lambFamily = family<MomentSettings>({
  className: 'Lamb',
  functionName: 'lamb',
  settings,
  lr: 1e-3,
  rule: lambRule,
});

/** kept·old + (1 − kept)·fresh */
function running(old: Tensor, fresh: Tensor, kept: number): Tensor {
  return add(mul(old, kept), mul(fresh, 1 - kept));
}

function adamaxRule({ betas = [0.9, 0.999], eps = 1e-8, weightDecay = 0 }: MomentSettings): Rule {
  const [beta1, beta2] = betas;
  return {
    slots: { mean: 0, largest: 0 },
    step({ value, grad, slots, lr, clock }) {
      const g = decayed(grad, value, weightDecay);
      const mean = running(slots['mean']!, g, beta1);
      const largest = maximum(mul(slots['largest']!, beta2), add(abs(g), eps));
      const step = mul(div(mul(mean, clock.unbias(beta1)), largest), lr);
      return { value: sub(value, step), slots: { mean, largest } };
    },
  };
}

/** A slot of one number. */
const single = (start: number): ShapedSlot => ({ start, shape: () => [] });

function nadamRule(given: NAdamSettings): Rule {
  const { betas = [0.9, 0.999], eps = 1e-8, weightDecay = 0, momentumDecay = 4e-3 } = given;
  const [beta1, beta2] = betas;
  /** The momentum of step t: beta1·(1 − 0.96^(t·momentumDecay) / 2). */
  const momentum = (t: Tensor): Tensor =>
    sub(beta1, mul(exp(mul(t, momentumDecay * Math.log(0.96))), beta1 / 2));
  return {
    slots: { mean: 0, meanSquare: 0, momentumProduct: single(1) },
    step({ value, grad, slots, lr, clock }) {
      const g = decayed(grad, value, weightDecay);
      const t = clock.time;
      const [now, next] = [momentum(t), momentum(add(t, 1))];
      const momentumProduct = mul(slots['momentumProduct']!, now);
      const mean = running(slots['mean']!, g, beta1);
      const meanSquare = running(slots['meanSquare']!, square(g), beta2);
      const spread = add(sqrt(mul(meanSquare, clock.unbias(beta2))), eps);
      const ofGrad = div(sub(1, now), sub(1, momentumProduct));
      const ofMean = div(next, sub(1, mul(momentumProduct, next)));
      const direction = add(mul(g, ofGrad), mul(mean, ofMean));
      return {
        value: sub(value, mul(div(direction, spread), lr)),
        slots: { mean, meanSquare, momentumProduct },
      };
    },
  };
}

/**
 * The length ρ of the average that a running mean square of step t stands for:
 * 2/(1 − β) − 1 − 2t·βᵗ/(1 − βᵗ). With L = −ln β and x = tL the last term is (2/L)·x/(eˣ − 1), whose
 * difference from 2/L is computed on its own: the two large numbers cancel in double precision, here.
 */
function averageLength(t: Tensor, beta: number): Tensor {
  const rate = -Math.log(beta);
  const x = mul(t, rate);
  const small = clamp(x, 0, 1);
  const s = square(small);
  // 1 − x/(eˣ − 1) = x/2 − Σ B₂ₖ x²ᵏ/(2k)!, with the Bernoulli numbers B₂ₖ.
  const inner = add(mul(add(mul(s, 1 / 1_209_600), -1 / 30_240), s), 1 / 720);
  const series = add(mul(small, 1 / 2), mul(s, add(mul(s, inner), -1 / 12)));
  const large = sub(1, div(x, expm1(maximum(x, 1))));
  const rest = where(lt(x, 1), series, large);
  return add(mul(rest, 2 / rate), 2 / (1 - beta) - 1 - 2 / rate);
}

function radamRule({ betas = [0.9, 0.999], eps = 1e-8, weightDecay = 0 }: MomentSettings): Rule {
  const [beta1, beta2] = betas;
  const limit = 2 / (1 - beta2) - 1;
  return {
    slots: { mean: 0, meanSquare: 0 },
    step({ value, grad, slots, lr, clock }) {
      const g = decayed(grad, value, weightDecay);
      const mean = running(slots['mean']!, g, beta1);
      const meanSquare = running(slots['meanSquare']!, square(g), beta2);
      const along = mul(mul(mean, clock.unbias(beta1)), lr);
      // The variance of the adaptive rate is finite from a length of more than 4 on; PyTorch takes 5.
      const span = beta2 === 0 ? undefined : averageLength(clock.time, beta2);
      if (span === undefined || limit <= 5) {
        return { value: sub(value, along), slots: { mean, meanSquare } };
      }
      const known = maximum(span, 5);
      const rectified = sqrt(
        div(mul(mul(sub(known, 4), sub(known, 2)), limit), mul(known, (limit - 4) * (limit - 2))),
      );
      // 1 − beta2ᵗ
      const bias = neg(expm1(mul(clock.time, Math.log(beta2))));
      const adaptive = div(sqrt(bias), add(sqrt(meanSquare), eps));
      const factor = where(gt(span, 5), mul(adaptive, rectified), 1);
      return { value: sub(value, mul(along, factor)), slots: { mean, meanSquare } };
    },
  };
}

function lambRule({ betas = [0.9, 0.999], eps = 1e-6, weightDecay = 0 }: MomentSettings): Rule {
  const [beta1, beta2] = betas;
  return {
    slots: { mean: 0, meanSquare: 0 },
    step({ value, grad, slots, lr, clock }) {
      const mean = running(slots['mean']!, grad, beta1);
      const meanSquare = running(slots['meanSquare']!, square(grad), beta2);
      const spread = add(sqrt(mul(meanSquare, clock.unbias(beta2))), eps);
      const direction = decayed(div(mul(mean, clock.unbias(beta1)), spread), value, weightDecay);
      const [size, moved] = [length(value), length(direction)];
      // The ratio is 1 where a layer or its step is all zeros.
      const hasBoth = gt(mul(size, moved), 0);
      const ratio = where(hasBoth, div(size, where(hasBoth, moved, 1)), 1);
      return { value: sub(value, mul(mul(direction, ratio), lr)), slots: { mean, meanSquare } };
    },
  };
}

/** p −= lr·mean / largest, where `largest` is the decayed maximum of gradients. */
export class Adamax extends FamilyOptimizer<MomentSettings> {
  constructor(params: Trainable<AdamaxOptions>, options: AdamaxOptions = {}) {
    super(adamaxFamily, params, options);
  }
}

/** Adam with Nesterov's look ahead, whose momentum grows with the steps. */
export class NAdam extends FamilyOptimizer<NAdamSettings> {
  constructor(params: Trainable<NAdamOptions>, options: NAdamOptions = {}) {
    super(nadamFamily, params, options);
  }
}

/** Adam that begins as momentum, until the variance of its rates is known well enough. */
export class RAdam extends FamilyOptimizer<MomentSettings> {
  constructor(params: Trainable<RAdamOptions>, options: RAdamOptions = {}) {
    super(radamFamily, params, options);
  }
}

/** Adam whose steps are as long, relative to each parameter's norm, as the learning rate says. */
export class Lamb extends FamilyOptimizer<MomentSettings> {
  constructor(params: Trainable<LambOptions>, options: LambOptions = {}) {
    super(lambFamily, params, options);
  }
}

/** `Adamax` as functions on trees. */
export function adamax(options: FunctionalOptions<MomentSettings> = {}): FunctionalOptimizer {
  return adamaxFamily.functions(options);
}

/** `NAdam` as functions on trees. */
export function nadam(options: FunctionalOptions<NAdamSettings> = {}): FunctionalOptimizer {
  return nadamFamily.functions(options);
}

/** `RAdam` as functions on trees. */
export function radam(options: FunctionalOptions<MomentSettings> = {}): FunctionalOptimizer {
  return radamFamily.functions(options);
}

/** `Lamb` as functions on trees. */
export function lamb(options: FunctionalOptions<MomentSettings> = {}): FunctionalOptimizer {
  return lambFamily.functions(options);
}
