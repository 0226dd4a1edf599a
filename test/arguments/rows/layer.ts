// What the functions and classes of `sinter/nn` and `sinter/optim` take, and the methods of those classes.

import { ones, tensor, type Tensor } from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';
import * as optim from '../../../src/optim/index.ts';
import {
  count,
  element,
  flag,
  fn,
  integer,
  ints,
  like,
  maybe,
  meaning,
  notNegative,
  number,
  options,
  positive,
  share,
  t,
  text,
  window,
  word,
  type Meaning,
} from '../kinds.ts';
import { moduleForwards, moduleRows } from './module.ts';
import type { Rows } from './operation.ts';

const dtype = word('f32', 'f64');
const sizes = meaning(() => [3, 3], 'emptyList', 'bytes');
const weight = meaning(() => [3, 3], 'emptyList');
const model = meaning(
  () => new nn.Linear(2, 2),
  'emptyList',
  'emptyObject',
  'tensors',
  'tensor',
  'bool',
  'integers',
  'object',
  'bare',
  'holes',
  'numbers',
  'texts',
  'nested',
  'disposed',
);
const axis = integer;
const layer = meaning(() => new nn.ReLU(), 'function', 'asynchronous');
const init = { dtype };
const windows = {
  stride: window,
  padding: meaning(() => 0, 'number', 'bytes', 'emptyList'),
  dilation: window,
  ceilMode: flag,
};
const divisor = meaning(() => 2, 'negative', 'number');
const conv = {
  stride: window,
  padding: windows.padding,
  dilation: window,
  groups: count,
  ...init,
  bias: flag,
};
const norm = { ...init, eps: number, affine: flag, bias: flag };
const heads = { ...init, kvHeads: like(count, () => 1), bias: flag, dropout: share, causal: flag };
const recurrent = {
  ...init,
  numLayers: count,
  bidirectional: flag,
  dropout: share,
  batchFirst: flag,
  bias: flag,
};
const cell = { ...init, bias: flag };
const rnnKind = word('tanh', 'relu');
const sequence = options({
  lengths: meaning(() => [1], 'tensor', 'bool', 'integers', 'emptyList', 'bytes'),
});
const lstmState = (...shape: number[]): Meaning =>
  maybe(meaning(() => [ones(shape), ones(shape)], 'tensors'));
const feed = { ...init, hidden: count, activation: layer, bias: flag };

const named = (what: string): Meaning => meaning(() => what, 'text', 'empty');
const normed = meaning(() => new nn.BatchNorm(2), ...model.accepts);

class Still extends nn.Module {
  override forward(): Tensor {
    return ones([2]);
  }
}

/** Walks, containers and conversions. */
const modelRows: Rows = {
  ModuleList: [maybe(meaning(() => [new nn.ReLU()], 'emptyList'))],
  ModuleDict: [maybe(meaning(() => ({ a: new nn.ReLU() }), 'emptyObject'))],
  ParameterList: [maybe(meaning(() => [ones([2])], 'emptyList', 'tensors'))],
  ParameterDict: [maybe(meaning(() => ({ a: ones([2]) }), 'emptyObject'))],
  apply: [model, meaning(() => (): void => undefined, 'function', 'asynchronous')],
  buffers: [model],
  children: [model],
  // What `forward` takes is its own.
  functionalCall: [meaning(() => new Still()), meaning(() => ({}), 'emptyObject')],
  getBuffer: [normed, named('runningMean')],
  getParameter: [model, named('weight')],
  getSubmodule: [model, named('')],
  modules: [model],
  namedChildren: [model],
  namedModules: [model],
  requiresGrad_: [model, maybe(flag)],
  zeroGrad: [model],
  to: [model, word('f16', 'f64')],
  summary: [model],
  weightNorm: [
    meaning(() => new nn.Linear(2, 2)),
    options({ name: text('weight'), axis: meaning(() => 0, 'null') }),
  ],
  spectralNorm: [
    meaning(() => new nn.Linear(2, 2)),
    options({ name: text('weight'), powerIterations: count, eps: positive, axis: meaning(() => 0) }),
  ],
  removeParametrization: [meaning(() => nn.weightNorm(new nn.Linear(2, 2))), maybe(text('weight'))],
};

