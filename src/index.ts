// Sinter's public names, listed one by one. Subpaths have their own: `sinter/ir`, `sinter/nn`, `sinter/optim`, `sinter/io`.

import './tensor/methods.ts';

// Tensors
export { Tensor, type BackwardOptions, type TensorLike } from './tensor/tensor.ts';
export type { NestedArray } from './tensor/nest.ts';
export { treeLeaves, treeMap, type Tree } from './tensor/tree.ts';
export type { DType } from './ir/dtype.ts';
export type { HostData } from './ir/value.ts';

// Derivatives
export {
  customVjp,
  enableGrad,
  grad,
  gradients,
  noGrad,
  valueAndGrad,
  vjp,
  type GradientOf,
  type GradOptions,
} from './tensor/derivative/transform.ts';

// Compiling
export { compile, type CompileFunctionOptions } from './tensor/compile/compile.ts';
export { type Schedules } from './tune/book.ts';
export { measuredSchedules, type TuneOptions } from './tune/tune.ts';

// Looking inside
export {
  explain,
  Explanation,
  lower,
  type CostModel,
  type Explained,
  type ExplainedAccess,
  type ExplainedKernel,
  type ExplainedNode,
  type ExplainedReason,
  type ExplainedSeparation,
  type ExplainedSource,
  type MemoryUse,
  type Totals,
  type LoweredSource,
  type LowerOptions,
  type TextOptions,
} from './explain.ts';

// Devices and memory
export { setDebug } from './tensor/debug.ts';
export { close, devices, setDevice, synchronize } from './tensor/storage/device.ts';

// Looking at what happens
export { detectAnomaly } from './tensor/anomaly/watch.ts';
export { profile, type Profile, type ProfiledKernel } from './tensor/report/profile.ts';
export type { CompileEvent } from './tensor/report/compiles.ts';
export { stats, type Stats } from './tensor/report/stats.ts';
export { matmulPrecision, setMatmulPrecision, type MatmulPrecision } from './tensor/precision.ts';
export type { DeviceReport } from './runtime/registry.ts';
export { setRetainedMemoryLimit } from './tensor/storage/memory.ts';
export { manualSeed, restoreRngState, saveRngState, type RngState } from './tensor/generator.ts';

// Errors
export { CompilerBug, DeviceError, ParseError, SinterError, TensorError, type ErrorCode } from './errors.ts';

// Making tensors
export {
  arange,
  eye,
  full,
  fullLike,
  linspace,
  ones,
  onesLike,
  tensor,
  zeros,
  zerosLike,
  type CreateOptions,
  type NestedData,
  type TensorOptions,
} from './tensor/ops/creation/creation.ts';

// Random numbers
export {
  bernoulli,
  dropout,
  multinomial,
  normal,
  rand,
  randint,
  randLike,
  randn,
  randnLike,
  randperm,
  uniform,
  type DropoutOptions,
  type MultinomialOptions,
  type NormalOptions,
  type UniformOptions,
} from './tensor/ops/creation/random.ts';

// Arithmetic
export {
  abs,
  acos,
  acosh,
  asin,
  asinh,
  atan,
  atanh,
  ceil,
  clamp,
  cos,
  cosh,
  erf,
  erfc,
  exp,
  exp2,
  expm1,
  floor,
  lerp,
  log,
  log10,
  log1p,
  log2,
  nanToNum,
  neg,
  reciprocal,
  round,
  rsqrt,
  sign,
  sin,
  sinh,
  sqrt,
  square,
  tan,
  tanh,
  trunc,
  type NanToNumOptions,
} from './tensor/ops/elementwise/elementwise.ts';
export {
  add,
  addScaled,
  atan2,
  div,
  floorDivide,
  fmod,
  maximum,
  minimum,
  mul,
  pow,
  remainder,
  sub,
  type AddOptions,
  type DivOptions,
} from './tensor/ops/elementwise/arithmetic.ts';

// Comparisons, booleans and bits
export {
  bitwiseAnd,
  bitwiseLeftShift,
  bitwiseNot,
  bitwiseOr,
  bitwiseRightShift,
  bitwiseXor,
  eq,
  ge,
  gt,
  isFinite,
  isInf,
  isNan,
  le,
  logicalAnd,
  logicalNot,
  logicalOr,
  logicalXor,
  lt,
  maskedFill,
  ne,
  where,
} from './tensor/ops/elementwise/compare.ts';

// Casts
export { bitcast, cast, to, toBool, toFloat, toHalf, toInt } from './tensor/ops/elementwise/cast.ts';

// Activations
export {
  celu,
  elu,
  gelu,
  glu,
  hardsigmoid,
  hardswish,
  hardtanh,
  leakyRelu,
  logSigmoid,
  mish,
  prelu,
  relu,
  relu6,
  selu,
  sigmoid,
  silu,
  softplus,
  softsign,
  tanhshrink,
  type GeluOptions,
  type SoftplusOptions,
} from './tensor/ops/elementwise/activation.ts';

