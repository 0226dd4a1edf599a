// Rare losses, as a page loads them.

import '../methods.ts';

export {
  cosineEmbeddingLoss,
  marginRankingLoss,
  tripletMarginLoss,
  tripletMarginWithDistanceLoss,
} from '../../tensor/ops/loss/pair.ts';
export {
  multilabelMarginLoss,
  multilabelSoftMarginLoss,
  multiMarginLoss,
  softMarginLoss,
} from '../../tensor/ops/loss/margin.ts';
export { gaussianNllLoss, poissonNllLoss } from '../../tensor/ops/loss/likelihood.ts';
export { ctcLoss } from '../../tensor/ops/loss/ctc.ts';
