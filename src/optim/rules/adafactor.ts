// Adafactor (Shazeer and Stern, 2018), by PyTorch's formulas: the mean squares of a matrix are kept
// as a row and a column, whose product stands for them.

import * as arg from '../../ir/arguments.ts';
import { add, div, maximum, minimum, mul, pow, sub } from '../../tensor/ops/elementwise/arithmetic.ts';
import { rsqrt, sqrt, square } from '../../tensor/ops/elementwise/elementwise.ts';
import { mean } from '../../tensor/ops/reduce/reduce.ts';
import type { Tensor, TensorLike } from '../../tensor/tensor.ts';
import { FamilyOptimizer, family, type ClassOptions, type FunctionalOptions } from '../family.ts';
import type { FunctionalOptimizer } from '../functional.ts';
import type { Trainable } from '../optimizer.ts';
import { refuseComplex, type Rule, type ShapedSlot, type Slots } from '../rule.ts';

interface AdafactorSettings {
  /** At step t, t^beta2Decay of the mean squares is new; −0.8 by default. */
  readonly beta2Decay?: number;
  /**
   * Least root mean squares: of gradients (2⁻²³ by default, the last bit of f32) and of parameters
   * (1e-3).
   */
  readonly eps?: readonly [number, number];
  /** What the root mean square of a step is clipped at; 1 by default. */
  readonly d?: number;
  /** Taken from the parameter itself: p −= lr·weightDecay·p; 0 by default. */
  readonly weightDecay?: number;
}

/** The learning rate is 0.01 by default: the largest step, relative to the parameter. */
export type AdafactorOptions = ClassOptions<AdafactorSettings>;

const described = family<AdafactorSettings>({
  className: 'Adafactor',
  functionName: 'adafactor',
  settings: {
    beta2Decay: arg.kind(
      'a number of at most 0',
      (value) => arg.number.accepts(value) && (value as number) <= 0,
    ),
    eps: arg.tupleOf<readonly [number, number]>(arg.notNegative, arg.notNegative),
    d: arg.positive,
    weightDecay: arg.notNegative,
  },
  lr: 1e-2,
  rule: adafactorRule,
});

/** Means over the last axis of a matrix, or over the one before it; nothing of a vector. */
const rows: ShapedSlot = {
  start: 0,
  shape: (of, dtype) => {
    refuseComplex('adafactor', dtype);
    return of.length < 2 ? [0] : [...of.slice(0, -1), 1];
  },
};
const columns: ShapedSlot = {
  start: 0,
  shape: (of) => (of.length < 2 ? [0] : [...of.slice(0, -2), 1, ...of.slice(-1)]),
};
/** The mean squares of a vector; nothing of a matrix. */
const whole: ShapedSlot = { start: 0, shape: (of) => (of.length < 2 ? of : [0]) };

const rms = (x: Tensor): Tensor => sqrt(mean(square(x)));

function adafactorRule(settings: AdafactorSettings): Rule {
  const { beta2Decay = -0.8, eps = [2 ** -23, 1e-3], d = 1, weightDecay = 0 } = settings;
  const [leastGrad, leastValue] = eps;
  return {
    slots: { rows, columns, meanSquare: whole },
    step({ value, grad, slots, lr, clock }) {
      const fresh = pow(clock.time, beta2Decay);
      const next = (name: string, now: Tensor): Tensor =>
        add(slots[name]!, mul(sub(now, slots[name]!), fresh));
      const rate = minimum(rsqrt(clock.time), lr);
      const length = mul(maximum(rms(value), leastValue), rate);
      const { power, kept } = meanSquares(square(grad), slots, next, leastGrad);
      const direction = mul(grad, rsqrt(maximum(power, leastGrad * leastGrad)));
      const clipped = div(direction, maximum(div(rms(direction), d), 1));
      const start = weightDecay === 0 ? value : mul(value, shrink(lr, weightDecay));
      return { value: sub(start, mul(clipped, length)), slots: kept };
    },
  };
}

function shrink(lr: TensorLike, weightDecay: number): TensorLike {
  return typeof lr === 'number' ? 1 - lr * weightDecay : sub(1, mul(lr, weightDecay));
}

/** What stands for the mean squares of the gradient, and what is kept of them. */
function meanSquares(
  squares: Tensor,
  slots: Slots,
  next: (name: string, now: Tensor) => Tensor,
  least: number,
): { readonly power: Tensor; readonly kept: Slots } {
  if (squares.rank < 2) {
    const power = next('meanSquare', squares);
    return { power, kept: { ...slots, meanSquare: power } };
  }
  const kept = {
    ...slots,
    rows: next('rows', mean(squares, -1, { keepdim: true })),
    columns: next('columns', mean(squares, -2, { keepdim: true })),
  };
  const scale = maximum(mean(kept.rows, -2, { keepdim: true }), least);
  return { power: div(mul(kept.rows, kept.columns), scale), kept };
}

/** p −= max(eps, rms(p))·min(lr, 1/√t)·g / √(mean square), clipped. */
export class Adafactor extends FamilyOptimizer<AdafactorSettings> {
  constructor(params: Trainable<AdafactorOptions>, options: AdafactorOptions = {}) {
    super(described, params, options);
  }
}

/** `Adafactor` as functions on trees. */
export function adafactor(options: FunctionalOptions<AdafactorSettings> = {}): FunctionalOptimizer {
  return described.functions(options);
}