// Reductions
export {
  all,
  any,
  countNonzero,
  hasInfNan,
  logsumexp,
  mean,
  norm,
  prod,
  std,
  sum,
  varMean,
  type SumOptions,
  type VarOptions,
} from './tensor/ops/reduce/reduce.ts';
export { type Axes, type ReduceOptions } from './tensor/ops/reduce/axes.ts';
export {
  amax,
  amin,
  argmax,
  argmin,
  max,
  maxWithIndices,
  min,
  minWithIndices,
} from './tensor/ops/reduce/extremum.ts';

// Scans
export { cummax, cummin, cumprod, cumsum, logcumsumexp, type ScanOptions } from './tensor/ops/reduce/scan.ts';

// Softmax
export { logSoftmax, softmax, softmax2d, softmin, type SoftmaxOptions } from './tensor/ops/reduce/softmax.ts';

// Norms
export {
  batchNorm,
  batchNormUpdate,
  groupNorm,
  instanceNorm,
  layerNorm,
  localResponseNorm,
  normalize,
  rmsNorm,
  type BatchNormOptions,
  type LocalResponseOptions,
  type NormalizeOptions,
  type NormOptions,
} from './tensor/ops/reduce/norm.ts';

// Products
export {
  bmm,
  dot,
  linear,
  matmul,
  mm,
  mv,
  outer,
  trace,
  type MatmulOptions,
} from './tensor/ops/product/matmul.ts';

// Index strings
export { einsum } from './tensor/ops/product/einsum.ts';
export {
  rearrange,
  reduce,
  repeat,
  tile,
  type AxisSizes,
  type NamedReduction,
} from './tensor/ops/shape/rearrange.ts';

// Convolution and pooling
export {
  conv1d,
  conv2d,
  conv3d,
  convTranspose1d,
  convTranspose2d,
  convTranspose3d,
  type ConvOptions,
  type ConvTransposeOptions,
} from './tensor/ops/product/conv.ts';
export {
  adaptiveAvgPool2d,
  avgPool1d,
  avgPool2d,
  avgPool3d,
  globalAvgPool,
  lpPool1d,
  lpPool2d,
  lpPool3d,
  maxPool1d,
  maxPool1dWithIndices,
  maxPool2d,
  maxPool2dWithIndices,
  maxPool3d,
  maxPool3dWithIndices,
  type AvgPoolOptions,
  type LpPoolOptions,
  type MaxPoolOptions,
  type PoolOptions,
} from './tensor/ops/product/pool.ts';
export type { Padding } from './tensor/ops/shape/window.ts';

// Reading between elements
export {
  affineGrid,
  gridSample,
  type GridOptions,
  type SampleOptions,
} from './tensor/ops/creation/sample.ts';

// Attention
export { scaledDotProductAttention, type AttentionOptions } from './tensor/ops/product/attention.ts';

// Losses
export {
  bceLoss,
  bceWithLogits,
  crossEntropy,
  hingeEmbeddingLoss,
  huberLoss,
  klDiv,
  l1Loss,
  mseLoss,
  nllLoss,
  smoothL1Loss,
  type BceWithLogitsOptions,
  type CrossEntropyOptions,
  type HingeEmbeddingOptions,
  type HuberOptions,
  type KlDivOptions,
  type LossOptions,
  type NllOptions,
  type Reduction,
  type SmoothL1Options,
} from './tensor/ops/loss.ts';

export { cosineSimilarity, type CosineSimilarityOptions } from './tensor/ops/product/similarity.ts';

// Views and movement
export {
  broadcastTo,
  expand,
  expandAs,
  flatten,
  moveaxis,
  permute,
  reshape,
  squeeze,
  t,
  transpose,
  unflatten,
  unfold,
  unsqueeze,
  view,
  viewAs,
} from './tensor/ops/shape/view.ts';
export {
  diag,
  diagEmbed,
  diagonal,
  flip,
  pad,
  roll,
  tril,
  triu,
  type DiagonalOptions,
  type PadOptions,
} from './tensor/ops/shape/movement.ts';
export {
  cat,
  chunk,
  meshgrid,
  repeatInterleave,
  split,
  stack,
  unbind,
  type MeshgridOptions,
} from './tensor/ops/shape/join.ts';

// Indexing
export { at, narrow, select, slice, type Index, type Range } from './tensor/ops/shape/indexing.ts';
export {
  embedding,
  gather,
  indexAdd,
  indexCopy,
  indexSelect,
  oneHot,
  scatter,
  scatterAdd,
  scatterReduce,
  segmentSum,
  take,
  takeAlongAxis,
  type EmbeddingOptions,
  type IndexAddOptions,
  type OneHotOptions,
  type ScatterAddOptions,
  type ScatterReduce,
} from './tensor/ops/shape/gather.ts';
export {
  argsort,
  searchsorted,
  sort,
  topk,
  type SearchsortedOptions,
  type SortOptions,
  type TopkOptions,
} from './tensor/ops/reduce/sort.ts';
