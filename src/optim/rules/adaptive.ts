// RMSprop (Tieleman and Hinton, 2012), Adagrad (Duchi et al., 2011) and Adadelta (Zeiler, 2012):
// steps divided by the root of past squared gradients.

import * as arg from '../../ir/arguments.ts';
import { sqrt, square } from '../../tensor/ops/elementwise/elementwise.ts';
import { add, div, mul, sub } from '../../tensor/ops/elementwise/arithmetic.ts';
import { FamilyOptimizer, family, type ClassOptions, type FunctionalOptions } from '../family.ts';
import type { FunctionalOptimizer } from '../functional.ts';
import type { Trainable } from '../optimizer.ts';
import { decayed, type Rule, type Slots } from '../rule.ts';

interface RmspropSettings {
  /** How much of the running mean square is kept; 0.99 by default. */
  readonly alpha?: number;
  /** Added to the divisor; 1e-8 by default. */
  readonly eps?: number;
  readonly momentum?: number;
  /** Divides by the standard deviation rather than the root mean square; false by default. */
  readonly centered?: boolean;
  /** Added to the gradient, times the parameter; 0 by default. */
  readonly weightDecay?: number;
}

/** The learning rate is 0.01 by default. */
export type RmspropOptions = ClassOptions<RmspropSettings>;

interface AdagradSettings {
  /** What the sums of squares start with; 0 by default. */
  readonly initialAccumulator?: number;
  /** Added to the divisor; 1e-10 by default. */
  readonly eps?: number;
  /** At step t the rate is lr / (1 + lrDecay·(t − 1)); 0 by default. */
  readonly lrDecay?: number;
  readonly weightDecay?: number;
}

/** The learning rate is 0.01 by default. */
export type AdagradOptions = ClassOptions<AdagradSettings>;

interface AdadeltaSettings {
  /** How much of both running mean squares is kept; 0.9 by default. */
  readonly rho?: number;
  /** Added below both roots; 1e-6 by default. */
  readonly eps?: number;
  readonly weightDecay?: number;
}

/** The learning rate is 1 by default. */
export type AdadeltaOptions = ClassOptions<AdadeltaSettings>;

const rmspropFamily = family<RmspropSettings>({
  className: 'RMSprop',
  functionName: 'rmsprop',
  settings: {
    alpha: arg.share,
    eps: arg.notNegative,
    momentum: arg.notNegative,
    centered: arg.flag,
    weightDecay: arg.notNegative,
  },
  lr: 1e-2,
  rule: rmspropRule,
});

const adagradFamily = family<AdagradSettings>({
  className: 'Adagrad',
  functionName: 'adagrad',
  settings: {
    initialAccumulator: arg.notNegative,
    eps: arg.notNegative,
    lrDecay: arg.notNegative,
    weightDecay: arg.notNegative,
  },
  lr: 1e-2,
  rule: adagradRule,
});

const adadeltaFamily = family<AdadeltaSettings>({
  className: 'Adadelta',
  functionName: 'adadelta',
  settings: { rho: arg.share, eps: arg.notNegative, weightDecay: arg.notNegative },
  lr: 1,
  rule: adadeltaRule,
});

function rmspropRule(settings: RmspropSettings): Rule {
  const { alpha = 0.99, eps = 1e-8, momentum = 0, centered = false, weightDecay = 0 } = settings;
  return {
    slots: {
      meanSquare: 0,
      ...(centered ? { mean: 0 } : {}),
      ...(momentum === 0 ? {} : { direction: 0 }),
    },
    step({ value, grad, slots, lr }) {
      const g = decayed(grad, value, weightDecay);
      const meanSquare = add(mul(slots['meanSquare']!, alpha), mul(square(g), 1 - alpha));
      const next: Record<string, Slots[string]> = { meanSquare };
      let power = meanSquare;
      if (centered) {
        next['mean'] = add(mul(slots['mean']!, alpha), mul(g, 1 - alpha));
        power = sub(meanSquare, square(next['mean']));
      }
      const scaled = div(g, add(sqrt(power), eps));
      if (momentum === 0) return { value: sub(value, mul(scaled, lr)), slots: next };
      next['direction'] = add(mul(slots['direction']!, momentum), scaled);
      return { value: sub(value, mul(next['direction'], lr)), slots: next };
    },
  };
}

function adagradRule(settings: AdagradSettings): Rule {
  const { initialAccumulator = 0, eps = 1e-10, lrDecay = 0, weightDecay = 0 } = settings;
  return {
    slots: { squares: initialAccumulator },
    step({ value, grad, slots, lr, clock }) {
      const g = decayed(grad, value, weightDecay);
      const squares = add(slots['squares']!, square(g));
      const rate = lrDecay === 0 ? lr : div(lr, add(1, mul(sub(clock.time, 1), lrDecay)));
      return { value: sub(value, mul(div(g, add(sqrt(squares), eps)), rate)), slots: { squares } };
    },
  };
}

function adadeltaRule({ rho = 0.9, eps = 1e-6, weightDecay = 0 }: AdadeltaSettings): Rule {
  return {
    slots: { meanSquare: 0, meanSquareStep: 0 },
    step({ value, grad, slots, lr }) {
      const g = decayed(grad, value, weightDecay);
      const past = slots['meanSquareStep']!;
      const meanSquare = add(mul(slots['meanSquare']!, rho), mul(square(g), 1 - rho));
      const step = mul(div(sqrt(add(past, eps)), sqrt(add(meanSquare, eps))), g);
      const meanSquareStep = add(mul(past, rho), mul(square(step), 1 - rho));
      return { value: sub(value, mul(step, lr)), slots: { meanSquare, meanSquareStep } };
    },
  };
}

/** p −= lr·g / (√meanSquare + eps). */
export class RMSprop extends FamilyOptimizer<RmspropSettings> {
  constructor(params: Trainable<RmspropOptions>, options: RmspropOptions = {}) {
    super(rmspropFamily, params, options);
  }
}

/** p −= lr·g / (√(sum of squares) + eps). */
export class Adagrad extends FamilyOptimizer<AdagradSettings> {
  constructor(params: Trainable<AdagradOptions>, options: AdagradOptions = {}) {
    super(adagradFamily, params, options);
  }
}

/** p −= lr·g·√(mean square of steps + eps) / √(mean square of gradients + eps). */
export class Adadelta extends FamilyOptimizer<AdadeltaSettings> {
  constructor(params: Trainable<AdadeltaOptions>, options: AdadeltaOptions = {}) {
    super(adadeltaFamily, params, options);
  }
}

/** `RMSprop` as functions on trees. */
export function rmsprop(options: FunctionalOptions<RmspropSettings> = {}): FunctionalOptimizer {
  return rmspropFamily.functions(options);
}

/** `Adagrad` as functions on trees. */
export function adagrad(options: FunctionalOptions<AdagradSettings> = {}): FunctionalOptimizer {
  return adagradFamily.functions(options);
}

/** `Adadelta` as functions on trees. */
export function adadelta(options: FunctionalOptions<AdadeltaSettings> = {}): FunctionalOptimizer {
  return adadeltaFamily.functions(options);
}
