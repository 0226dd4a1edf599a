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
export {
  ChannelShuffle,
  CrossMapLRN2d,
  LocalResponseNorm,
  PixelShuffle,
  PixelUnshuffle,
  Upsample,
} from './resize.ts';
export { evalMode, Module, train, type Layer } from './module.ts';
export {
  BatchNorm,
  BatchNorm1d,
  BatchNorm2d,
  BatchNorm3d,
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
export {
  TransformerDecoderLayer,
  TransformerEncoderLayer,
  type DecodeOptions,
  type EncodeOptions,
  type TransformerLayerOptions,
} from './transformers/layers.ts';
export {
  Transformer,
  TransformerDecoder,
  TransformerEncoder,
  type DecoderCache,
  type StackOptions,
  type TransformerOptions,
  type TransformOptions,
} from './transformers/stacks.ts';
export { CausalTransformer, type CausalCache, type CausalTransformerOptions } from './transformers/causal.ts';
export type { AttentionCache, LayerCache } from './transformers/cache.ts';
export { loadTorchStateDict, torchStateDict } from './torch-names.ts';
// Models
export { functionalCall } from './model/functional-call.ts';
export { ModuleDict, ModuleList, ParameterDict, ParameterList } from './model/containers.ts';
export {
  apply,
  buffers,
  children,
  getBuffer,
  getParameter,
  getSubmodule,
  modules,
  namedChildren,
  namedModules,
  requiresGrad_,
  zeroGrad,
} from './model/walk.ts';
export { to } from './model/convert.ts';
export {
  removeParametrization,
  spectralNorm,
  weightNorm,
  type SpectralNormOptions,
  type WeightNormOptions,
} from './model/parametrize.ts';
export { summary } from './model/summary.ts';
export type { FullBackwardHook, Gradients } from './backward-hook.ts';
export type { BufferOptions, HookHandle } from './module.ts';
export type { ForwardHook, ForwardPreHook } from '../tensor/layer/hooks.ts';

// Losses
export {
  BCELoss,
  BCEWithLogitsLoss,
  GaussianNLLLoss,
  HingeEmbeddingLoss,
  HuberLoss,
  KLDivLoss,
  L1Loss,
  MSELoss,
  PoissonNLLLoss,
  SmoothL1Loss,
  SoftMarginLoss,
} from './loss/element.ts';
export {
  CrossEntropyLoss,
  CTCLoss,
  MultiLabelMarginLoss,
  MultiLabelSoftMarginLoss,
  MultiMarginLoss,
  NLLLoss,
} from './loss/classes.ts';
export {
  AdaptiveLogSoftmaxWithLoss,
  type AdaptiveLogSoftmaxOptions,
  type AdaptiveLoss,
} from './loss/adaptive.ts';
export {
  CosineEmbeddingLoss,
  CosineSimilarity,
  MarginRankingLoss,
  PairwiseDistance,
  TripletMarginLoss,
  TripletMarginWithDistanceLoss,
} from './loss/pairs.ts';
// More layers
export {
  CircularPad1d,
  CircularPad2d,
  CircularPad3d,
  ConstantPad1d,
  ConstantPad2d,
  ConstantPad3d,
  ReflectionPad1d,
  ReflectionPad2d,
  ReflectionPad3d,
  ReplicationPad1d,
  ReplicationPad2d,
  ReplicationPad3d,
  ZeroPad1d,
  ZeroPad2d,
  ZeroPad3d,
  type PadSizes,
} from './layers/pad.ts';
export { AlphaDropout, Dropout1d, Dropout2d, Dropout3d, FeatureAlphaDropout } from './dropout.ts';
export {
  FractionalMaxPool2d,
  FractionalMaxPool3d,
  LPPool1d,
  LPPool2d,
  LPPool3d,
  MaxUnpool1d,
  MaxUnpool2d,
  MaxUnpool3d,
  type FractionalPoolLayerOptions,
} from './pool.ts';
export {
  Fold,
  Unflatten,
  Unfold,
  UpsamplingBilinear2d,
  UpsamplingNearest2d,
  type UpsamplingOptions,
} from './layers/shape.ts';
export {
  Bilinear,
  EmbeddingBag,
  PReLU,
  RReLU,
  Softmax2d,
  type BagOptions,
  type EmbeddingBagLayerOptions,
  type PReLUOptions,
  type RReLUOptions,
} from './layers/weighted.ts';
export { InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, type InstanceNormLayerOptions } from './norm.ts';
