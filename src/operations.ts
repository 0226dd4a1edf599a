// Sinter's public operations on tensors, listed one by one, as src/index.ts exports them.

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

export { fromBuffer, type FromBufferOptions } from './tensor/buffer/from-buffer.ts';

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
  type SeededDropoutOptions,
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
export { erfc } from './tensor/ops/elementwise/erfc.ts';
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

// Complex numbers
export {
  adjoint,
  angle,
  complex,
  conj,
  conjPhysical,
  imag,
  isComplex,
  isReal,
  polar,
  real,
  resolveConj,
  resolveNeg,
  sgn,
  viewAsComplex,
  viewAsReal,
} from './tensor/ops/complex/complex.ts';

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
  maskedMax,
  maskedMin,
  max,
  maxWithIndices,
  min,
  minWithIndices,
} from './tensor/ops/reduce/extremum.ts';

// Scans
export { cummax, cummin, cumprod, cumsum, logcumsumexp, type ScanOptions } from './tensor/ops/reduce/scan.ts';

// Selection: elements and positions by masks, distinct ones, parts of copies written
export {
  argwhere,
  expandByMask,
  maskedAt,
  maskedScatter,
  maskedSelect,
  nonzero,
  type Counted,
} from './tensor/ops/select/nonzero.ts';
export type { Sized, Unsized } from './tensor/ops/select/count.ts';
export { dynamicSlice, dynamicUpdateSlice, type SliceStarts } from './tensor/ops/select/dynamic.ts';
export {
  asStrided,
  asStridedScatter,
  diagonalScatter,
  selectScatter,
  sliceScatter,
  sliceWrite,
  type DiagonalScatterOptions,
} from './tensor/ops/select/region.ts';
export { isin, unravelIndex, type IsinOptions } from './tensor/ops/select/search.ts';
export { segmentReduce, type SegmentReduce, type SegmentReduceOptions } from './tensor/ops/select/segment.ts';
export {
  unique,
  uniqueConsecutive,
  type Unique,
  type UniqueOf,
  type UniqueOptions,
  type UniqueResult,
} from './tensor/ops/select/unique.ts';
export { indexFill, indexPut, indexReduce, put, type PutOptions } from './tensor/ops/select/write.ts';
export { addAt, maxAt, minAt, mulAt, setAt } from './tensor/ops/select/write-at.ts';

// Statistics
export {
  bincount,
  histc,
  histogram,
  histogramdd,
  type BincountOptions,
  type Bins,
  type HistcOptions,
  type HistogramddOptions,
  type HistogramOptions,
  type SizedBincountOptions,
} from './tensor/ops/statistics/histogram.ts';
export { aminmax, corrcoef, cov, nanmean, nansum, type CovOptions } from './tensor/ops/statistics/moments.ts';
export {
  kthvalue,
  median,
  medianWithIndices,
  mode,
  nanmedian,
  nanmedianWithIndices,
  nanquantile,
  quantile,
  type Interpolation,
  type QuantileOptions,
} from './tensor/ops/statistics/order.ts';

// Masked operations: sn.masked.sum(x, 0, { mask })
export * as masked from './tensor/ops/masked/masked.ts';

// Sparse matrices: sn.sparse.csr(…), sn.sparse.spmm(a, x); and two elements in four: sn.sparse24
export * as sparse from './tensor/ops/sparse/sparse.ts';
export * as sparse24 from './tensor/ops/sparse/structured.ts';

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
  type RepeatOptions,
} from './tensor/ops/shape/join.ts';

// Indexing
export { at, narrow, select, slice, type Index, type Range } from './tensor/ops/shape/indexing.ts';
export {
  embedding,
  gather,
  indexSelect,
  oneHot,
  take,
  takeAlongAxis,
  takeAlongDim,
  type EmbeddingOptions,
  type OneHotOptions,
} from './tensor/ops/shape/gather.ts';
export {
  indexAdd,
  indexCopy,
  scatter,
  scatterAdd,
  scatterReduce,
  segmentSum,
  type IndexAddOptions,
  type ScatterAddOptions,
  type ScatterReduce,
  type ScatterReduceOptions,
} from './tensor/ops/shape/scatter.ts';
export {
  argsort,
  bucketize,
  msort,
  searchsorted,
  sort,
  topk,
  type BucketizeOptions,
  type SearchsortedOptions,
  type SortOptions,
  type TopkOptions,
} from './tensor/ops/reduce/sort.ts';

// Singular values, norms and distances; what PyTorch has in torch.linalg
export {
  cdist,
  dist,
  pairwiseDistance,
  pdist,
  type PairwiseDistanceOptions,
} from './tensor/ops/spectral/distance.ts';
export { matrixExp } from './tensor/ops/spectral/exponential.ts';
export { norm } from './tensor/ops/spectral/norms.ts';
export { pinverse } from './tensor/ops/spectral/rank.ts';
export { svdOfTorch as svd, type SvdOptions } from './tensor/ops/spectral/svd.ts';
export { cross, vander, type VanderOptions } from './tensor/ops/spectral/vectors.ts';
export * as linalg from './tensor/ops/linalg/linalg.ts';

// Linear algebra
export * from './tensor/ops/linalg/public.ts';

// Loops, recorded once and run as often as they turn
export { associativeScan, type AssociativeScanOptions } from './tensor/ops/control/associative.ts';
export { cond, switchCase, whileLoop, type WhileLoopOptions } from './tensor/ops/control/branch.ts';
export { foriLoop, map, scan, type LoopOptions, type ScanLoopOptions } from './tensor/ops/control/scan.ts';
