// Reductions, scans, softmax, norms, statistics, sorting, masked operations.

import { alike, type Family } from '../row.ts';

const x = 'sn.tensor([[1, -2, 3], [0.5, 4, -1]])';
const mask = "sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' })";
const p = 'sn.tensor([[1, 2, 3], [4, 5, 6]])';

export const reductions: Family = {
  name: 'reductions',
  title: 'Reductions and scans',
  about:
    'Axes are a number, a list or nothing for all; negative ones count from the end. They go, or stay with size 1 by `keepdim`. f16 and ' +
    'bf16 are summed in f32 and rounded once. Sums and products of integers, running ones too, are i32 where the integers (or bool) have fewer ' +
    'bits, and else keep their dtype, unless `dtype` says otherwise. Means of integers that keep their dtype (`avgPool1d`, `scatterReduce`) are ' +
    'folded in as many bits as they take. Products of matrices and writes at indices keep the dtype, and wrap.',
  inputs: {
    x,
    y: p,
    mask,
    v: 'sn.tensor([1, 2, 4, 3])',
    whole: "sn.tensor([[1, 2], [3, 4]], { dtype: 'i32' })",
  },
  rows: {
    ...alike('sum prod amax amin max min any all countNonzero logsumexp mean', (name) => `sn.${name}(x, 1)`),
    ...alike('std varMean stdMean', (name) => `sn.${name}(x, 1)`),
    var: 'x.var(1)',
    'sum/i64': "sn.sum(whole, 1, { dtype: 'i64' })",
    'mean/f32': "sn.mean(x, 1, { dtype: 'f32' })",
    ...alike('argmax argmin maxWithIndices minWithIndices aminmax', (name) => `sn.${name}(x, 1)`),
    hasInfNan: { call: 'sn.hasInfNan(x)', eager: 'it gives a promise of a boolean' },
    sumToSize: 'sn.sumToSize(x, [1, 3])',
    norm: 'sn.norm(x, 2, 1)',
    renorm: 'sn.renorm(x, 2, 0, 1)',
    ...alike('cumsum cumprod cummax cummin logcumsumexp', (name) => `sn.${name}(x, 1)`),
    diff: 'sn.diff(v)',
    gradient: 'sn.gradient(v)',
    trapezoid: 'sn.trapezoid(v)',
    cumulativeTrapezoid: 'sn.cumulativeTrapezoid(v)',
  },
};

export const softmaxes: Family = {
  name: 'norms',
  title: 'Softmax and norms',
  about:
    'Statistics are computed in f32 for f16 and bf16, which are rounded once. Weights and biases are one number for each channel, which ' +
    'is axis 1, or for each element of the trailing axes.',
  inputs: {
    x,
    image: 'sn.linspace(0, 1.75, 8).reshape([1, 4, 1, 2])',
    w: 'sn.tensor([1, 2, 3, 4])',
    b: 'sn.tensor([0.5, 0, 0, 1])',
    scale: 'sn.tensor([1, 2, 3])',
    mean: 'sn.tensor([0.5, 1, 1, 2])',
    variance: 'sn.tensor([1, 2, 1, 4])',
  },
  rows: {
    ...alike('softmax logSoftmax softmin', (name) => `sn.${name}(x, 1)`),
    softmax2d: 'sn.softmax2d(image)',
    layerNorm: 'sn.layerNorm(x, 3, scale)',
    rmsNorm: 'sn.rmsNorm(x, 3, scale)',
    groupNorm: 'sn.groupNorm(image, 2, w, b)',
    instanceNorm: 'sn.instanceNorm(image, w, b)',
    batchNorm: 'sn.batchNorm(image, mean, variance, w, b)',
    'batchNorm/training': 'sn.batchNorm(image, undefined, undefined, w, b, { training: true })',
    batchNormUpdate: 'sn.batchNormUpdate([mean, variance], [w, b], 2)',
    localResponseNorm: 'sn.localResponseNorm(image, 3)',
    normalize: 'sn.normalize(x)',
  },
};

export const statistics: Family = {
  name: 'statistics',
  title: 'Statistics, sorting and search',
  about:
    'Positions are i32. Sorting is stable, NaN counts as the greatest, and of equal elements the first is found. What the data decides ' +
    'the size of is a promise, or takes `size`.',
  inputs: {
    x: 'sn.tensor([[3, 1, 2], [1, 5, 1]])',
    n: "sn.tensor([1, 3, 1, 0], { dtype: 'i32' })",
    v: 'sn.tensor([3, 1, 1, 2, 2])',
    gap: 'sn.tensor([[1, NaN, 3], [0.5, 4, NaN]])',
    sorted: 'sn.tensor([1, 2, 4])',
    q: 'sn.tensor([0.25, 0.5])',
    points: 'sn.tensor([[1, 1], [2, 3], [3, 1]])',
  },
  rows: {
    ...alike('sort argsort', (name) => `sn.${name}(x, 1)`),
    msort: 'sn.msort(x)',
    topk: 'sn.topk(x, 2, 1)',
    kthvalue: 'sn.kthvalue(x, 2, 1)',
    ...alike('median medianWithIndices mode', (name) => `sn.${name}(x, 1)`),
    ...alike('nanmedian nanmedianWithIndices nansum nanmean', (name) => `sn.${name}(gap, 1)`),
    quantile: { call: 'sn.quantile(x, q, 1)' },
    nanquantile: { call: 'sn.nanquantile(gap, q, 1)' },
    searchsorted: 'sn.searchsorted(sorted, x)',
    bucketize: 'sn.bucketize(x, sorted)',
    unique: {
      call: 'sn.unique(v, { returnCounts: true })',
      sized: 'sn.unique(v, { returnCounts: true, size: 3 })',
    },
    uniqueConsecutive: { call: 'sn.uniqueConsecutive(v)', sized: 'sn.uniqueConsecutive(v, { size: 3 })' },
    histc: { call: 'sn.histc(x, { bins: 4, min: 0, max: 4 })' },
    histogram: 'sn.histogram(x, 2, { range: [0, 4] })',
    histogramdd: 'sn.histogramdd(points, [2, 2], { range: [[0, 4], [0, 4]] })',
    bincount: { call: 'sn.bincount(n)', sized: 'sn.bincount(n, { size: 4 })' },
    cov: 'sn.cov(x)',
    corrcoef: 'sn.corrcoef(x)',
  },
};

export const maskedOperations: Family = {
  name: 'masked',
  title: 'Masked operations',
  about: 'As the operations of the same name, over the elements where `mask` is true; without one over all.',
  inputs: { x, y: p, mask },
  rows: {
    ...Object.fromEntries(
      'sum prod amax amin mean logsumexp argmax argmin var std median'
        .split(' ')
        .map((name) => [`masked.${name}`, `sn.masked.${name}(x, 1, { mask })`]),
    ),
    ...Object.fromEntries(
      'softmax logSoftmax softmin cumsum cumprod'
        .split(' ')
        .map((name) => [`masked.${name}`, `sn.masked.${name}(x, 1, { mask })`]),
    ),
    'masked.norm': 'sn.masked.norm(x, 2, 1, { mask })',
    'masked.normalize': 'sn.masked.normalize(x, 2, 1, { mask })',
    'masked.logaddexp': 'sn.masked.logaddexp(x, y, { inputMask: mask, otherMask: mask })',
    maskedMax: 'sn.maskedMax(x, mask, 1)',
    maskedMin: 'sn.maskedMin(x, mask, 1)',
  },
};
