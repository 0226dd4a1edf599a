// The public operations of `sinter`, family by family.
// Made by `npm run operations` of the comments in src/tensor/ops.

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
} from '../tensor/ops/creation/creation.ts';
export {
  empty,
  emptyLike,
  fill,
  logspace,
  newFull,
  newOnes,
  newZeros,
  trilIndices,
  triuIndices,
  type TriangleOptions,
} from '../tensor/ops/creation/like.ts';
export {
  bartlettWindow,
  blackmanWindow,
  hammingWindow,
  hannWindow,
  kaiserWindow,
  type HammingOptions,
  type KaiserOptions,
  type WindowShape,
} from '../tensor/ops/fft/windows.ts';

// Random numbers, dropout and distributions
export { foldIn, key, splitKey, withKey } from '../tensor/ops/creation/keys.ts';
export {
  bernoulli,
  dropout,
  multinomial,
  normal,
  rand,
  randLike,
  randint,
  randn,
  randnLike,
  randperm,
  uniform,
  type DropoutOptions,
  type MultinomialOptions,
  type NormalOptions,
  type SeededDropoutOptions,
  type UniformOptions,
} from '../tensor/ops/creation/random.ts';
export {
  alphaDropout,
  dropout1d,
  dropout2d,
  dropout3d,
  featureAlphaDropout,
} from '../tensor/ops/creation/dropout.ts';

// Arithmetic
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
} from '../tensor/ops/elementwise/arithmetic.ts';
export {
  addcdiv,
  addcmul,
  clampMax,
  clampMin,
  floatPower,
  fmax,
  fmin,
  gcd,
  heaviside,
  hypot,
  isclose,
  lcm,
  logaddexp,
  logaddexp2,
  rsub,
  trueDivide,
  type CloseOptions,
  type ScaledOptions,
} from '../tensor/ops/elementwise/pairs.ts';
export {
  copysign,
  frac,
  frexp,
  isneginf,
  isposinf,
  ldexp,
  nextafter,
  signbit,
} from '../tensor/ops/elementwise/parts.ts';
export { deg2rad, positive, rad2deg } from '../tensor/ops/elementwise/scale.ts';

// Functions of one number
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
  type RoundOptions,
} from '../tensor/ops/elementwise/elementwise.ts';
export { erfc } from '../tensor/ops/elementwise/erfc.ts';

// Comparisons, booleans, bits and casts
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
} from '../tensor/ops/elementwise/compare.ts';
export { isin, unravelIndex, type IsinOptions } from '../tensor/ops/select/search.ts';
export { bitcast, cast, to, toBool, toFloat, toHalf, toInt } from '../tensor/ops/elementwise/cast.ts';

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
} from '../tensor/ops/elementwise/activation.ts';
export {
  gumbelSoftmax,
  hardshrink,
  rrelu,
  softshrink,
  threshold,
  type GumbelSoftmaxOptions,
  type RreluOptions,
} from '../tensor/ops/elementwise/shrink.ts';

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
} from '../tensor/ops/complex/complex.ts';

// Reductions and scans
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
  variance as var,
  type MeanOptions,
  type SumOptions,
  type VarOptions,
} from '../tensor/ops/reduce/reduce.ts';
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
} from '../tensor/ops/reduce/extremum.ts';
export { allclose, equal, stdMean, sumToSize } from '../tensor/ops/reduce/summary.ts';
export { norm } from '../tensor/ops/spectral/norms.ts';
export { renorm } from '../tensor/ops/spectral/renorm.ts';
export {
  cummax,
  cummin,
  cumprod,
  cumsum,
  logcumsumexp,
  type ScanOptions,
} from '../tensor/ops/reduce/scan.ts';
export {
  cumulativeTrapezoid,
  diff,
  gradient,
  trapezoid,
  type DiffOptions,
  type GradientOptions,
  type TrapezoidOptions,
} from '../tensor/ops/reduce/difference.ts';
export { type Axes, type ReduceOptions } from '../tensor/ops/reduce/axes.ts';

// Softmax and norms
export {
  logSoftmax,
  softmax,
  softmax2d,
  softmin,
  type SoftmaxOptions,
} from '../tensor/ops/reduce/softmax.ts';
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
  type NormOptions,
  type NormalizeOptions,
} from '../tensor/ops/reduce/norm.ts';