export const nnRows: Rows = {
  AvgPool2d: [window, options({ ...windows, countIncludePad: flag, divisorOverride: divisor })],
  ...Object.fromEntries(
    ['BatchNorm', 'BatchNorm1d', 'BatchNorm2d', 'BatchNorm3d'].map((name) => [
      name,
      [count, options({ ...norm, momentum: number, trackRunningStats: flag })],
    ]),
  ),
  ...Object.fromEntries(
    ['Conv1d', 'Conv2d', 'Conv3d'].map((name) => [name, [count, count, window, options(conv)]]),
  ),
  ...Object.fromEntries(
    ['ConvTranspose1d', 'ConvTranspose2d', 'ConvTranspose3d'].map((name) => [
      name,
      [count, count, window, options({ ...conv, outputPadding: windows.padding })],
    ]),
  ),
  Dropout: [maybe(share)],
  Embedding: [count, count, options({ ...init, paddingIdx: like(integer, () => 0) })],
  FeedForward: [count, options(feed)],
  Flatten: [maybe(axis), maybe(axis)],
  GELU: [maybe(word('none', 'tanh'))],
  GroupNorm: [count, count, options(norm)],
  LayerNorm: [like(sizes, () => 3), options(norm)].map((at, i) =>
    i === 0 ? { ...at, accepts: new Set([...at.accepts, 'number'] as const) } : at,
  ),
  LeakyReLU: [maybe(number)],
  Linear: [count, count, options({ ...init, bias: flag })],
  MaxPool2d: [window, options(windows)],
  MultiHeadAttention: [count, like(count, () => 1), options(heads)],
  RNN: [count, count, options({ ...recurrent, nonlinearity: rnnKind })],
  GRU: [count, count, options(recurrent)],
  LSTM: [count, count, options({ ...recurrent, projSize: count })],
  RNNCell: [count, count, options({ ...cell, nonlinearity: rnnKind })],
  GRUCell: [count, count, options(cell)],
  LSTMCell: [count, count, options(cell)],
  RMSNorm: [
    meaning(() => 3, 'number', 'emptyList', 'bytes'),
    options({ ...init, eps: number, affine: flag }),
  ],
  ReLU: [],
  ...Object.fromEntries(
    'Identity ReLU6 Mish SELU Hardswish Hardsigmoid LogSigmoid Softsign Tanhshrink'
      .split(' ')
      .map((name) => [name, []]),
  ),
  ELU: [maybe(number)],
  CELU: [maybe(number)],
  Hardtanh: [maybe(like(number, () => -1)), maybe(like(number, () => 2))],
  Softplus: [maybe(number), maybe(number)],
  Softshrink: [maybe(notNegative)],
  Hardshrink: [maybe(notNegative)],
  Threshold: [number, element],
  LogSoftmax: [maybe(axis)],
  Softmin: [maybe(axis)],
  GLU: [maybe(axis)],
  MaxPool1d: [window, options(windows)],
  MaxPool3d: [window, options(windows)],
  AvgPool1d: [window, options({ ...windows, countIncludePad: flag, divisorOverride: divisor })],
  AvgPool3d: [window, options({ ...windows, countIncludePad: flag, divisorOverride: divisor })],
  ...Object.fromEntries(
    ['1d', '2d', '3d'].flatMap((axes) =>
      ['Avg', 'Max'].map((kind) => [
        `Adaptive${kind}Pool${axes}`,
        [meaning(() => 1, 'number', 'bytes', 'emptyList')],
      ]),
    ),
  ),
  Upsample: [
    options({
      size: meaning(() => 2, 'number', 'bytes', 'emptyList'),
      scaleFactor: meaning(() => 2, 'infinity', 'fraction', 'large', 'number', 'emptyList'),
      mode: word('nearest', 'linear'),
      alignCorners: flag,
      antialias: flag,
      recomputeScaleFactor: flag,
    }),
  ],
  PixelShuffle: [count],
  PixelUnshuffle: [count],
  ChannelShuffle: [count],
  ...Object.fromEntries(
    ['LocalResponseNorm', 'CrossMapLRN2d'].map((name) => [
      name,
      [count, options({ alpha: number, beta: number, k: number })],
    ]),
  ),
  Sequential: [layer, layer],
  SiLU: [],
  Sigmoid: [],
  Softmax: [maybe(axis)],
  Tanh: [],
  TransformerBlock: [count, like(count, () => 1), options({ ...feed, ...heads })],
  countParameters: [model],
  evalMode: [model],
  fans: [weight],
  gain: [word('linear', 'leakyRelu'), maybe(number)],
  ...Object.fromEntries(
    ['kaimingNormal', 'kaimingUniform'].map((name) => [
      name,
      [
        weight,
        options({ ...init, mode: word('fanIn', 'fanOut'), nonlinearity: word('relu', 'tanh'), a: number }),
      ],
    ]),
  ),
  ...Object.fromEntries(
    ['xavierNormal', 'xavierUniform'].map((name) => [name, [weight, options({ ...init, gain: number })]]),
  ),
  constant: [weight, number, options(init)],
  dirac: [like(weight, () => [4, 2, 3]), options({ ...init, groups: count })],
  orthogonal: [weight, options({ ...init, gain: number })],
  sparse: [weight, share, options({ ...init, std: notNegative })],
  truncNormal: [weight, options({ ...init, mean: like(number, () => 0), std: positive })],
  varianceScaling: [
    weight,
    options({
      ...init,
      scale: positive,
      mode: word('fanIn', 'fanAvg'),
      distribution: word('uniform', 'truncatedNormal'),
    }),
  ],
  loadStateDict: [
    model,
    meaning(() => nn.stateDict(new nn.Linear(2, 2)), 'emptyObject'),
    options({ strict: flag }),
  ],
  loadTorchStateDict: [
    model,
    meaning(() => nn.torchStateDict(new nn.Linear(2, 2)), 'emptyObject'),
    options({ strict: flag }),
  ],
  torchStateDict: [{ ...model, accepts: new Set([...model.accepts].filter((name) => name !== 'disposed')) }],
  namedBuffers: [model],
  namedParameters: [model],
  parameter: [t(2)],
  parameters: [model],
  stateDict: [{ ...model, accepts: new Set([...model.accepts].filter((name) => name !== 'disposed')) }],
  train: [model, maybe(flag)],
  ...modelRows,
  ...moduleRows,
};

