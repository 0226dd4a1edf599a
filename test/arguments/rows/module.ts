// What losses, pads and the further layers of `sinter/nn` take.

import { ones, type Tensor } from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';
import {
  count,
  element,
  flag,
  finite,
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
  share,
  t,
  window,
  word,
  type Meaning,
} from '../kinds.ts';
import type { Rows } from './operation.ts';

const dtype = word('f32', 'f64');
const reduction = word('mean', 'none');
const factor = like(operand, () => ones([2]));
const distance = meaning(() => (x: Tensor, y: Tensor) => x.sub(y).sum(-1), 'function', 'asynchronous');
const nll = { reduction, weight: t(2), ignoreIndex: integer };
const triplet = { reduction, margin: number, swap: flag };
const embedded = { dtype, paddingIdx: like(integer, () => 0) };
const padding = window;
const pairs = (axes: number): Meaning =>
  meaning(() => Array.from({ length: axes }, () => [1, 1]), 'negative', 'number');
const patches = { stride: window, padding, dilation: window };
const lp = {
  ...patches,
  padding: meaning(() => 0, 'number', 'bytes', 'emptyList'),
  ceilMode: flag,
  p: number,
};
const size = meaning(() => 2, 'number', 'bytes', 'emptyList');
const axes = ['1d', '2d', '3d'];

const layer = meaning(() => new nn.ReLU(), 'function', 'asynchronous');
const transformer = {
  dtype,
  hidden: count,
  dropout: share,
  activation: layer,
  layerNormEps: number,
  normFirst: flag,
  bias: flag,
  kvHeads: like(count, () => 1),
};

const each = (names: string, places: readonly Meaning[]): Rows =>
  Object.fromEntries(names.split(' ').map((name) => [name, places]));
const eachAxes = (names: string, places: (axes: number) => readonly Meaning[]): Rows =>
  Object.fromEntries(
    names.split(' ').flatMap((name) => axes.map((at, i) => [`${name}${at}`, places(i + 1)])),
  );