// Statistics, sorting and search
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
} from '../tensor/ops/reduce/sort.ts';
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
} from '../tensor/ops/statistics/order.ts';
export {
  aminmax,
  corrcoef,
  cov,
  nanmean,
  nansum,
  type CovOptions,
} from '../tensor/ops/statistics/moments.ts';
export {
  unique,
  uniqueConsecutive,
  type Unique,
  type UniqueOf,
  type UniqueOptions,
  type UniqueResult,
} from '../tensor/ops/select/unique.ts';
export {
  bincount,
  histc,
  histogram,
  histogramdd,
  type BincountOptions,
  type Bins,
  type HistcOptions,
  type HistogramOptions,
  type HistogramddOptions,
  type SizedBincountOptions,
} from '../tensor/ops/statistics/histogram.ts';

// Products
export { cross, vander, type VanderOptions } from '../tensor/ops/spectral/vectors.ts';
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
} from '../tensor/ops/product/matmul.ts';
export { inner, kron, tensordot, vdot } from '../tensor/ops/product/tensordot.ts';
export { einsum } from '../tensor/ops/product/einsum.ts';
export { addbmm, addmm, addmv, addr, baddbmm, type AffineOptions } from '../tensor/ops/product/affine.ts';
export { bilinear, rotaryEmbedding, type RotaryOptions } from '../tensor/ops/product/bilinear.ts';
export { cosineSimilarity, type CosineSimilarityOptions } from '../tensor/ops/product/similarity.ts';
export {
  cdist,
  dist,
  pairwiseDistance,
  pdist,
  type PairwiseDistanceOptions,
} from '../tensor/ops/spectral/distance.ts';

// Convolutions, pools and images
export {
  conv1d,
  conv2d,
  conv3d,
  convTranspose1d,
  convTranspose2d,
  convTranspose3d,
  type ConvOptions,
  type ConvTransposeOptions,
} from '../tensor/ops/product/conv.ts';
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
} from '../tensor/ops/product/pool.ts';
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
} from '../tensor/ops/window/adaptive.ts';
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
} from '../tensor/ops/window/unpool.ts';
export { col2im, im2col, type PatchOptions } from '../tensor/ops/window/fold.ts';
export { interpolate, type InterpolateOptions } from '../tensor/ops/image/interpolate.ts';
export { channelShuffle, pixelShuffle, pixelUnshuffle } from '../tensor/ops/image/shuffle.ts';
export { affineGrid, gridSample, type GridOptions, type SampleOptions } from '../tensor/ops/image/sample.ts';

// Attention, recurrent cells and bags
export { scaledDotProductAttention, type AttentionOptions } from '../tensor/ops/product/attention.ts';
export {
  gruCell,
  gruCellFused,
  lstmCell,
  rnnCell,
  type LstmState,
  type RnnCellOptions,
} from '../tensor/ops/sequence/cells.ts';
export { embeddingBag, type EmbeddingBagOptions } from '../tensor/ops/shape/embedding-bag.ts';

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
} from '../tensor/ops/loss.ts';
export {
  gaussianNllLoss,
  poissonNllLoss,
  type GaussianNllOptions,
  type PoissonNllOptions,
} from '../tensor/ops/loss/likelihood.ts';
export {
  crossEntropy,
  nllLoss,
  type CrossEntropyOptions,
  type NllOptions,
} from '../tensor/ops/classification-loss.ts';
export {
  cosineEmbeddingLoss,
  marginRankingLoss,
  tripletMarginLoss,
  tripletMarginWithDistanceLoss,
  type MarginOptions,
  type TripletDistanceOptions,
  type TripletMarginOptions,
  type TripletOptions,
} from '../tensor/ops/loss/pair.ts';
export {
  multiMarginLoss,
  multilabelMarginLoss,
  multilabelSoftMarginLoss,
  softMarginLoss,
  type MultiMarginOptions,
  type MultilabelSoftMarginOptions,
} from '../tensor/ops/loss/margin.ts';
export { ctcLoss, type CtcOptions, type Lengths } from '../tensor/ops/loss/ctc.ts';
export { type LossOptions, type Reduction } from '../tensor/ops/loss-reduction.ts';

// Views and movement
export {
  broadcastTo,
  clone,
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
} from '../tensor/ops/shape/view.ts';
export { fliplr, flipud, movedim, ravel, reshapeAs, rot90, swapaxes } from '../tensor/ops/shape/turn.ts';
export {
  diag,
  diagEmbed,
  diagflat,
  diagonal,
  flip,
  pad,
  roll,
  tril,
  triu,
  type DiagEmbedOptions,
  type DiagonalOptions,
  type PadOptions,
} from '../tensor/ops/shape/movement.ts';
export {
  rearrange,
  reduce,
  repeat,
  tile,
  type AxisSizes,
  type NamedReduction,
} from '../tensor/ops/shape/rearrange.ts';
export { type Padding } from '../tensor/ops/shape/window.ts';

