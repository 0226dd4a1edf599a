// What every operation of tensors takes. A new export without a row fails the test.

import {
  complex,
  key as keyOf,
  norm,
  sparse,
  sparse24,
  tensor,
  zeros,
  type Tensor,
} from '../../../src/index.ts';
import { signalRows } from './fft.ts';
import {
  anything,
  axes,
  axis,
  bools,
  count,
  data,
  dtype,
  element,
  finite,
  flag,
  integer,
  ints,
  like,
  maybe,
  meaning,
  notNegative,
  number,
  operand,
  options,
  positive,
  shape,
  share,
  someTensors,
  t,
  text,
  window,
  word,
  type Meaning,
} from '../kinds.ts';
import { formulaRows } from './formula.ts';
import { spectralRows } from './spectral.ts';
import { linalgOperations } from './linalg.ts';
import { specialOperations } from './special.ts';
import type { Wrong } from '../wrong.ts';

export type Rows = Readonly<Record<string, readonly Meaning[]>>;

function rows(names: string, ...places: readonly Meaning[]): Rows {
  return Object.fromEntries(names.split(/\s+/).map((name) => [name, places]));
}

const x = t(2, 3);
const create = options({ dtype });
const key: Meaning = like(anything, () => keyOf(1));
const draw = options({ dtype, key });
const reduce = options({ keepdim: flag });
const sum = options({ keepdim: flag, dtype });
const reduction = word('mean', 'sum');
const eps = options({ eps: number });
const maybeCount = maybe(count);
const aScalar: readonly Wrong[] = ['nan', 'infinity', 'fraction', 'negative', 'large', 'number'];
const value = meaning(() => 1, ...aScalar, 'true', 'bigint');
const rangeEnd = maybe(meaning(() => 1, 'null', 'negative', 'large', 'number'));
const source: Meaning = meaning(() => zeros([2, 3]), 'tensor', 'bool', 'integers', ...aScalar);
const sizes = maybe(meaning(() => ({}), 'emptyObject'));
const sliceStarts: Meaning = meaning(() => [0, 0], 'integers');
const padding: Meaning = meaning(() => 0, 'number', 'bytes', 'emptyList');
const pool = { stride: window, padding, dilation: window, ceilMode: flag };
const avgPool = {
  ...pool,
  countIncludePad: flag,
  divisorOverride: meaning(() => 2, 'negative', 'number'),
};
const conv = { stride: window, padding, dilation: window, groups: count };
const transposed = { ...conv, outputPadding: padding };
const image = t(1, 2, 4, 4);

/** The same, but for these wrong values, which are not valid here. */
function but(base: Meaning, ...names: readonly Wrong[]): Meaning {
  return { ...base, accepts: new Set([...base.accepts].filter((name) => !names.includes(name))) };
}

