// RMSprop (Tieleman and Hinton, 2012) and Adagrad (Duchi et al., 2011): steps divided by the root
// of past squared gradients.

import * as arg from '../ir/arguments.ts';
import { sqrt, square } from '../tensor/ops/elementwise/elementwise.ts';
import { add, div, mul, sub } from '../tensor/ops/elementwise/arithmetic.ts';
import type { TensorLike } from '../tensor/tensor.ts';
import { functional, type FunctionalOptimizer } from './functional.ts';
import {
  Optimizer,
  rateOperand,
  rateOptions,
  trainable,
  type RateOptions,
  type Trainable,
} from './optimizer.ts';
import type { Rule, Slots } from './rule.ts';

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
export interface RmspropOptions extends RmspropSettings, RateOptions {}

interface AdagradSettings {
  /** What the sums of squares start with; 0 by default. */
  readonly initialAccumulator?: number;
  /** Added to the divisor; 1e-10 by default. */
  readonly eps?: number;
  readonly weightDecay?: number;
}

/** The learning rate is 0.01 by default. */
export interface AdagradOptions extends AdagradSettings, RateOptions {}

const defaultRate = 1e-2;

const rmspropSettings: arg.Table<RmspropSettings> = {
  alpha: arg.share,
  eps: arg.notNegative,
  momentum: arg.notNegative,
  centered: arg.flag,
  weightDecay: arg.notNegative,
};
const rmspropOptions: arg.Table<RmspropOptions> = { ...rmspropSettings, ...rateOptions };
const adagradSettings: arg.Table<AdagradSettings> = {
  initialAccumulator: arg.notNegative,
  eps: arg.notNegative,
  weightDecay: arg.notNegative,
};
const adagradOptions: arg.Table<AdagradOptions> = { ...adagradSettings, ...rateOptions };
const takesRmsprop = arg.takes<typeof RMSprop>(
  ['the parameters', trainable(rmspropOptions)],
  ['options', arg.options<RmspropOptions>(rmspropOptions)],
);
const takesAdagrad = arg.takes<typeof Adagrad>(
  ['the parameters', trainable(adagradOptions)],
  ['options', arg.options<AdagradOptions>(adagradOptions)],
);
interface Rate {
  readonly lr?: TensorLike;
}
const takesRmspropSettings = arg.takes<typeof rmsprop>([
  'options',
  arg.options<RmspropSettings & Rate>({ ...rmspropSettings, lr: rateOperand }),
]);
const takesAdagradSettings = arg.takes<typeof adagrad>([
  'options',
  arg.options<AdagradSettings & Rate>({ ...adagradSettings, lr: rateOperand }),
]);

function rmspropRule(settings: RmspropSettings): Rule {
  const { alpha = 0.99, eps = 1e-8, momentum = 0, centered = false, weightDecay = 0 } = settings;
  return {
    slots: {
      meanSquare: 0,
      ...(centered ? { mean: 0 } : {}),
      ...(momentum === 0 ? {} : { direction: 0 }),
    },
    step({ value, grad, slots, lr }) {
      const g = weightDecay === 0 ? grad : add(grad, mul(value, weightDecay));
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

function adagradRule({ initialAccumulator = 0, eps = 1e-10, weightDecay = 0 }: AdagradSettings): Rule {
  return {
    slots: { squares: initialAccumulator },
    step({ value, grad, slots, lr }) {
      const g = weightDecay === 0 ? grad : add(grad, mul(value, weightDecay));
      const squares = add(slots['squares']!, square(g));
      return { value: sub(value, mul(div(g, add(sqrt(squares), eps)), lr)), slots: { squares } };
    },
  };
}

/** p −= lr·g / (√meanSquare + eps). */
export class RMSprop extends Optimizer<RmspropOptions> {
  constructor(params: Trainable<RmspropOptions>, options: RmspropOptions = {}) {
    takesRmsprop('RMSprop', params, options);
    super(params, options, (own) => ({ rule: rmspropRule(own), lr: own.lr ?? defaultRate }));
  }
}

/** p −= lr·g / (√(sum of squares) + eps). */
export class Adagrad extends Optimizer<AdagradOptions> {
  constructor(params: Trainable<AdagradOptions>, options: AdagradOptions = {}) {
    takesAdagrad('Adagrad', params, options);
    super(params, options, (own) => ({ rule: adagradRule(own), lr: own.lr ?? defaultRate }));
  }
}

/** `RMSprop` as functions on trees. */
export function rmsprop(options: RmspropSettings & Rate = {}): FunctionalOptimizer {
  takesRmspropSettings('rmsprop', options);
  return functional('rmsprop', rmspropRule(options), options.lr ?? defaultRate);
}

/** `Adagrad` as functions on trees. */
export function adagrad(options: AdagradSettings & Rate = {}): FunctionalOptimizer {
  takesAdagradSettings('adagrad', options);
  return functional('adagrad', adagradRule(options), options.lr ?? defaultRate);
}
