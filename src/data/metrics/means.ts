// Metrics that are means: of values such as losses, of errors of real numbers, of the likelihood of
// text; and the share of variance that predictions explain.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { isComplex } from '../../ir/dtype.ts';
import { expectOperand, expectTensor } from '../../tensor/expect.ts';
import { crossEntropy } from '../../tensor/ops/classification-loss.ts';
import { ones, zeros } from '../../tensor/ops/creation/creation.ts';
import { add, div, mul, sub } from '../../tensor/ops/elementwise/arithmetic.ts';
import { cast } from '../../tensor/ops/elementwise/cast.ts';
import { gt, ne, where } from '../../tensor/ops/elementwise/compare.ts';
import { abs, exp, square } from '../../tensor/ops/elementwise/elementwise.ts';
import { show } from '../../tensor/ops/operand.ts';
import { mean as meanOf, sum } from '../../tensor/ops/reduce/reduce.ts';
import { Tensor, type TensorLike } from '../../tensor/tensor.ts';
import type { MetricFunctions } from './metric.ts';
import { plus, together, valueOf, zeroTotal, type Total } from './total.ts';

/** A weighted sum, and the sum of the weights. */
export interface MeanState {
  readonly total: Total;
  readonly weight: Total;
}

type MeanFunctions<A extends readonly unknown[]> = MetricFunctions<MeanState, A>;

/** A mean of what `part` gives of each batch: a sum, and how much it counts. */
function running<A extends readonly unknown[]>(
  part: (...batch: A) => readonly [total: TensorLike, weight: TensorLike],
  finish: (value: Tensor) => Tensor = (value) => value,
): MeanFunctions<A> {
  return {
    init: () => ({ total: zeroTotal(), weight: zeroTotal() }),
    update: ({ total, weight }, ...batch) => {
      const [more, count] = part(...batch);
      return { total: plus(total, more), weight: plus(weight, count) };
    },
    compute: ({ total, weight }) => finish(div(valueOf(total), valueOf(weight))),
    merge: (a, b) => ({ total: together(a.total, b.total), weight: together(a.weight, b.weight) }),
  };
}

/** The mean of values, such as losses: each counts 1, or its weight (a number, or a tensor of their shape). */
export function mean(): MeanFunctions<readonly [values: TensorLike, weight?: TensorLike]> {
  return running((values, weight = 1) => {
    expectOperand('mean', values);
    expectOperand('mean', weight);
    const given = values instanceof Tensor ? cast(values, 'f32') : mul(ones([]), values);
    const weights = weight instanceof Tensor ? cast(weight, 'f32') : weight;
    const weighted = mul(given, weights);
    if (weighted.size !== given.size)
      throw new TensorError(
        'E_SHAPE',
        'mean',
        `the weight must have the values' shape: ${show(given, weighted)}`,
      );
    return [sum(weighted), sum(mul(ones(given.shape), weights))];
  });
}

/** Predictions and targets of one shape, as f32. */
function reals(op: string, preds: Tensor, targets: Tensor): readonly [Tensor, Tensor] {
  expectTensor(op, 'the predictions', preds);
  expectTensor(op, 'the targets', targets);
  if (preds.rank !== targets.rank || preds.shape.some((size, axis) => size !== targets.shape[axis]))
    throw new TensorError('E_SHAPE', op, `expects a target for each prediction: ${show(preds, targets)}`);
  if (isComplex(preds.dtype) || isComplex(targets.dtype))
    throw new TensorError('E_DTYPE', op, `expects real numbers: ${show(preds, targets)}`);
  return [cast(preds, 'f32'), cast(targets, 'f32')];
}

/** The mean of (prediction − target)². */
export function mse(): MeanFunctions<readonly [preds: Tensor, targets: Tensor]> {
  return running((preds, targets) => {
    const [p, t] = reals('mse', preds, targets);
    return [sum(square(sub(p, t))), p.size];
  });
}

/** The mean of |prediction − target|. */
export function mae(): MeanFunctions<readonly [preds: Tensor, targets: Tensor]> {
  return running((preds, targets) => {
    const [p, t] = reals('mae', preds, targets);
    return [sum(abs(sub(p, t))), p.size];
  });
}

/** What the share of variance is made of. */
export interface VarianceState {
  readonly count: Tensor;
  readonly mean: Tensor;
  /** Σ (target − mean)². */
  readonly spread: Tensor;
  /** Σ (target − prediction)². */
  readonly error: Total;
}

/**
 * The share of the targets' variance that predictions explain: 1 − Σ(t − p)² / Σ(t − mean)². Means and
 * spreads of batches are joined without differences of large sums (Chan, Golub and LeVeque, 1979).
 */
export function r2(): MetricFunctions<VarianceState, readonly [preds: Tensor, targets: Tensor]> {
  const joined = (a: VarianceState, b: VarianceState): VarianceState => {
    const count = add(a.count, b.count);
    const share = where(gt(count, 0), div(b.count, count), 0);
    const apart = sub(b.mean, a.mean);
    return {
      count,
      mean: add(a.mean, mul(apart, share)),
      spread: add(add(a.spread, b.spread), mul(mul(square(apart), a.count), share)),
      error: together(a.error, b.error),
    };
  };
  return {
    init: () => ({ count: zeros([]), mean: zeros([]), spread: zeros([]), error: zeroTotal() }),
    update: (state, preds, targets) => {
      const [p, t] = reals('r2', preds, targets);
      if (t.size === 0) return state;
      const middle = meanOf(t);
      return joined(state, {
        count: mul(ones([]), t.size),
        mean: middle,
        spread: sum(square(sub(t, middle))),
        error: plus(zeroTotal(), sum(square(sub(t, p)))),
      });
    },
    compute: ({ spread, error }) => sub(1, div(valueOf(error), spread)),
    merge: joined,
  };
}

export interface PerplexityOptions {
  /** Targets of this label count for nothing; none by default. */
  readonly ignoreIndex?: number;
}

const takesPerplexity = arg.takes<typeof perplexity>([
  'options',
  arg.options<PerplexityOptions>({ ignoreIndex: arg.integer }),
]);

/** exp of the mean negative log-likelihood of the targets under logits [N, C, …], as of the tokens of a text. */
export function perplexity(
  options: PerplexityOptions = {},
): MeanFunctions<readonly [logits: Tensor, targets: Tensor]> {
  takesPerplexity('perplexity', options);
  const { ignoreIndex } = options;
  return running((logits, targets) => {
    const loss = crossEntropy(logits, targets, { ...options, reduction: 'sum' });
    const count = ignoreIndex === undefined ? targets.size : sum(cast(ne(targets, ignoreIndex), 'i32'));
    return [cast(loss, 'f32'), count instanceof Tensor ? cast(count, 'f32') : count];
  }, exp);
}
