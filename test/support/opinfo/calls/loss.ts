// Calls of PyTorch's operators as ours: losses and distances.

import * as sn from '../../../../src/index.ts';
import type { Tensor, TensorLike } from '../../../../src/index.ts';
import { signature, type Args, type Call, type Calls } from '../args.ts';

/** What every loss has, deprecated names too. */
const common = 'size_average=None, reduce=None, reduction=mean';

function elementwise(
  f: (x: Tensor, target: TensorLike, options: Record<string, never>) => Tensor,
  ...names: readonly string[]
): Call {
  const own = names.map((name) => `${name.split('=')[0]}=None`).join(', ');
  return signature(`input, target, ${common}${own === '' ? '' : `, ${own}`}`)((a) =>
    f(a.tensor('input'), a.tensor('target'), a.options('reduction', ...names)),
  );
}

function pair(f: (x: Tensor, y: Tensor, target: Tensor, options: Record<string, never>) => Tensor): Call {
  return signature(`input1, input2, target, margin=0, ${common}`)((a) =>
    f(a.tensor('input1'), a.tensor('input2'), a.tensor('target'), a.options('margin', 'reduction')),
  );
}

const classes = (a: Args): Record<string, never> =>
  a.options('weight', 'ignore_index', 'reduction', 'label_smoothing', 'p', 'margin');

export const loss: Calls = {
  'nn.functional.mse_loss': elementwise(sn.mseLoss),
  'nn.functional.l1_loss': elementwise(sn.l1Loss),
  'nn.functional.smooth_l1_loss': elementwise(sn.smoothL1Loss, 'beta'),
  'nn.functional.huber_loss': signature('input, target, reduction=mean, delta=1.0')((a) =>
    sn.huberLoss(a.tensor('input'), a.tensor('target'), a.options('reduction', 'delta')),
  ),
  'nn.functional.kl_div': elementwise(
    (x, target, options) => sn.klDiv(x, target as Tensor, options),
    'log_target',
  ),
  'nn.functional.soft_margin_loss': elementwise(sn.softMarginLoss),
  'nn.functional.hinge_embedding_loss': elementwise(sn.hingeEmbeddingLoss, 'margin'),
  'nn.functional.binary_cross_entropy': elementwise(sn.bceLoss, 'weight'),
  'nn.functional.binary_cross_entropy_with_logits': elementwise(sn.bceWithLogits, 'weight', 'pos_weight'),
  'nn.functional.poisson_nll_loss': signature(
    'input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction=mean',
  )((a) =>
    sn.poissonNllLoss(
      a.tensor('input'),
      a.tensor('target'),
      a.options('log_input', 'full', 'eps', 'reduction'),
    ),
  ),
  'nn.functional.gaussian_nll_loss': signature('input, target, var, full=False, eps=1e-6, reduction=mean')(
    (a) =>
      sn.gaussianNllLoss(
        a.tensor('input'),
        a.tensor('target'),
        a.tensor('var'),
        a.options('full', 'eps', 'reduction'),
      ),
  ),
  'nn.functional.margin_ranking_loss': pair(sn.marginRankingLoss),
  'nn.functional.cosine_embedding_loss': pair(sn.cosineEmbeddingLoss),
  'nn.functional.triplet_margin_loss': signature(
    `anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, ${common}`,
  )((a) =>
    sn.tripletMarginLoss(
      a.tensor('anchor'),
      a.tensor('positive'),
      a.tensor('negative'),
      a.options('margin', 'p', 'eps', 'swap', 'reduction'),
    ),
  ),
  'nn.functional.multi_margin_loss': signature(`input, target, p=1, margin=1.0, weight=None, ${common}`)(
    (a) => sn.multiMarginLoss(a.tensor('input'), a.tensor('target'), classes(a)),
  ),
  'nn.functional.multilabel_margin_loss': signature(`input, target, ${common}`)((a) =>
    sn.multilabelMarginLoss(a.tensor('input'), a.tensor('target'), a.options('reduction')),
  ),
  'nn.functional.multilabel_soft_margin_loss': elementwise(sn.multilabelSoftMarginLoss, 'weight'),
  'nn.functional.nll_loss': signature(
    'input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction=mean',
  )((a) =>
    sn.nllLoss(a.tensor('input'), a.tensor('target'), a.options('weight', 'ignore_index', 'reduction')),
  ),
  'nn.functional.cross_entropy': signature(
    'input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction=mean, label_smoothing=0.0',
  )((a) =>
    sn.crossEntropy(
      a.tensor('input'),
      a.tensor('target'),
      a.options('weight', 'ignore_index', 'reduction', 'label_smoothing'),
    ),
  ),
  'nn.functional.ctc_loss': signature(
    'log_probs, targets, input_lengths, target_lengths, blank=0, reduction=mean, zero_infinity=False',
  )((a) =>
    sn.ctcLoss(
      a.tensor('log_probs'),
      a.tensor('targets'),
      a.tensor('input_lengths'),
      a.tensor('target_lengths'),
      a.options('blank', 'reduction', 'zero_infinity'),
    ),
  ),
  'nn.functional.cosine_similarity': signature('x1, x2, dim=1, eps=1e-8')((a) =>
    sn.cosineSimilarity(a.tensor('x1'), a.tensor('x2'), a.number('dim'), a.options('eps')),
  ),
};