/** A layer made, and what its `forward` takes. */
const forwards: readonly (readonly [
  name: string,
  make: () => { forward(...inputs: never[]): unknown },
  places: readonly Meaning[],
])[] = [
  ['avgPool2d', () => new nn.AvgPool2d(1), [t(1, 2, 4, 4)]],
  ['batchNorm', () => new nn.BatchNorm(2), [t(1, 2, 4, 4)]],
  ['BatchNorm2d', () => new nn.BatchNorm2d(2), [t(1, 2, 4, 4)]],
  ['conv1d', () => new nn.Conv1d(2, 2, 1), [t(1, 2, 4)]],
  ['conv2d', () => new nn.Conv2d(2, 2, 1), [t(1, 2, 4, 4)]],
  ['conv3d', () => new nn.Conv3d(2, 2, 1), [t(1, 2, 2, 2, 2)]],
  ['convTranspose1d', () => new nn.ConvTranspose1d(2, 2, 1), [t(1, 2, 4)]],
  ['convTranspose2d', () => new nn.ConvTranspose2d(2, 2, 1), [t(1, 2, 4, 4)]],
  ['convTranspose3d', () => new nn.ConvTranspose3d(2, 2, 1), [t(1, 2, 2, 2, 2)]],
  ['dropout', () => new nn.Dropout(), [t(2)]],
  ['embedding', () => new nn.Embedding(2, 2), [ints(2)]],
  ['FeedForward', () => new nn.FeedForward(2), [t(1, 2)]],
  ['flatten', () => new nn.Flatten(), [t(1, 2)]],
  ['gelu', () => new nn.GELU(), [t(2)]],
  ['groupNorm', () => new nn.GroupNorm(1, 2), [t(1, 2)]],
  ['layerNorm', () => new nn.LayerNorm(2), [t(1, 2)]],
  ['leakyRelu', () => new nn.LeakyReLU(), [t(2)]],
  ['linear', () => new nn.Linear(2, 2), [t(1, 2)]],
  ['maxPool2d', () => new nn.MaxPool2d(1), [t(1, 2, 4, 4)]],
  [
    'MultiHeadAttention',
    () => new nn.MultiHeadAttention(2, 1),
    [t(2, 2), options({ context: t(2, 2), mask: t(2, 2) })],
  ],
  ['rmsNorm', () => new nn.RMSNorm(2), [t(1, 2)]],
  ['RNN', () => new nn.RNN(2, 2), [t(3, 1, 2), maybe(t(1, 1, 2)), sequence]],
  ['GRU', () => new nn.GRU(2, 2), [t(3, 1, 2), maybe(t(1, 1, 2)), sequence]],
  ['LSTM', () => new nn.LSTM(2, 2), [t(3, 1, 2), lstmState(1, 1, 2), sequence]],
  ['RNNCell', () => new nn.RNNCell(2, 2), [t(1, 2), maybe(t(1, 2))]],
  ['GRUCell', () => new nn.GRUCell(2, 2), [t(1, 2), maybe(t(1, 2))]],
  ['LSTMCell', () => new nn.LSTMCell(2, 2), [t(1, 2), lstmState(1, 2)]],
  ['relu', () => new nn.ReLU(), [t(2)]],
  ['Identity', () => new nn.Identity(), [t(2)]],
  ['relu6', () => new nn.ReLU6(), [t(2)]],
  ['mish', () => new nn.Mish(), [t(2)]],
  ['selu', () => new nn.SELU(), [t(2)]],
  ['hardswish', () => new nn.Hardswish(), [t(2)]],
  ['hardsigmoid', () => new nn.Hardsigmoid(), [t(2)]],
  ['logSigmoid', () => new nn.LogSigmoid(), [t(2)]],
  ['softsign', () => new nn.Softsign(), [t(2)]],
  ['tanhshrink', () => new nn.Tanhshrink(), [t(2)]],
  ['elu', () => new nn.ELU(), [t(2)]],
  ['celu', () => new nn.CELU(), [t(2)]],
  ['hardtanh', () => new nn.Hardtanh(), [t(2)]],
  ['softplus', () => new nn.Softplus(), [t(2)]],
  ['softshrink', () => new nn.Softshrink(), [t(2)]],
  ['hardshrink', () => new nn.Hardshrink(), [t(2)]],
  ['threshold', () => new nn.Threshold(0, 1), [t(2)]],
  ['logSoftmax', () => new nn.LogSoftmax(), [t(2)]],
  ['softmin', () => new nn.Softmin(), [t(2)]],
  ['glu', () => new nn.GLU(), [t(2)]],
  ['maxPool1d', () => new nn.MaxPool1d(1), [t(1, 2, 4)]],
  ['maxPool3d', () => new nn.MaxPool3d(1), [t(1, 2, 4, 4, 4)]],
  ['avgPool1d', () => new nn.AvgPool1d(1), [t(1, 2, 4)]],
  ['avgPool3d', () => new nn.AvgPool3d(1), [t(1, 2, 4, 4, 4)]],
  ['adaptiveAvgPool1d', () => new nn.AdaptiveAvgPool1d(1), [t(1, 2, 4)]],
  ['adaptiveAvgPool2d', () => new nn.AdaptiveAvgPool2d(1), [t(1, 2, 4, 4)]],
  ['adaptiveAvgPool3d', () => new nn.AdaptiveAvgPool3d(1), [t(1, 2, 4, 4, 4)]],
  ['adaptiveMaxPool1d', () => new nn.AdaptiveMaxPool1d(1), [t(1, 2, 4)]],
  ['adaptiveMaxPool2d', () => new nn.AdaptiveMaxPool2d(1), [t(1, 2, 4, 4)]],
  ['adaptiveMaxPool3d', () => new nn.AdaptiveMaxPool3d(1), [t(1, 2, 4, 4, 4)]],
  ['interpolate', () => new nn.Upsample({ scaleFactor: 2 }), [t(1, 2, 4)]],
  ['pixelShuffle', () => new nn.PixelShuffle(2), [t(4, 2, 2)]],
  ['pixelUnshuffle', () => new nn.PixelUnshuffle(2), [t(1, 2, 2)]],
  ['channelShuffle', () => new nn.ChannelShuffle(2), [t(1, 4)]],
  ['localResponseNorm', () => new nn.LocalResponseNorm(2), [t(1, 4)]],
  ['CrossMapLRN2d', () => new nn.CrossMapLRN2d(2), [t(1, 4, 2, 2)]],
  ['Sequential', () => new nn.Sequential(new nn.ReLU()), [t(2)]],
  ['silu', () => new nn.SiLU(), [t(2)]],
  ['sigmoid', () => new nn.Sigmoid(), [t(2)]],
  ['softmax', () => new nn.Softmax(), [t(2)]],
  ['tanh', () => new nn.Tanh(), [t(2)]],
  [
    'TransformerBlock',
    () => new nn.TransformerBlock(2, 1),
    [t(2, 2), options({ context: t(2, 2), mask: t(2, 2) })],
  ],
  ...moduleForwards,
];

