// Losses of classes, labels and sequences of labels, as modules.

import type { FloatDType } from '../../ir/dtype.ts';
import {
  crossEntropy,
  crossEntropyOptions,
  nllLoss,
  nllOptions,
  type CrossEntropyOptions,
  type NllOptions,
} from '../../tensor/ops/classification-loss.ts';
import { lossOptions, type LossOptions } from '../../tensor/ops/loss-reduction.ts';
import { ctcLoss, ctcOptions, type CtcOptions, type Lengths } from '../../tensor/ops/loss/ctc.ts';
import {
  multilabelMarginLoss,
  multilabelSoftMarginLoss,
  multilabelSoftMarginOptions,
  multiMarginLoss,
  multiMarginOptions,
  type MultilabelSoftMarginOptions,
  type MultiMarginOptions,
} from '../../tensor/ops/loss/margin.ts';
import type { Tensor, TensorLike } from '../../tensor/tensor.ts';
import { Loss, WeightedLoss } from './base.ts';

/** −x at the target class, for log-probabilities x. */
export class NLLLoss extends WeightedLoss<NllOptions> {
  constructor(options: NllOptions = {}) {
    super('NLLLoss', nllOptions, options);
  }

  forward(x: Tensor, target: Tensor): Tensor<FloatDType> {
    return nllLoss(x, target, this.whole());
  }
}

/** −log softmax of logits at the target: classes, or probabilities. */
export class CrossEntropyLoss extends WeightedLoss<CrossEntropyOptions> {
  constructor(options: CrossEntropyOptions = {}) {
    super('CrossEntropyLoss', crossEntropyOptions, options);
  }

  forward(logits: Tensor, target: Tensor): Tensor<FloatDType> {
    return crossEntropy(logits, target, this.whole());
  }
}

/** Hinges of each class against the target class. */
export class MultiMarginLoss extends WeightedLoss<MultiMarginOptions> {
  constructor(options: MultiMarginOptions = {}) {
    super('MultiMarginLoss', multiMarginOptions, options);
  }

  forward(x: Tensor, target: Tensor): Tensor<FloatDType> {
    return multiMarginLoss(x, target, this.whole());
  }
}

/** Hinges of a sample's classes against all others. */
export class MultiLabelMarginLoss extends Loss<LossOptions> {
  constructor(options: LossOptions = {}) {
    super('MultiLabelMarginLoss', lossOptions, options);
  }

  forward(x: Tensor, target: Tensor): Tensor<FloatDType> {
    return multilabelMarginLoss(x, target, this.options);
  }
}

/** The mean over classes of the binary cross-entropy of sigmoid(x). */
export class MultiLabelSoftMarginLoss extends WeightedLoss<MultilabelSoftMarginOptions> {
  constructor(options: MultilabelSoftMarginOptions = {}) {
    super('MultiLabelSoftMarginLoss', multilabelSoftMarginOptions, options);
  }

  forward(x: Tensor, target: TensorLike): Tensor<FloatDType> {
    return multilabelSoftMarginLoss(x, target, this.whole());
  }
}

/** −log of the probability that log-probabilities spell the targets (Graves et al., 2006). */
export class CTCLoss extends Loss<CtcOptions> {
  constructor(options: CtcOptions = {}) {
    super('CTCLoss', ctcOptions, options);
  }

  forward(
    logProbs: Tensor,
    targets: Tensor,
    inputLengths: Lengths,
    targetLengths: Lengths,
  ): Tensor<FloatDType> {
    return ctcLoss(logProbs, targets, inputLengths, targetLengths, this.options);
  }
}