export const moduleRows: Rows = {
  ...each('MSELoss L1Loss SoftMarginLoss MultiLabelMarginLoss', [options({ reduction })]),
  SmoothL1Loss: [options({ reduction, beta: notNegative })],
  HuberLoss: [options({ reduction, delta: positive })],
  ...each('BCELoss MultiLabelSoftMarginLoss', [options({ reduction, weight: factor })]),
  BCEWithLogitsLoss: [options({ reduction, weight: factor, posWeight: factor })],
  KLDivLoss: [options({ reduction: word('batchmean', 'sum'), logTarget: flag })],
  ...each('HingeEmbeddingLoss MarginRankingLoss CosineEmbeddingLoss', [
    options({ reduction, margin: number }),
  ]),
  PoissonNLLLoss: [options({ reduction, logInput: flag, full: flag, eps: number })],
  GaussianNLLLoss: [options({ reduction, full: flag, eps: positive })],
  NLLLoss: [options(nll)],
  CrossEntropyLoss: [options({ ...nll, labelSmoothing: share })],
  MultiMarginLoss: [options({ reduction, p: count, margin: number, weight: t(2) })],
  CTCLoss: [options({ reduction, blank: meaning(() => 0, 'number'), zeroInfinity: flag })],
  TripletMarginLoss: [options({ ...triplet, p: number, eps: number })],
  TripletMarginWithDistanceLoss: [options({ ...triplet, distance })],
  PairwiseDistance: [options({ p: number, eps: number, keepdim: flag })],
  CosineSimilarity: [maybe(integer), options({ eps: number })],
  ...eachAxes('ZeroPad ReflectionPad ReplicationPad CircularPad', (at) => [pairs(at)]),
  ...eachAxes('ConstantPad', (at) => [pairs(at), element]),
  ...each('Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout', [maybe(share)]),
  ...eachAxes('LPPool', () => [window, options(lp)]),
  ...each('FractionalMaxPool2d FractionalMaxPool3d', [
    window,
    options({ outputSize: window, outputRatio: share }),
  ]),
  ...eachAxes('MaxUnpool', () => [window, options({ stride: window, padding, outputSize: window })]),
  Unfold: [window, options(patches)],
  Fold: [window, window, options(patches)],
  Unflatten: [integer, meaning(() => [1, 2], 'emptyList')],
  ...each('UpsamplingNearest2d UpsamplingBilinear2d', [
    options({ size, scaleFactor: meaning(() => 2, 'infinity', 'fraction', 'large', 'number', 'emptyList') }),
  ]),
  Bilinear: [count, count, count, options({ dtype, bias: flag })],
  EmbeddingBag: [count, count, options({ ...embedded, mode: word('sum', 'max'), includeLastOffset: flag })],
  PReLU: [maybe(count), options({ dtype, init: number })],
  RReLU: [options({ lower: finite, upper: finite })],
  Softmax2d: [],
  AdaptiveLogSoftmaxWithLoss: [
    like(count, () => 32),
    like(count, () => 4),
    meaning(() => [1, 2]),
    options({ dtype, divValue: like(positive, () => 1), headBias: flag }),
  ],
  ...each('TransformerEncoderLayer TransformerDecoderLayer', [
    count,
    like(count, () => 1),
    options({ ...transformer, causal: flag }),
  ]),
  TransformerEncoder: [
    meaning(() => [new nn.TransformerEncoderLayer(2, 1, { hidden: 2 })], 'emptyList'),
    options({ norm: layer }),
  ],
  TransformerDecoder: [
    meaning(() => [new nn.TransformerDecoderLayer(2, 1, { hidden: 2 })], 'emptyList'),
    options({ norm: layer }),
  ],
  Transformer: [
    like(count, () => 32),
    options({
      ...transformer,
      causal: flag,
      heads: count,
      encoderLayers: like(count, () => 0),
      decoderLayers: like(count, () => 0),
    }),
  ],
  CausalTransformer: [
    like(count, () => 32),
    options({ ...transformer, heads: count, layers: like(count, () => 1) }),
  ],
  ...eachAxes('InstanceNorm', () => [
    count,
    options({ dtype, eps: number, affine: flag, momentum: number, trackRunningStats: flag }),
  ]),
};

type Made = { forward(...inputs: never[]): unknown };