const elementwise: Rows = {
  ...rows(
    'abs acos acosh asin asinh atan atanh ceil cos cosh erf erfc exp exp2 expm1 floor log log10 log1p log2 neg reciprocal ' +
      'rsqrt sign sin sinh sqrt square tan tanh trunc hardsigmoid hardswish logSigmoid mish relu relu6 selu sigmoid ' +
      'silu softsign tanhshrink isFinite isInf isNan logicalNot toBool toFloat toHalf toInt hasInfNan clone t ',
    x,
  ),
  bernoulli: [x, options({ key })],
  ...rows('add sub', operand, operand, options({ alpha: number })),
  // Complex numbers
  ...rows('complex polar', operand, operand),
  ...rows('real conj conjPhysical angle sgn isComplex isReal resolveConj resolveNeg adjoint', x),
  ...rows(
    'imag viewAsReal',
    meaning(() => complex(tensor([1, 2]), 1), 'tensor', 'bool', 'integers'),
  ),
  ...rows('viewAsComplex', t(3, 2)),
  ...rows(
    'mul floorDivide remainder fmod maximum minimum atan2 pow eq ne lt le gt ge logicalAnd logicalOr logicalXor',
    operand,
    operand,
  ),
  ...rows(
    'bitwiseAnd bitwiseOr bitwiseXor bitwiseLeftShift bitwiseRightShift',
    like(operand, () => tensor([1], { dtype: 'i32' })),
    like(operand, () => tensor([1], { dtype: 'i32' })),
  ),
  round: [x, options({ decimals: integer })],
  bitwiseNot: [ints(2)],
  addScaled: [operand, operand, number],
  div: [operand, operand, options({ rounding: word('floor', 'trunc') })],
  lerp: [operand, operand, operand],
  clamp: [x, maybe(operand), maybe(operand)],
  nanToNum: [x, options({ nan: element, posinf: element, neginf: element })],
  where: [bools(2, 3), operand, operand],
  maskedFill: [x, bools(2, 3), operand],
  ...rows('cast to', x, dtype),
  bitcast: [x, like(dtype, () => 'i32')],
  leakyRelu: [x, maybe(number)],
  ...rows('elu celu', x, maybe(number)),
  prelu: [x, t(3)],
  gelu: [x, options({ approximate: word('tanh', 'none', 'sigmoid') })],
  softplus: [x, options({ beta: number, threshold: number })],
  hardtanh: [x, maybe(like(number, () => -1)), maybe(like(number, () => 2))],
  glu: [t(2, 4), maybe(axis)],
};

const twoTensors = but(
  like(someTensors, () => [zeros([2]), zeros([2])]),
  'emptyList',
);

const folds: Rows = {
  ...rows('amax amin max min any all countNonzero logsumexp', x, axes, reduce),
  mean: [x, axes, options({ keepdim: flag, dtype })],
  ...rows('sum prod', x, axes, sum),
  ...rows('argmax argmin', x, maybe(axis), reduce),
  ...rows('maxWithIndices minWithIndices', x, axis, reduce),
  ...rows('maskedMax maskedMin', x, bools(2, 3), axes, reduce),
  ...rows('std var varMean', x, axes, options({ keepdim: flag, correction: finite })),
  ...rows('cumsum cumprod', x, axis, options({ reverse: flag, exclusive: flag, dtype })),
  ...rows('cummax cummin logcumsumexp', x, axis),
  ...rows('softmax logSoftmax softmin', x, axes, options({ dtype })),
  softmax2d: [image],
  layerNorm: [x, meaning(() => 3, 'number'), maybe(t(3)), maybe(t(3)), eps],
  rmsNorm: [x, meaning(() => 3, 'number'), maybe(t(3)), eps],
  groupNorm: [image, count, maybe(t(2)), maybe(t(2)), eps],
  instanceNorm: [image, maybe(t(2)), maybe(t(2)), eps],
  batchNorm: [
    image,
    maybe(t(2)),
    maybe(t(2)),
    maybe(t(2)),
    maybe(t(2)),
    options({ eps: number, training: flag }),
  ],
  batchNormUpdate: [twoTensors, twoTensors, like(count, () => 4), maybe(number)],
  localResponseNorm: [image, count, options({ alpha: number, beta: number, k: number })],
  normalize: [x, axes, options({ p: number, eps: number })],
  ...rows('sort argsort', x, maybe(axis), options({ descending: flag, stable: flag })),
  topk: [x, count, maybe(axis), options({ largest: flag, sorted: flag })],
  multinomial: [x, count, options({ replacement: flag, key })],
  dropout: [x, maybe(share), options({ training: flag, seed: like(count, () => 0), key })],
};

