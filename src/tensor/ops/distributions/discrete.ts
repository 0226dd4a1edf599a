// Distributions of whole numbers: how often, which one, how many until.

import * as arg from '../../../ir/arguments.ts';
import { TensorError } from '../../../errors.ts';
import { anOperand, aTensor } from '../../expect.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import { add, div, mul, sub } from '../elementwise/arithmetic.ts';
import { log, neg, square } from '../elementwise/elementwise.ts';
import { show } from '../operand.ts';
import { argmax } from '../reduce/extremum.ts';
import { logSoftmax } from '../reduce/softmax.ts';
import { any, sum } from '../reduce/reduce.ts';
import { arange } from '../creation/creation.ts';
import { eq, lt, where } from '../elementwise/compare.ts';
import { unsqueeze } from '../shape/view.ts';
import { lgamma } from '../special/functions.ts';
import { xlog1py, xlogy } from '../special/pairs.ts';
import { asTensor } from '../../record.ts';
import {
  count,
  distribution,
  parameters,
  truth,
  widened,
  within,
  type Distribution,
  type DistributionParts,
} from './distribution.ts';
import type { OfOne } from './continuous.ts';
import * as noise from './noise.ts';
import { isNear, kept, logPoisson } from './stirling.ts';

/** Of a probability. */
export type OfShare = (p: TensorLike) => Distribution;

const takesShare = arg.takes<OfShare>(['the parameter', anOperand]);

/**
 * 1 with a probability, else 0.
 *
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * const k = sn.tensor([1, 0, 2]);
 * sn.distributions.bernoulli(p).logProb(k.sign());
 */
export const bernoulli: OfShare = (p) => {
  takesShare('bernoulli', p);
  const [given] = parameters('bernoulli', [p]) as [Tensor];
  const share = widened(given);
  return distribution('bernoulli', given, {
    mean: share,
    variance: mul(share, sub(1, share)),
    // 16 bits would round some numbers below 1 to 1.
    draw: (shape) => lt(noise.uniformNoise(shape, share.dtype), share),
    isSmooth: false,
    logProb: (x) =>
      within(truth, x, share, (point) => add(xlogy(point, share), xlog1py(sub(1, point), neg(share)))),
  });
};

/**
 * How many failures there are before the first success, of this probability.
 *
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * const k = sn.tensor([1, 0, 2]);
 * sn.distributions.geometric(p).logProb(k);
 */
export const geometric: OfShare = (p) => {
  takesShare('geometric', p);
  const [given] = parameters('geometric', [p]) as [Tensor];
  const share = widened(given);
  const mean = sub(div(1, share), 1);
  return distribution('geometric', given, {
    mean,
    variance: div(mean, share),
    draw: (shape) => noise.geometricNoise(shape, share),
    isSmooth: false,
    logProb: (x) => within(count, x, share, (point) => add(xlog1py(point, neg(share)), log(share))),
  });
};

const takesRate = arg.takes<OfOne>(['the parameter', arg.optional(anOperand)]);

/**
 * How often something happens that does so at this rate.
 *
 * @example
 * const v = sn.tensor([0.5, 1, 2]);
 * const k = sn.tensor([1, 0, 2]);
 * sn.distributions.poisson(v).logProb(k);
 */
export const poisson: OfOne = (rate = 1) => {
  takesRate('poisson', rate);
  const [given] = parameters('poisson', [rate]) as [Tensor];
  const often = widened(given);
  return distribution('poisson', given, {
    mean: often,
    variance: often,
    draw: (shape) => noise.poissonNoise(shape, often),
    isSmooth: false,
    logProb: (x) =>
      within(count, x, often, (point) => {
        const large = isNear(point, often);
        const [n, y] = kept(large, point, often) as [Tensor, Tensor];
        const few = where(large, 1, point);
        const plain = sub(sub(xlogy(few, often), often), lgamma(add(few, 1)));
        return where(large, logPoisson(n, y), plain);
      }),
  });
};

export interface CategoricalOptions {
  /** The tensor holds probabilities or weights, not their logarithms; false by default. */
  readonly probs?: boolean;
}

const takesCategorical = arg.takes<typeof categorical>(
  ['the logits', aTensor],
  ['options', arg.options<CategoricalOptions>({ probs: arg.flag })],
);

/**
 * One of the positions of the last axis (i32), by logits that need not be normalised: the greatest
 * after Gumbel's noise is added.
 *
 * @example
 * const p = sn.tensor([0.25, 0.5, 0.75]);
 * const k = sn.tensor([1, 0, 2]);
 * sn.distributions.categorical(p).logProb(k);
 */
export function categorical(logits: Tensor, options: CategoricalOptions = {}): Distribution {
  takesCategorical('categorical', logits, options);
  const [given] = parameters('categorical', [logits]) as [Tensor];
  if (given.rank === 0 || given.shape.at(-1) === 0)
    throw new TensorError('E_SHAPE', 'categorical', `expects logits along an axis: ${show(given)}`);
  const all = widened(given);
  const logs = logSoftmax(options.probs === true ? log(all) : all, -1);
  const size = given.shape.at(-1)!;
  const places = arange(size).cast(logs.dtype);
  const weights = logs.exp();
  const mean = sum(mul(weights, places), -1);
  const parts: DistributionParts = {
    mean,
    // Of differences: squares of large places would leave few digits.
    variance: sum(mul(weights, square(sub(places, unsqueeze(mean, -1)))), -1),
    // In 16 bits many sums would be equal, of which the first would be taken.
    draw: (shape) => argmax(add(logs, noise.gumbelNoise([...shape, size], logs.dtype)), -1),
    drawn: 'i32',
    isSmooth: false,
    logProb(x) {
      const index = unsqueeze(asTensor(x, 'i32', 'categorical.logProb'), -1);
      const chosen = eq(index, arange(size).cast(index.dtype));
      const isClass = any(chosen, -1);
      return where(isClass, sum(where(chosen, logs, 0), -1), -Infinity);
    },
  };
  return distribution('categorical', given, parts, given.shape.slice(0, -1));
}