/** What the message names, a layer made, and what its `forward` takes. */
export const moduleForwards: readonly (readonly [
  told: string,
  make: () => Made,
  places: readonly Meaning[],
])[] = [
  ['mseLoss', () => new nn.MSELoss(), [t(2, 3), operand]],
  ['l1Loss', () => new nn.L1Loss(), [t(2, 3), operand]],
  ['smoothL1Loss', () => new nn.SmoothL1Loss(), [t(2, 3), operand]],
  ['huberLoss', () => new nn.HuberLoss(), [t(2, 3), operand]],
  ['bceLoss', () => new nn.BCELoss(), [t(2, 3), operand]],
  ['bceWithLogits', () => new nn.BCEWithLogitsLoss(), [t(2, 3), operand]],
  ['klDiv', () => new nn.KLDivLoss(), [t(2, 3), t(2, 3)]],
  ['hingeEmbeddingLoss', () => new nn.HingeEmbeddingLoss(), [t(2, 3), operand]],
  ['softMarginLoss', () => new nn.SoftMarginLoss(), [t(2, 3), operand]],
  ['poissonNllLoss', () => new nn.PoissonNLLLoss(), [t(2, 3), operand]],
  ['gaussianNllLoss', () => new nn.GaussianNLLLoss(), [t(2, 3), operand, operand]],
  ['nllLoss', () => new nn.NLLLoss(), [t(2, 3), ints(2)]],
  ['crossEntropy', () => new nn.CrossEntropyLoss(), [t(2, 3), ints(2)]],
  ['multiMarginLoss', () => new nn.MultiMarginLoss(), [t(2, 3), ints(2)]],
  ['multilabelMarginLoss', () => new nn.MultiLabelMarginLoss(), [t(2, 3), ints(2, 3)]],
  ['multilabelSoftMarginLoss', () => new nn.MultiLabelSoftMarginLoss(), [t(2, 3), operand]],
  ['marginRankingLoss', () => new nn.MarginRankingLoss(), [t(2, 3), t(2, 3), operand]],
  ['cosineEmbeddingLoss', () => new nn.CosineEmbeddingLoss(), [t(2, 3), t(2, 3), t(2)]],
  ['tripletMarginLoss', () => new nn.TripletMarginLoss(), [t(2, 3), t(2, 3), t(2, 3)]],
  [
    'tripletMarginWithDistanceLoss',
    () => new nn.TripletMarginWithDistanceLoss({ distance: (x, y) => x.sub(y).sum(-1) }),
    [t(2, 3), t(2, 3), t(2, 3)],
  ],
  ['pairwiseDistance', () => new nn.PairwiseDistance(), [t(2, 3), t(2, 3)]],
  ['cosineSimilarity', () => new nn.CosineSimilarity(), [t(2, 3), t(2, 3)]],
  ['pad', () => new nn.ReflectionPad1d(1), [t(1, 2, 4)]],
  ['dropout2d', () => new nn.Dropout2d(), [t(1, 2, 4, 4)]],
  ['alphaDropout', () => new nn.AlphaDropout(), [t(1, 2)]],
  ['lpPool1d', () => new nn.LPPool1d(1), [t(1, 2, 4)]],
  ['fractionalMaxPool2d', () => new nn.FractionalMaxPool2d(1, { outputSize: 2 }), [t(1, 2, 4, 4)]],
  ['maxUnpool1d', () => new nn.MaxUnpool1d(2), [t(1, 2, 2), ints(1, 2, 2)]],
  ['im2col', () => new nn.Unfold(1), [t(1, 2, 4, 4)]],
  ['col2im', () => new nn.Fold(2, 1), [t(1, 2, 4)]],
  ['unflatten', () => new nn.Unflatten(0, [1, 2]), [t(2, 2)]],
  ['interpolate', () => new nn.UpsamplingNearest2d({ scaleFactor: 2 }), [t(1, 2, 4, 4)]],
  ['interpolate', () => new nn.UpsamplingBilinear2d({ scaleFactor: 2 }), [t(1, 2, 4, 4)]],
  ['bilinear', () => new nn.Bilinear(2, 2, 2), [t(1, 2), t(1, 2)]],
  [
    'EmbeddingBag',
    () => new nn.EmbeddingBag(2, 2, { mode: 'sum' }),
    [ints(2, 2), options({ perSampleWeights: t(2, 2) })],
  ],
  ['prelu', () => new nn.PReLU(), [t(1, 2)]],
  ['rrelu', () => new nn.RReLU(), [t(1, 2)]],
  ['Softmax2d', () => new nn.Softmax2d(), [t(1, 2, 2, 2)]],
  [
    'AdaptiveLogSoftmaxWithLoss',
    () => new nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2], { divValue: 2 }),
    [t(2, 2), ints(2)],
  ],
  [
    'TransformerEncoderLayer',
    () => new nn.TransformerEncoderLayer(2, 1, { hidden: 2 }),
    [t(2, 2), options({ mask: t(2, 2) })],
  ],
  [
    'TransformerDecoderLayer',
    () => new nn.TransformerDecoderLayer(2, 1, { hidden: 2 }),
    [t(2, 2), t(2, 2), options({ mask: t(2, 2), memoryMask: t(2, 2) })],
  ],
  [
    'CausalTransformer',
    () => new nn.CausalTransformer(2, { heads: 1, layers: 1, hidden: 2 }),
    [t(1, 2, 2), options({ mask: t(2, 2) })],
  ],
  [
    'Transformer',
    () => new nn.Transformer(2, { heads: 1, encoderLayers: 1, decoderLayers: 1, hidden: 2 }),
    [t(2, 2), t(2, 2), options({ mask: t(2, 2), memoryMask: t(2, 2), sourceMask: t(2, 2) })],
  ],
  ['instanceNorm', () => new nn.InstanceNorm1d(2), [t(1, 2, 4)]],
];