const products: Rows = {
  matmul: [x, t(3, 2), options({ dtype })],
  mm: [x, t(3, 2), options({ dtype })],
  bmm: [t(2, 2, 3), t(2, 3, 2), options({ dtype })],
  mv: [x, t(3), options({ dtype })],
  dot: [t(3), t(3), options({ dtype })],
  outer: [t(3), t(2)],
  linear: [x, t(2, 3), maybe(t(2)), options({ dtype })],
  trace: [x],
  einsum: [text('ij,jk->ik'), x, t(3, 2)],
  conv1d: [t(1, 2, 4), t(3, 2, 2), maybe(t(3)), options(conv)],
  conv2d: [image, t(3, 2, 2, 2), maybe(t(3)), options(conv)],
  conv3d: [t(1, 2, 3, 3, 3), t(3, 2, 2, 2, 2), maybe(t(3)), options(conv)],
  convTranspose1d: [t(1, 2, 4), t(2, 3, 2), maybe(t(3)), options(transposed)],
  convTranspose2d: [image, t(2, 3, 2, 2), maybe(t(3)), options(transposed)],
  convTranspose3d: [t(1, 2, 3, 3, 3), t(2, 3, 2, 2, 2), maybe(t(3)), options(transposed)],
  ...rows('maxPool1d maxPool1dWithIndices', t(1, 2, 4), window, options(pool)),
  ...rows('maxPool2d maxPool2dWithIndices', image, window, options(pool)),
  ...rows('maxPool3d maxPool3dWithIndices', t(1, 2, 3, 3, 3), window, options(pool)),
  avgPool1d: [t(1, 2, 4), window, options(avgPool)],
  avgPool2d: [image, window, options(avgPool)],
  avgPool3d: [t(1, 2, 3, 3, 3), window, options(avgPool)],
  lpPool1d: [t(1, 2, 4), window, options({ ...pool, p: number })],
  lpPool2d: [image, window, options({ ...pool, p: number })],
  lpPool3d: [t(1, 2, 3, 3, 3), window, options({ ...pool, p: number })],
  globalAvgPool: [image],
  gridSample: [
    image,
    t(1, 2, 2, 2),
    options({
      mode: word('linear', 'nearest', 'cubic'),
      paddingMode: word('zeros', 'border'),
      alignCorners: flag,
    }),
  ],
  affineGrid: [t(1, 2, 3), like(shape(), () => [1, 1, 2, 2]), options({ alignCorners: flag })],
  scaledDotProductAttention: [
    t(2, 3),
    t(2, 3),
    t(2, 3),
    options({ mask: bools(2, 2), isCausal: flag, scale: number, dropout: share, enableGqa: flag }),
  ],
};

const loss = options({ reduction });
const losses: Rows = {
  ...rows('mseLoss l1Loss', x, operand, loss),
  bceLoss: [x, operand, options({ reduction, weight: operand })],
  smoothL1Loss: [x, operand, options({ reduction, beta: positive })],
  huberLoss: [x, operand, options({ reduction, delta: positive })],
  bceWithLogits: [x, operand, options({ reduction, posWeight: operand, weight: operand })],
  klDiv: [x, x, options({ reduction, logTarget: flag })],
  hingeEmbeddingLoss: [x, operand, options({ reduction, margin: number })],
  nllLoss: [x, ints(2), options({ reduction, weight: t(3), ignoreIndex: integer })],
  crossEntropy: [
    x,
    ints(2),
    options({ reduction, weight: t(3), ignoreIndex: integer, labelSmoothing: share }),
  ],
  cosineSimilarity: [x, x, maybe(axis), options({ eps: number })],
};

