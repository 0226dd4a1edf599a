// Negative log-likelihoods of distributions whose parameters a network gives.

import type { FloatDType } from '../../../ir/dtype.ts';
import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { add, binary, cast, div, fullLike, mul, sub, unary, where } from '../../../ir/build.ts';
import { watch } from '../../debug.ts';
import { reduce } from '../../../ir/build.ts';
import { anOperand, aTensor } from '../../expect.ts';
import { Tensor, type TensorLike } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { lossOptions, reduced, type LossOptions } from '../loss-reduction.ts';
import { fit, operandType, show } from '../operand.ts';
import { unsqueeze } from '../shape/view.ts';

export interface GaussianNllOptions extends LossOptions {
  /** Adds ½·log 2π; false by default. */
  readonly full?: boolean;
  /** Variances below it count as it, and have the gradient of what they were; 1e-6 by default. */
  readonly eps?: number;
}

/** @internal */
export const gaussianNllOptions: arg.Table<GaussianNllOptions> = {
  ...lossOptions,
  full: arg.flag,
  eps: arg.positive,
};
const takesGaussianNll = arg.takes<typeof gaussianNllLoss>(
  ['x', aTensor],
  ['the target', anOperand],
  ['the variance', anOperand],
  ['options', arg.options<GaussianNllOptions>(gaussianNllOptions)],
);

/**
 * ½·(log variance + (x − target)²/variance). A variance without the last axis holds for all of that
 * axis.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 0, 1], [1, 5, 0]]);
 * const variance = sn.tensor([[1, 2, 1], [4, 1, 1]]);
 * sn.gaussianNllLoss(x, y, variance);
 */
export function gaussianNllLoss(
  x: Tensor,
  target: TensorLike,
  variance: TensorLike,
  options: GaussianNllOptions = {},
): Tensor<FloatDType> {
  takesGaussianNll('gaussianNllLoss', x, target, variance, options);
  const op = 'gaussianNllLoss';
  const { full = false, eps = 1e-6, reduction = 'mean' } = options;
  const dtype = operandType(op, [x, target, variance], 'realFloat');
  if (variance instanceof Tensor) watchVariance(op, variance);
  return fit(
    op,
    [x, target, spreadVariance(op, x, variance)],
    () => formula.wideType(dtype),
    (b, p, q, v) => {
      // As in PyTorch the bound holds without a word to the gradient, which is that of v.
      const short = formula.stopGradient(b, sub(b, binary(b, 'max', v, fullLike(b, v, eps)), v));
      const kept = where(b, binary(b, 'lt', v, eps), add(b, v, short), v);
      const square = div(b, formula.square(b, sub(b, p, q)), kept);
      const losses = mul(b, add(b, unary(b, 'log', kept), square), 0.5);
      const whole = full ? add(b, losses, 0.5 * Math.log(2 * Math.PI)) : losses;
      return cast(b, reduced(b, whole, reduction), dtype);
    },
  );
}

function watchVariance(op: string, variance: Tensor): void {
  watch(
    op,
    'E_VALUE',
    [variance],
    (b, [node]) => {
      const axes = variance.shape.map((_, axis) => axis);
      return [reduce(b, 'min', cast(b, node!, 'f32'), axes)];
    },
    ([least]) => (least! < 0 ? `variances must not be negative: ${least}` : undefined),
  );
}

/** A variance per element, one for the last axis, or one per sample. */
function spreadVariance(op: string, x: Tensor, variance: TensorLike): TensorLike {
  if (!(variance instanceof Tensor) || variance.rank === 0) return variance;
  const same = (a: readonly number[], b: readonly number[]): boolean =>
    a.length === b.length && a.every((dim, i) => dim === b[i]);
  if (same(variance.shape, x.shape)) return variance;
  if (same(variance.shape, x.shape.slice(0, -1))) return unsqueeze(variance, -1);
  if (same(variance.shape.slice(0, -1), x.shape.slice(0, -1)) && variance.shape.at(-1) === 1) return variance;
  throw new TensorError(
    'E_SHAPE',
    op,
    `the variance must have x's shape, or lack its last axis: ${show(x, variance)}`,
  );
}

export interface PoissonNllOptions extends LossOptions {
  /** x is the logarithm of the rate; true by default. */
  readonly logInput?: boolean;
  /** Adds Stirling's approximation of log target! where the target is above 1; false by default. */
  readonly full?: boolean;
  /** Added to rates before their logarithm; 1e-8 by default. */
  readonly eps?: number;
}

/** @internal */
export const poissonNllOptions: arg.Table<PoissonNllOptions> = {
  ...lossOptions,
  logInput: arg.flag,
  full: arg.flag,
  eps: arg.number,
};
const takesPoissonNll = arg.takes<typeof poissonNllLoss>(
  ['x', aTensor],
  ['the target', anOperand],
  ['options', arg.options<PoissonNllOptions>(poissonNllOptions)],
);

/**
 * eˣ − target·x, or x − target·log(x + eps) of rates x.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const y = sn.tensor([[2, 0, 1], [1, 5, 0]]);
 * sn.poissonNllLoss(x, y);
 */
export function poissonNllLoss(
  x: Tensor,
  target: TensorLike,
  options: PoissonNllOptions = {},
): Tensor<FloatDType> {
  takesPoissonNll('poissonNllLoss', x, target, options);
  const { logInput = true, full = false, eps = 1e-8, reduction = 'mean' } = options;
  const dtype = operandType('poissonNllLoss', [x, target], 'realFloat');
  return fit(
    'poissonNllLoss',
    [x, target],
    () => formula.wideType(dtype),
    (b, p, q) => {
      const losses = logInput
        ? sub(b, unary(b, 'exp', p), mul(b, q, p))
        : sub(b, p, mul(b, q, unary(b, 'log', add(b, p, eps))));
      if (!full) return cast(b, reduced(b, losses, reduction), dtype);
      const isLarge = binary(b, 'lt', fullLike(b, q, 1), q);
      const safe = where(b, isLarge, q, fullLike(b, q, 1));
      const log = unary(b, 'log', safe);
      const root = mul(b, add(b, log, Math.log(2 * Math.PI)), 0.5);
      const stirling = add(b, sub(b, mul(b, safe, log), safe), root);
      const whole = add(b, losses, where(b, isLarge, stirling, fullLike(b, q, 0)));
      return cast(b, reduced(b, whole, reduction), dtype);
    },
  );
}
