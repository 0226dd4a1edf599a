// Losses of each pair of elements, as modules.

import type { FloatDType } from '../../ir/dtype.ts';
import * as arg from '../../ir/arguments.ts';
import {
  bceLoss,
  bceOptions,
  bceWithLogits,
  bceWithLogitsOptions,
  hingeEmbeddingLoss,
  hingeEmbeddingOptions,
  huberLoss,
  huberOptions,
  klDiv,
  klDivOptions,
  l1Loss,
  mseLoss,
  smoothL1Loss,
  smoothL1Options,
  type BceOptions,
  type BceWithLogitsOptions,
  type HingeEmbeddingOptions,
  type HuberOptions,
  type KlDivOptions,
  type SmoothL1Options,
} from '../../tensor/ops/loss.ts';
import { lossOptions, type LossOptions } from '../../tensor/ops/loss-reduction.ts';
import {
  gaussianNllLoss,
  gaussianNllOptions,
  poissonNllLoss,
  poissonNllOptions,
  type GaussianNllOptions,
  type PoissonNllOptions,
} from '../../tensor/ops/loss/likelihood.ts';
import { softMarginLoss } from '../../tensor/ops/loss/margin.ts';
import type { Tensor, TensorLike } from '../../tensor/tensor.ts';
import { Loss, WeightedLoss } from './base.ts';

/** (x − target)². */
export class MSELoss extends Loss<LossOptions> {
  constructor(options: LossOptions = {}) {
    super('MSELoss', lossOptions, options);
  }

  forward(x: Tensor, target: TensorLike): Tensor<FloatDType> {
    return mseLoss(x, target, this.options);
  }
}

/** |x − target|. */
export class L1Loss extends Loss<LossOptions> {
  constructor(options: LossOptions = {}) {
    super('L1Loss', lossOptions, options);
  }

  forward(x: Tensor, target: TensorLike): Tensor<FloatDType> {
    return l1Loss(x, target, this.options);
  }
}

/** ½·d²/beta for |d| below beta, else |d| − ½·beta. */
export class SmoothL1Loss extends Loss<SmoothL1Options> {
  constructor(options: SmoothL1Options = {}) {
    super('SmoothL1Loss', smoothL1Options, options);
  }

  forward(x: Tensor, target: TensorLike): Tensor<FloatDType> {
    return smoothL1Loss(x, target, this.options);
  }
}

/** ½·d² for |d| below delta, else delta·(|d| − ½·delta). */
export class HuberLoss extends Loss<HuberOptions> {
  constructor(options: HuberOptions = {}) {
    super('HuberLoss', huberOptions, options);
  }

  forward(x: Tensor, target: TensorLike): Tensor<FloatDType> {
    return huberLoss(x, target, this.options);
  }
}

/** Binary cross-entropy of probabilities x. */
export class BCELoss extends WeightedLoss<BceOptions> {
  constructor(options: BceOptions = {}) {
    super('BCELoss', bceOptions, options);
  }

  forward(x: Tensor, target: TensorLike): Tensor<FloatDType> {
    return bceLoss(x, target, this.whole());
  }
}

/** Binary cross-entropy of sigmoid(x), from the logits x. */
export class BCEWithLogitsLoss extends WeightedLoss<Omit<BceWithLogitsOptions, 'posWeight'>> {
  posWeight: TensorLike | undefined;

  constructor(options: BceWithLogitsOptions = {}) {
    const { posWeight, ...rest } = checkedLogits(options);
    super('BCEWithLogitsLoss', bceOptions, rest);
    this.posWeight = posWeight;
  }

  override buffers(): readonly string[] {
    return ['weight', 'posWeight'];
  }

  forward(x: Tensor, target: TensorLike): Tensor<FloatDType> {
    const { posWeight } = this;
    return bceWithLogits(x, target, { ...this.whole(), ...(posWeight === undefined ? {} : { posWeight }) });
  }
}

const takesLogits = arg.takes<typeof BCEWithLogitsLoss>([
  'options',
  arg.options<BceWithLogitsOptions>(bceWithLogitsOptions),
]);

function checkedLogits(options: BceWithLogitsOptions): BceWithLogitsOptions {
  takesLogits('BCEWithLogitsLoss', options);
  return options;
}

/** target·(log target − x) for log-probabilities x. */
export class KLDivLoss extends Loss<KlDivOptions> {
  constructor(options: KlDivOptions = {}) {
    super('KLDivLoss', klDivOptions, options);
  }

  forward(x: Tensor, target: Tensor): Tensor<FloatDType> {
    return klDiv(x, target, this.options);
  }
}

/** x where the target is 1, max(0, margin − x) where it is −1. */
export class HingeEmbeddingLoss extends Loss<HingeEmbeddingOptions> {
  constructor(options: HingeEmbeddingOptions = {}) {
    super('HingeEmbeddingLoss', hingeEmbeddingOptions, options);
  }

  forward(x: Tensor, target: TensorLike): Tensor<FloatDType> {
    return hingeEmbeddingLoss(x, target, this.options);
  }
}

/** log(1 + e^(−target·x)) for targets 1 and −1. */
export class SoftMarginLoss extends Loss<LossOptions> {
  constructor(options: LossOptions = {}) {
    super('SoftMarginLoss', lossOptions, options);
  }

  forward(x: Tensor, target: TensorLike): Tensor<FloatDType> {
    return softMarginLoss(x, target, this.options);
  }
}

/** Negative log-likelihood of counts whose rate, or its logarithm, is x. */
export class PoissonNLLLoss extends Loss<PoissonNllOptions> {
  constructor(options: PoissonNllOptions = {}) {
    super('PoissonNLLLoss', poissonNllOptions, options);
  }

  forward(x: Tensor, target: TensorLike): Tensor<FloatDType> {
    return poissonNllLoss(x, target, this.options);
  }
}

/** Negative log-likelihood of targets with mean x and a given variance. */
export class GaussianNLLLoss extends Loss<GaussianNllOptions> {
  constructor(options: GaussianNllOptions = {}) {
    super('GaussianNLLLoss', gaussianNllOptions, options);
  }

  forward(x: Tensor, target: TensorLike, variance: TensorLike): Tensor<FloatDType> {
    return gaussianNllLoss(x, target, variance, this.options);
  }
}