const moved: Rows = {
  ...rows('reshape view', x, shape(3, 2)),
  ...rows('viewAs', x, t(3, 2)),
  ...rows('expand broadcastTo', x, shape(2, 2, 3)),
  expandAs: [x, t(2, 2, 3)],
  flatten: [x, maybe(axis), maybe(axis)],
  unflatten: [x, axis, shape(1, 2)],
  permute: [x, shape(1, 0)],
  transpose: [x, maybe(axis), maybe(like(axis, () => 1))],
  moveaxis: [x, but(axes, 'nothing'), but(axes, 'nothing')],
  squeeze: [x, axes],
  unsqueeze: [x, axis],
  unfold: [x, axis, count, maybeCount],
  flip: [x, axes],
  roll: [x, meaning(() => 1, 'negative', 'number', 'emptyList', 'bytes'), axes],
  pad: [
    x,
    meaning(() => [[1, 1]], 'emptyList'),
    options({ mode: word('constant', 'circular'), value: element }),
  ],
  ...rows('tril triu', x, maybe(integer)),
  diag: [x, maybe(integer)],
  diagEmbed: [x, maybe(integer), options({ axis1: integer, axis2: integer })],
  diagonal: [x, options({ offset: integer, axis1: integer, axis2: integer })],
  ...rows('cat stack', someTensors, maybe(axis)),
  split: [x, meaning(() => 1, 'number', 'bytes'), maybe(axis)],
  chunk: [x, count, maybe(axis)],
  unbind: [x, maybe(axis)],
  repeatInterleave: [
    x,
    meaning(() => 2, 'number', 'bytes', 'emptyList', 'tensor', 'bool', 'integers'),
    maybe(axis),
    options({ outputSize: count }),
  ],
  meshgrid: [someTensors, options({ indexing: word('ij', 'xy') })],
  rearrange: [x, text('a b -> b a'), sizes],
  reduce: [x, text('a b -> a'), word('sum', 'mean'), sizes],
  repeat: [x, meaning(() => [1, 2], 'emptyList', 'bytes', 'text', 'empty'), sizes],
  tile: [x, meaning(() => [1, 2], 'emptyList', 'bytes')],
  at: [x, meaning(() => 0, 'nothing', 'null', 'number', 'emptyList', 'emptyObject', 'integers')],
  slice: [x, axis, rangeEnd, rangeEnd, maybe(meaning(() => 1, 'negative', 'number'))],
  narrow: [x, axis, like(but(operand, 'true', 'nan', 'infinity', 'fraction'), () => 1), count],
  select: [x, axis, like(axis, () => 1)],
};

const index = ints(2, 3);
const indexed: Rows = {
  gather: [x, axis, index],
  takeAlongAxis: [x, index, axis],
  indexSelect: [x, axis, ints(2)],
  take: [x, ints(2)],
  embedding: [ints(2), x, options({ paddingIdx: integer })],
  scatter: [x, axis, index, source],
  scatterAdd: [x, axis, index, source, options({ deterministic: flag })],
  scatterReduce: [
    x,
    axis,
    index,
    source,
    word('sum', 'prod', 'mean', 'amax', 'amin'),
    options({ includeSelf: flag }),
  ],
  indexAdd: [x, axis, ints(2), x, options({ alpha: number, deterministic: flag })],
  indexCopy: [x, axis, ints(2), x],
  segmentSum: [x, ints(2), count, options({ deterministic: flag })],
  oneHot: [ints(2), count, options({ dtype })],
  searchsorted: [t(3), operand, options({ right: flag, sorter: ints(3) })],
};

const mask = bools(2, 3);
const sized = options({ size: count });
const wholeAxis = maybe(integer);
const selected: Rows = {
  ...rows('nonzero argwhere', x, sized),
  ...rows('maskedSelect maskedAt', x, mask, sized),
  expandByMask: [t(6), mask],
  maskedScatter: [x, mask, x],
  selectScatter: [x, t(3), axis, like(axis, () => 1)],
  sliceScatter: [
    x,
    t(2, 2),
    wholeAxis,
    maybe(like(integer, () => 0)),
    maybe(like(integer, () => 2)),
    maybeCount,
  ],
  diagonalScatter: [x, t(2), options({ offset: like(integer, () => 0), axis1: integer, axis2: integer })],
  dynamicSlice: [x, sliceStarts, shape(1, 2)],
  dynamicUpdateSlice: [x, t(1, 2), sliceStarts],
  sliceWrite: [x, axis, like(but(operand, 'true', 'nan', 'infinity', 'fraction'), () => 0), t(1, 3)],
  asStrided: [x, shape(2, 2), shape(1, 2), maybe(integer)],
  asStridedScatter: [x, t(2, 2), shape(2, 2), shape(1, 2), maybe(integer)],
  isin: [operand, operand, options({ invert: flag, assumeUnique: flag })],
  unravelIndex: [ints(2), shape(2, 3)],
  segmentReduce: [
    t(2),
    word('sum', 'max'),
    options({ lengths: ints(1), offsets: ints(2), axis: like(integer, () => 0), initial: element }, [
      'lengths',
    ]),
  ],
  ...rows(
    'unique uniqueConsecutive',
    x,
    options({ axis: integer, returnInverse: flag, returnCounts: flag, size: count }),
  ),
  indexFill: [x, axis, ints(2), like(operand, () => 2)],
  indexReduce: [x, axis, ints(2), x, word('prod', 'mean'), options({ includeSelf: flag })],
  put: [x, ints(2), t(2), options({ accumulate: flag })],
  indexPut: [
    x,
    meaning(() => [zeros([2], { dtype: 'i32' })], 'tensors', 'emptyList'),
    t(2, 3),
    options({ accumulate: flag }),
  ],
  ...rows(
    'setAt addAt mulAt minAt maxAt',
    x,
    meaning(() => [0], 'emptyList', 'tensors', 'numbers'),
    like(operand, () => 2),
  ),
  takeAlongDim: [x, ints(2, 3), wholeAxis],
  ...rows('bucketize', operand, t(3), options({ right: flag })),
  msort: [x],
};