export interface MethodRow {
  readonly name: string;
  /** What the message names. */
  readonly told: string;
  readonly call: (...args: readonly unknown[]) => unknown;
  readonly places: readonly Meaning[];
}

const layerMethods: readonly MethodRow[] = forwards.map(([told, make, places]) => {
  const layer = make();
  const call = (...args: readonly unknown[]): unknown =>
    (layer.forward as (...given: unknown[]) => unknown).apply(layer, [...args]);
  return { name: `${layer.constructor.name}.forward`, told, call, places };
});

const rate = meaning(() => 0.1, 'infinity', 'fraction', 'large', 'number', 'function', 'asynchronous');
const rateOperand = meaning(
  () => 0.1,
  'infinity',
  'fraction',
  'large',
  'number',
  'tensor',
  'bool',
  'integers',
);
const params = meaning(
  () => new nn.Linear(2, 2),
  'tensors',
  'tensor',
  'bool',
  'integers',
  'emptyList',
  'emptyObject',
  'holes',
  'numbers',
  'texts',
  'nested',
  'object',
  'bare',
);
const adam = {
  betas: meaning(() => [0.9, 0.99]),
  eps: notNegative,
  weightDecay: notNegative,
  amsgrad: flag,
};
const sgd = {
  momentum: notNegative,
  dampening: like(number, () => 0),
  nesterov: like(flag, () => false),
  weightDecay: notNegative,
};
const rmsprop = {
  alpha: share,
  eps: notNegative,
  momentum: notNegative,
  centered: flag,
  weightDecay: notNegative,
};
const adagrad = {
  initialAccumulator: notNegative,
  eps: notNegative,
  lrDecay: notNegative,
  weightDecay: notNegative,
};
const two = meaning(() => [0.5, 0.9]);
const lion = { betas: two, weightDecay: notNegative };
/** The settings of each optimizer: class, function, and options. */
const optimizerSettings: readonly (readonly [string, string, Readonly<Record<string, Meaning>>])[] = [
  ['Adam', 'adam', adam],
  ['AdamW', 'adamW', adam],
  ['SGD', 'sgd', sgd],
  ['RMSprop', 'rmsprop', rmsprop],
  ['Adagrad', 'adagrad', adagrad],
  ['Adadelta', 'adadelta', { rho: share, eps: notNegative, weightDecay: notNegative }],
  ['Adamax', 'adamax', { betas: two, eps: notNegative, weightDecay: notNegative }],
  ['NAdam', 'nadam', { betas: two, eps: notNegative, weightDecay: notNegative, momentumDecay: notNegative }],
  ['RAdam', 'radam', { betas: two, eps: notNegative, weightDecay: notNegative }],
  ['Lamb', 'lamb', { betas: two, eps: notNegative, weightDecay: notNegative }],
  ['Lion', 'lion', lion],
  ['Rprop', 'rprop', { etas: two, stepSizes: two }],
  ['ASGD', 'asgd', { lambd: notNegative, alpha: notNegative, t0: notNegative, weightDecay: notNegative }],
  [
    'Adafactor',
    'adafactor',
    { beta2Decay: meaning(() => -0.8, 'negative'), eps: two, d: positive, weightDecay: notNegative },
  ],
];
const muon = {
  weightDecay: notNegative,
  momentum: share,
  nesterov: flag,
  nsCoefficients: meaning(() => [1, 1, 1]),
  eps: positive,
  nsSteps: like(count, () => 2),
  adjustLr: text('original'),
};
const common = { maximize: flag, accumulate: like(count, () => 2) };
const base = { lr: notNegative };
const grads = meaning(
  () => [ones([2])],
  'tensors',
  'tensor',
  'bool',
  'integers',
  'emptyList',
  'emptyObject',
  'holes',
  'numbers',
  'texts',
  'nested',
  'object',
  'bare',
  'date',
  'map',
  'set',
  'promise',
  'regex',
  'error',
  'floats',
  'bytes',
  'bigints',
  'view',
  'buffer',
  'disposed',
);

