// Public operations that are layers of networks without their weights, and their losses, listed one by
// one, as src/index.ts exports them.

// Adaptive pools, unpooling, patches and other sizes
export {
  adaptiveAvgPool1d,
  adaptiveAvgPool2d,
  adaptiveAvgPool3d,
  adaptiveMaxPool1d,
  adaptiveMaxPool1dWithIndices,
  adaptiveMaxPool2d,
  adaptiveMaxPool2dWithIndices,
  adaptiveMaxPool3d,
  adaptiveMaxPool3dWithIndices,
  type OutputSize,
} from './tensor/ops/window/adaptive.ts';
export {
  fractionalMaxPool2d,
  fractionalMaxPool2dWithIndices,
  fractionalMaxPool3d,
  fractionalMaxPool3dWithIndices,
  maxUnpool1d,
  maxUnpool2d,
  maxUnpool3d,
  type FractionalPoolOptions,
  type UnpoolOptions,
} from './tensor/ops/window/unpool.ts';
export { col2im, im2col, type PatchOptions } from './tensor/ops/window/fold.ts';
export { interpolate, type InterpolateOptions } from './tensor/ops/image/interpolate.ts';
export { channelShuffle, pixelShuffle, pixelUnshuffle } from './tensor/ops/image/shuffle.ts';

// More activations, dropout and layers as functions
export {
  gumbelSoftmax,
  hardshrink,
  rrelu,
  softshrink,
  threshold,
  type GumbelSoftmaxOptions,
  type RreluOptions,
} from './tensor/ops/elementwise/shrink.ts';
export {
  alphaDropout,
  dropout1d,
  dropout2d,
  dropout3d,
  featureAlphaDropout,
} from './tensor/ops/creation/dropout.ts';
export { bilinear, rotaryEmbedding, type RotaryOptions } from './tensor/ops/product/bilinear.ts';
export { embeddingBag, type EmbeddingBagOptions } from './tensor/ops/shape/embedding-bag.ts';

// Losses
export {
  bceLoss,
  bceWithLogits,
  hingeEmbeddingLoss,
  huberLoss,
  klDiv,
  l1Loss,
  mseLoss,
  smoothL1Loss,
  type BceOptions,
  type BceWithLogitsOptions,
  type HingeEmbeddingOptions,
  type HuberOptions,
  type KlDivOptions,
  type SmoothL1Options,
} from './tensor/ops/loss.ts';
export { type LossOptions, type Reduction } from './tensor/ops/loss-reduction.ts';
export {
  crossEntropy,
  nllLoss,
  type CrossEntropyOptions,
  type NllOptions,
} from './tensor/ops/classification-loss.ts';

export { cosineSimilarity, type CosineSimilarityOptions } from './tensor/ops/product/similarity.ts';

// More losses
export {
  cosineEmbeddingLoss,
  marginRankingLoss,
  tripletMarginLoss,
  tripletMarginWithDistanceLoss,
  type MarginOptions,
  type TripletDistanceOptions,
  type TripletMarginOptions,
  type TripletOptions,
} from './tensor/ops/loss/pair.ts';
export {
  multilabelMarginLoss,
  multilabelSoftMarginLoss,
  multiMarginLoss,
  softMarginLoss,
  type MultilabelSoftMarginOptions,
  type MultiMarginOptions,
} from './tensor/ops/loss/margin.ts';
export {
  gaussianNllLoss,
  poissonNllLoss,
  type GaussianNllOptions,
  type PoissonNllOptions,
} from './tensor/ops/loss/likelihood.ts';
export { ctcLoss, type CtcOptions, type Lengths } from './tensor/ops/loss/ctc.ts';

// Cells of recurrent networks
export {
  gruCell,
  gruCellFused,
  lstmCell,
  rnnCell,
  type LstmState,
  type RnnCellOptions,
} from './tensor/ops/sequence/cells.ts';
