// `sinter/nn`: layers, their initial values, and models as named tensors.

export { GELU, LeakyReLU, ReLU, Sigmoid, SiLU, Softmax, Tanh } from './activation.ts';
export { MultiHeadAttention, type AttendOptions, type MultiHeadAttentionOptions } from './attention.ts';
export {
  Conv1d,
  Conv2d,
  Conv3d,
  ConvTranspose1d,
  ConvTranspose2d,
  ConvTranspose3d,
  type ConvLayerOptions,
  type ConvTransposeLayerOptions,
} from './conv.ts';
export { Dropout } from './dropout.ts';
export {
  fans,
  gain,
  kaimingNormal,
  kaimingUniform,
  xavierNormal,
  xavierUniform,
  type InitOptions,
  type KaimingOptions,
  type Nonlinearity,
  type XavierOptions,
} from './init.ts';
export {
  constant,
  dirac,
  orthogonal,
  sparse,
  truncNormal,
  varianceScaling,
  type DiracOptions,
  type OrthogonalOptions,
  type SparseOptions,
  type TruncNormalOptions,
  type VarianceScalingOptions,
} from './init-structured.ts';
export { Embedding, Linear, type EmbeddingLayerOptions, type LinearOptions } from './linear.ts';
export {
  CELU,
  ELU,
  GLU,
  Hardshrink,
  Hardsigmoid,
  Hardswish,
  Hardtanh,
  Identity,
  LogSigmoid,
  LogSoftmax,
  Mish,
  ReLU6,
  SELU,
  Softmin,
  Softplus,
  Softshrink,
  Softsign,
  Tanhshrink,
  Threshold,
} from './curves.ts';
export {
  AdaptiveAvgPool1d,
  AdaptiveAvgPool2d,
  AdaptiveAvgPool3d,
  AdaptiveMaxPool1d,
  AdaptiveMaxPool2d,
  AdaptiveMaxPool3d,
  AvgPool1d,
  AvgPool2d,
  AvgPool3d,
  MaxPool1d,
  MaxPool2d,
  MaxPool3d,
} from './pool.ts';
export { ChannelShuffle, LocalResponseNorm, PixelShuffle, PixelUnshuffle, Upsample } from './resize.ts';
export { evalMode, Module, train, type Layer } from './module.ts';
export {
  BatchNorm,
  GroupNorm,
  LayerNorm,
  RMSNorm,
  type BatchNormLayerOptions,
  type NormLayerOptions,
} from './norm.ts';
export {
  countParameters,
  loadStateDict,
  namedBuffers,
  namedParameters,
  parameter,
  parameters,
  stateDict,
  type LoadOptions,
  type LoadReport,
} from './parameters.ts';
export { GRUCell, LSTMCell, RNNCell, type CellOptions, type RnnCellLayerOptions } from './cells.ts';
export {
  GRU,
  LSTM,
  RNN,
  type LstmOptions,
  type RecurrentOptions,
  type RnnOptions,
  type SequenceOptions,
} from './recurrent.ts';
export { Flatten, Sequential } from './sequential.ts';
export {
  FeedForward,
  TransformerBlock,
  type FeedForwardOptions,
  type TransformerBlockOptions,
} from './transformer.ts';
export { loadTorchStateDict, torchStateDict } from './torch-names.ts';