function withGradient(): Tensor[] {
  const param = tensor([1, 2]).requiresGrad_();
  param.grad = tensor([1, 1]);
  return [param];
}

const scalerSettings = {
  initScale: positive,
  growthFactor: positive,
  backoffFactor: share,
  growthInterval: like(count, () => 2),
};

export const optimRows: Rows = {
  ...Object.fromEntries(
    optimizerSettings.flatMap(([name, small, own]) => [
      [name, [params, options({ ...own, ...common, lr: rate })]],
      [small, [options({ ...own, ...common, lr: rateOperand })]],
    ]),
  ),
  Muon: [like(params, () => [ones([2, 2])]), options({ ...muon, ...common, lr: rate })],
  muon: [options({ ...muon, ...common, lr: rateOperand })],
  LBFGS: [
    params,
    options({
      lr: positive,
      maxIter: count,
      maxEval: count,
      toleranceGrad: notNegative,
      toleranceChange: notNegative,
      historySize: count,
      lineSearch: text('strongWolfe'),
    }),
  ],
  GradScaler: [options(scalerSettings)],
  gradScaler: [options(scalerSettings)],
  scaled: [meaning(() => optim.adam()), options(scalerSettings)],
  partition: [meaning(() => [[/./, optim.sgd()]], 'emptyList')],
  ema: [options({ decay: share })],
  swa: [],
  clipByNorm: [grads, notNegative, options({ p: positive })],
  clipByValue: [grads, notNegative],
  clipGradNorm: [like(grads, withGradient), notNegative, options({ p: positive })],
  clipGradValue: [like(grads, withGradient), notNegative],
  chainedLr: [notNegative, meaning(() => [(): number => 1])],
  cyclicLr: [
    options(
      {
        baseLr: notNegative,
        maxLr: notNegative,
        stepSizeUp: positive,
        stepSizeDown: positive,
        mode: text('triangular'),
        gamma: number,
      },
      ['baseLr', 'maxLr'],
    ),
  ],
  multiplicativeLr: [options({ ...base, factor: fn }, ['lr', 'factor'])],
  reduceLrOnPlateau: [
    options(
      {
        ...base,
        mode: text('min'),
        factor: share,
        patience: like(count, () => 2),
        threshold: notNegative,
        thresholdMode: text('rel'),
        cooldown: like(count, () => 2),
        minLr: notNegative,
        eps: notNegative,
      },
      ['lr'],
    ),
  ],
  constantLr: [options({ ...base, factor: number, totalIters: notNegative }, ['lr'])],
  cosineAnnealingLr: [options({ ...base, tMax: positive, etaMin: number }, ['lr', 'tMax'])],
  cosineAnnealingWarmRestarts: [
    options({ ...base, t0: positive, tMult: like(positive, () => 2), etaMin: number }, ['lr', 't0']),
  ],
  exponentialLr: [options({ ...base, gamma: number }, ['lr', 'gamma'])],
  functional: [
    text('my rule'),
    meaning(() => ({ slots: {}, step: (at: optim.Step) => ({ value: at.value, slots: {} }) })),
    rateOperand,
  ],
  lambdaLr: [options({ ...base, factor: fn }, ['lr', 'factor'])],
  linearLr: [options({ ...base, startFactor: number, endFactor: number, totalIters: notNegative }, ['lr'])],
  multiStepLr: [
    options({ ...base, milestones: meaning(() => [1, 2], 'emptyList'), gamma: number }, ['lr', 'milestones']),
  ],
  oneCycleLr: [
    options(
      {
        maxLr: notNegative,
        totalSteps: positive,
        pctStart: share,
        divFactor: positive,
        finalDivFactor: positive,
      },
      ['maxLr', 'totalSteps'],
    ),
  ],
  polynomialLr: [options({ ...base, totalIters: notNegative, power: number }, ['lr'])],
  sequentialLr: [meaning(() => [optim.constantLr({ lr: 1 })]), meaning(() => [1], 'emptyList')],
  stepLr: [options({ ...base, stepSize: positive, gamma: number }, ['lr', 'stepSize'])],
  warmupCosine: [
    options({ ...base, warmup: notNegative, tMax: positive, startFactor: number, etaMin: number }, [
      'lr',
      'warmup',
      'tMax',
    ]),
  ],
};