const among = options({
  bins: count,
  min: like(finite, () => 0),
  max: like(finite, () => 1),
});
const ranged = { weight: t(2, 3), density: flag };
const range = meaning(() => [0, 1], 'numbers');
const statistics: Rows = {
  histc: [x, among],
  histogram: [
    x,
    like(but(operand, 'true', 'nan', 'infinity', 'fraction', 'negative', 'large'), () => 2),
    options({ ...ranged, range }),
  ],
  histogramdd: [
    x,
    meaning(() => 2, 'number', 'bytes', 'tensors'),
    options({
      density: flag,
      weight: t(2),
      range: meaning(
        () => [
          [0, 1],
          [0, 1],
          [0, 1],
        ],
        'emptyList',
      ),
    }),
  ],
  bincount: [ints(3), options({ weights: t(3), minlength: count, size: count })],
  ...rows('nansum nanmean', x, axes, sum),
  aminmax: [x, wholeAxis, reduce],
  cov: [x, options({ correction: finite, fweights: ints(3), aweights: t(3) })],
  corrcoef: [x],
  kthvalue: [x, count, maybe(axis), reduce],
  ...rows('median nanmedian', x, wholeAxis, reduce),
  ...rows('medianWithIndices nanmedianWithIndices', x, axis, reduce),
  mode: [x, maybe(axis), reduce],
  ...rows(
    'quantile nanquantile',
    x,
    like(operand, () => 0.5),
    wholeAxis,
    options({ keepdim: flag, interpolation: word('linear', 'lower', 'nearest') }),
  ),
};

const made: Rows = {
  tensor: [data, options({ dtype, shape: shape(2) })],
  ...rows('zeros ones', shape(2, 3), create),
  full: [shape(2), value, create],
  ...rows('zerosLike onesLike', x, create),
  fullLike: [x, value, create],
  arange: [finite, maybe(like(finite, () => 3)), maybe(like(finite, () => 1)), create],
  linspace: [finite, finite, count, create],
  eye: [count, maybeCount, create],
  ...rows('rand randn', shape(2), draw),
  ...rows('randLike randnLike', x, draw),
  uniform: [shape(2), options({ dtype, key, low: finite, high: finite })],
  normal: [shape(2), options({ dtype, key, mean: finite, std: like(positive, () => 1) })],
  randint: [integer, like(integer, () => 3), shape(2), draw],
  randperm: [count, options({ key })],
};