// Joining and splitting
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
} from '../tensor/ops/shape/join.ts';
export {
  atleast1d,
  atleast2d,
  atleast3d,
  blockDiag,
  broadcastTensors,
  cartesianProd,
  columnStack,
  combinations,
  dsplit,
  dstack,
  hsplit,
  hstack,
  tensorSplit,
  vsplit,
  vstack,
  type CombinationsOptions,
} from '../tensor/ops/shape/stacking.ts';

// Indexing, selection and scatters
export { at, narrow, select, slice, type Index, type Range } from '../tensor/ops/shape/indexing.ts';
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
} from '../tensor/ops/shape/gather.ts';
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
} from '../tensor/ops/shape/scatter.ts';
export {
  segmentReduce,
  type SegmentReduce,
  type SegmentReduceOptions,
} from '../tensor/ops/select/segment.ts';
export { indexFill, indexPut, indexReduce, put, type PutOptions } from '../tensor/ops/select/write.ts';
export { addAt, maxAt, minAt, mulAt, setAt } from '../tensor/ops/select/write-at.ts';
export {
  asStrided,
  asStridedScatter,
  diagonalScatter,
  selectScatter,
  sliceScatter,
  sliceWrite,
  type DiagonalScatterOptions,
} from '../tensor/ops/select/region.ts';
export { dynamicSlice, dynamicUpdateSlice, type SliceStarts } from '../tensor/ops/select/dynamic.ts';
export {
  argwhere,
  expandByMask,
  maskedAt,
  maskedScatter,
  maskedSelect,
  nonzero,
  type Counted,
} from '../tensor/ops/select/nonzero.ts';
export { type Sized, type Unsized } from '../tensor/ops/select/count.ts';

// Linear algebra
export {
  cholesky,
  choleskyInverse,
  choleskySolve,
  type CholeskyExOptions,
  type CholeskyOptions,
} from '../tensor/ops/linalg/cholesky.ts';
export { det, logdet, slogdet } from '../tensor/ops/linalg/determinant.ts';
export {
  inverse,
  triangularSolve,
  type SolveExOptions,
  type SolveOptions,
  type SolveTriangularOptions,
  type TriangularSolveOptions,
} from '../tensor/ops/linalg/solve.ts';
export { matrixExp } from '../tensor/ops/spectral/exponential.ts';
export { geqrf, orgqr, ormqr, qr, type OrmqrOptions, type QrOptions } from '../tensor/ops/linalg/qr.ts';
export { svdOfTorch as svd, type SvdOptions } from '../tensor/ops/spectral/svd.ts';
export { pinverse } from '../tensor/ops/spectral/rank.ts';
export { luUnpack, type CheckOptions, type LuSolveOptions } from '../tensor/ops/linalg/lu.ts';
export { matrixPower, type TensorinvOptions, type TensorsolveOptions } from '../tensor/ops/linalg/product.ts';
export { type LdlExOptions, type LdlOptions } from '../tensor/ops/linalg/ldl.ts';
export { type LeastSquares, type LstsqOptions } from '../tensor/ops/linalg/lstsq.ts';

// Fourier transforms
export { type FftNorm, type FftOptions, type FftnOptions } from '../tensor/ops/fft/transform.ts';
export { type FrequencyOptions, type ShiftOptions } from '../tensor/ops/fft/frequencies.ts';
export { type ConvolveOptions } from '../tensor/ops/fft/convolve.ts';
export { istft, stft, type IstftOptions, type StftOptions } from '../tensor/ops/fft/stft.ts';

// Special functions
export { digamma, erfinv, i0, lgamma, sinc } from '../tensor/ops/special/functions.ts';
export {
  igamma,
  igammac,
  logit,
  mvlgamma,
  polygamma,
  xlogy,
  type LogitOptions,
} from '../tensor/ops/special/pairs.ts';
export { type OrderOptions, type Polynomial } from '../tensor/ops/special/polynomials.ts';

// Loops and branches
export { associativeScan, type AssociativeScanOptions } from '../tensor/ops/control/associative.ts';
export { cond, switchCase, whileLoop, type WhileLoopOptions } from '../tensor/ops/control/branch.ts';
export { foriLoop, map, scan, type LoopOptions, type ScanLoopOptions } from '../tensor/ops/control/scan.ts';

// Namespaces
export * as distributions from './distributions.ts';
export * as fft from './fft.ts';
export * as linalg from './linalg.ts';
export * as masked from './masked.ts';
export * as sparse from './sparse.ts';
export * as sparse24 from './sparse24.ts';
export * as special from './special.ts';