const optimizer = new optim.SGD(withGradient());
const saved = optimizer.stateDict();
const optimizerMethods: readonly MethodRow[] = [
  {
    name: 'SGD.loadStateDict',
    told: 'SGD.loadStateDict',
    call: (state) => optimizer.loadStateDict(state as typeof saved),
    places: [
      options(
        {
          step: meaning(() => saved.step, 'number'),
          steps: meaning(() => saved.steps),
          tensors: meaning(() => saved.tensors, 'emptyObject'),
        },
        ['step', 'steps', 'tensors'],
      ),
    ],
  },
  {
    name: 'SGD.lr',
    told: 'SGD',
    call: (lr) => void (new optim.SGD(withGradient()).lr = lr as number),
    places: [rate],
  },
  { name: 'SGD.step', told: 'SGD', call: () => optimizer.step(), places: [] },
  { name: 'SGD.zeroGrad', told: 'SGD', call: () => optimizer.zeroGrad(), places: [] },
];

/** Trees may hold anything beside tensors, but are trees. */
const tree = meaning(
  () => [ones([2])],
  'tensors',
  'tensor',
  'bool',
  'integers',
  'disposed',
  'emptyList',
  'emptyObject',
  'holes',
  'texts',
  'object',
  'bare',
);
const functionalMethods: readonly MethodRow[] = optimizerSettings
  .map(([, name]) => name)
  .flatMap((name) => {
    const make = (optim as unknown as Readonly<Record<string, () => optim.FunctionalOptimizer>>)[name]!;
    const at = make();
    const state = at.init([ones([2])]);
    const own = like(tree, () => [ones([2])]);
    return [
      {
        name: `${name}().init`,
        told: name,
        call: (...given) => at.init(given[0]),
        places: [tree],
      },
      {
        name: `${name}().update`,
        told: name,
        call: (...given) => (at.update as (...args: readonly unknown[]) => unknown)(...given),
        places: [own, meaning(() => [ones([2])]), meaning(() => state), options({ lr: rateOperand })],
      },
    ] satisfies MethodRow[];
  });