const volume = t(1, 2, 3, 3, 3);
const outputSize = meaning(() => 1, 'number', 'bytes', 'null');
const random = { training: flag };
const patch = { stride: window, padding: like(window, () => 0), dilation: window };
const unpool = { stride: window, padding: like(window, () => 0), outputSize: window };
const fractional = { outputSize: window, outputRatio: share, samples: t(1, 2, 2) };
const margin = options({ reduction, margin: number });
const triplet = { reduction, margin: number, swap: flag };
const lengths = meaning(() => 1, 'number', 'bytes', 'tensor', 'integers', 'bool', 'emptyList');

/** Layers as functions, and losses of more than elements. */
const layers: Rows = {
  ...rows('adaptiveAvgPool1d adaptiveMaxPool1d adaptiveMaxPool1dWithIndices', t(1, 2, 4), outputSize),
  ...rows('adaptiveAvgPool2d adaptiveMaxPool2d adaptiveMaxPool2dWithIndices', image, outputSize),
  ...rows('adaptiveAvgPool3d adaptiveMaxPool3d adaptiveMaxPool3dWithIndices', volume, outputSize),
  maxUnpool1d: [t(1, 2, 4), ints(1, 2, 4), window, options(unpool)],
  maxUnpool2d: [image, ints(1, 2, 4, 4), window, options(unpool)],
  maxUnpool3d: [volume, ints(1, 2, 3, 3, 3), window, options(unpool)],
  ...rows(
    'fractionalMaxPool2d fractionalMaxPool2dWithIndices',
    image,
    window,
    options(fractional, ['outputSize']),
  ),
  ...rows(
    'fractionalMaxPool3d fractionalMaxPool3dWithIndices',
    volume,
    window,
    options(fractional, ['outputSize']),
  ),
  im2col: [image, window, options(patch)],
  col2im: [t(1, 2, 16), like(window, () => 4), window, options(patch)],
  interpolate: [
    image,
    options(
      {
        size: window,
        scaleFactor: like(positive, () => 2),
        mode: word('nearest', 'linear'),
        alignCorners: flag,
        antialias: flag,
        recomputeScaleFactor: flag,
      },
      ['size'],
    ),
  ],
  ...rows('pixelShuffle channelShuffle', t(1, 4, 2, 2), count),
  pixelUnshuffle: [image, count],
  ...rows('softshrink hardshrink', x, maybe(notNegative)),
  threshold: [x, number, element],
  rrelu: [x, options({ lower: finite, upper: finite, training: flag })],
  gumbelSoftmax: [x, options({ tau: positive, hard: flag, axis })],
  dropout1d: [t(1, 2, 4), maybe(share), options(random)],
  dropout2d: [image, maybe(share), options(random)],
  dropout3d: [volume, maybe(share), options(random)],
  ...rows('alphaDropout featureAlphaDropout', x, maybe(share), options(random)),
  bilinear: [x, t(2, 4), t(5, 3, 4), maybe(t(5))],
  rotaryEmbedding: [
    t(3, 4),
    options({
      base: positive,
      positions: t(3),
      offset: finite,
      interleaved: flag,
      dims: like(count, () => 2),
    }),
  ],
  embeddingBag: [
    ints(2, 2),
    x,
    options({
      offsets: ints(2),
      mode: word('sum', 'mean', 'max'),
      perSampleWeights: t(2, 2),
      paddingIdx: integer,
      includeLastOffset: flag,
    }),
  ],
  rnnCell: [
    x,
    t(2, 2),
    t(2, 3),
    t(2, 2),
    maybe(t(2)),
    maybe(t(2)),
    options({ nonlinearity: word('tanh', 'relu') }),
  ],
  gruCell: [x, t(2, 2), t(6, 3), t(6, 2), maybe(t(6)), maybe(t(6))],
  lstmCell: [
    x,
    meaning(() => [zeros([2, 2]), zeros([2, 2])], 'tensors'),
    t(8, 3),
    t(8, 2),
    maybe(t(8)),
    maybe(t(8)),
  ],
  gruCellFused: [t(2, 6), t(2, 6), t(6), t(6), t(2, 2)],
  marginRankingLoss: [x, x, operand, margin],
  cosineEmbeddingLoss: [x, x, t(2), margin],
  tripletMarginLoss: [x, x, x, options({ ...triplet, p: number, eps: number })],
  tripletMarginWithDistanceLoss: [
    x,
    x,
    x,
    options({
      ...triplet,
      distance: meaning(() => (a: Tensor, b: Tensor) => norm(a.sub(b)), 'function', 'asynchronous'),
    }),
  ],
  softMarginLoss: [x, operand, loss],
  multiMarginLoss: [
    x,
    ints(2),
    options({ reduction, p: meaning(() => 1, 'number'), margin: number, weight: t(3) }),
  ],
  multilabelMarginLoss: [x, ints(2, 3), loss],
  multilabelSoftMarginLoss: [x, operand, options({ reduction, weight: operand })],
  gaussianNllLoss: [x, operand, operand, options({ reduction, full: flag, eps: positive })],
  poissonNllLoss: [x, operand, options({ reduction, logInput: flag, full: flag, eps: number })],
  ctcLoss: [
    t(3, 1, 4),
    ints(1, 2),
    lengths,
    lengths,
    options({ reduction, blank: like(count, () => 0), zeroInfinity: flag }),
  ],
};