const step = like(notNegative, () => 3);
const steps: Meaning = {
  ...step,
  accepts: new Set([...step.accepts].filter((name) => name !== 'infinity')),
};
const schedules: Readonly<Record<string, optim.Schedule>> = {
  constantLr: optim.constantLr({ lr: 1 }),
  cosineAnnealingLr: optim.cosineAnnealingLr({ lr: 1, tMax: 4 }),
  cosineAnnealingWarmRestarts: optim.cosineAnnealingWarmRestarts({ lr: 1, t0: 2 }),
  exponentialLr: optim.exponentialLr({ lr: 1, gamma: 0.9 }),
  lambdaLr: optim.lambdaLr({ lr: 1, factor: () => 1 }),
  linearLr: optim.linearLr({ lr: 1 }),
  multiStepLr: optim.multiStepLr({ lr: 1, milestones: [2] }),
  oneCycleLr: optim.oneCycleLr({ maxLr: 1, totalSteps: 4 }),
  polynomialLr: optim.polynomialLr({ lr: 1 }),
  sequentialLr: optim.sequentialLr([optim.constantLr({ lr: 1 })], []),
  stepLr: optim.stepLr({ lr: 1, stepSize: 2 }),
  warmupCosine: optim.warmupCosine({ lr: 1, warmup: 2, tMax: 4 }),
};
const scheduleRows: readonly MethodRow[] = Object.entries(schedules).map(([name, schedule]) => ({
  name: `what ${name} gives`,
  told: name,
  call: (at) => schedule(at as number),
  places: [steps],
}));

export const methodRows: readonly MethodRow[] = [
  ...layerMethods,
  ...optimizerMethods,
  ...functionalMethods,
  ...scheduleRows,
];