/** The exported functions that record operations, by name. */
export const operationRows: Rows = {
  ...signalRows,
  ...formulaRows,
  ...spectralRows,
  ...elementwise,
  ...folds,
  ...products,
  ...losses,
  ...moved,
  ...indexed,
  ...selected,
  ...statistics,
  ...made,
  ...layers,
  ...linalgOperations,
  ...specialOperations,
};

const maskedReduce = options({ keepdim: flag, dtype, mask: bools(2, 3) });
const maskedLine = options({ dtype, mask: bools(2, 3) });

/** The functions of `sn.masked`. */
export const maskedRows: Rows = {
  ...rows('sum prod amax amin mean logsumexp', x, axes, maskedReduce),
  ...rows('argmax argmin', x, wholeAxis, maskedReduce),
  ...rows('var std', x, axes, options({ keepdim: flag, dtype, mask: bools(2, 3), correction: finite })),
  norm: [x, maybe(number), axes, maskedReduce],
  median: [x, maybe(axis), maskedReduce],
  ...rows('softmax logSoftmax softmin cumsum cumprod', x, integer, maskedLine),
  normalize: [x, number, integer, options({ dtype, mask: bools(2, 3), eps: number })],
  logaddexp: [x, x, options({ inputMask: bools(2, 3), otherMask: bools(2, 3) })],
};

const aMatrix = meaning(() =>
  sparse.csr(zeros([3], { dtype: 'i32' }), zeros([0], { dtype: 'i32' }), zeros([0]), [2, 3]),
);
const aPair = meaning(() => [2, 3], 'numbers');
const noInts = like(ints(2), () => zeros([0], { dtype: 'i32' }));
const noValues = like(t(2), () => zeros([0]));
const byPointers = (lines: number): readonly Meaning[] => [
  like(ints(lines), () => zeros([lines], { dtype: 'i32' })),
  noInts,
  noValues,
  aPair,
];

/** The functions of `sn.sparse`; its classes are made by them. */
export const sparseRows: Rows = {
  csr: byPointers(3),
  csc: byPointers(4),
  coo: [noInts, noInts, noValues, aPair],
  ...rows('toCoo toCsr toCsc transpose toDense', aMatrix),
  scale: [aMatrix, like(operand, () => 2)],
  fromDense: [x, options({ layout: word('csr', 'csc', 'coo'), size: count })],
  coalesce: [like(aMatrix, () => sparse.toCoo(aMatrix.sample() as sparse.CsrMatrix)), sized],
  spmm: [aMatrix, t(3, 2)],
  spmv: [aMatrix, t(3)],
};

const packed = meaning(() => sparse24.compress(t(4, 2).sample() as Tensor));

/** The functions of `sn.sparse24`. */
export const sparse24Rows: Rows = {
  compress: [t(4, 2)],
  decompress: [packed],
  matmul: [t(2, 4), packed],
};
