// Tensors of constants, ranges, windows and random numbers; distributions.

import { alike, type Family } from '../row.ts';

export const making: Family = {
  name: 'making',
  title: 'Making tensors',
  about:
    'A shape is a list of sizes. The dtype is f32 unless `dtype` names another. Constants take no memory where they are fused.',
  inputs: { x: 'sn.tensor([[1, 2], [3, 4]])' },
  rows: {
    tensor: "sn.tensor([1, 0, 1], { dtype: 'f32' })",
    ...alike('zeros ones empty', (name) => `sn.${name}([3], { dtype: 'f32' })`),
    full: "sn.full([2], 1, { dtype: 'f32' })",
    ...alike('zerosLike onesLike emptyLike', (name) => `sn.${name}(x)`),
    fullLike: 'sn.fullLike(x, 1)',
    ...alike('newZeros newOnes', (name) => `sn.${name}(x, [2])`),
    newFull: 'sn.newFull(x, [2], 1)',
    fill: 'sn.fill(x, 1)',
    arange: "sn.arange(0, 4, 1, { dtype: 'f32' })",
    linspace: "sn.linspace(0, 4, 5, { dtype: 'f32' })",
    logspace: "sn.logspace(0, 2, 3, 2, { dtype: 'f32' })",
    eye: "sn.eye(2, 2, { dtype: 'f32' })",
    ...alike('trilIndices triuIndices', (name) => `sn.${name}(2, 2, { dtype: 'i32' })`),
    vander: 'sn.vander(x.flatten())',
    ...alike(
      'hannWindow hammingWindow blackmanWindow bartlettWindow kaiserWindow',
      (name) => `sn.${name}(4, { dtype: 'f32' })`,
    ),
  },
};

export const random: Family = {
  name: 'making',
  title: 'Random numbers, dropout and distributions',
  about:
    'One generator, Philox 4x32-10: the same seed gives the same numbers on every device, and a call draws when it is recorded. Samples ' +
    'of distributions are shaped by `sample(shape)`; their gradients go through `rsample`.',
  inputs: {
    x: 'sn.tensor([[1, -2, 3], [0.5, 4, -1]])',
    p: 'sn.tensor([0.25, 0.5, 0.75])',
    v: 'sn.tensor([0.5, 1, 2])',
    k: 'sn.tensor([1, 0, 2])',
    image: 'sn.ones([1, 4, 1, 2])',
    line: 'sn.ones([1, 4, 2])',
    volume: 'sn.ones([1, 4, 1, 1, 2])',
  },
  rows: {
    ...alike('rand randn uniform normal', (name) => `sn.${name}([3], { dtype: 'f32' })`),
    randint: "sn.randint(0, 2, [3], { dtype: 'f32' })",
    randperm: 'sn.randperm(4)',
    ...alike('randLike randnLike', (name) => `sn.${name}(x)`),
    bernoulli: 'sn.bernoulli(p)',
    multinomial: 'sn.multinomial(p, 2)',
    ...alike('dropout alphaDropout featureAlphaDropout', (name) => `sn.${name}(x, 0.5)`),
    'dropout/seed': 'sn.dropout(x, 0.5, { seed: 3 })',
    dropout1d: 'sn.dropout1d(line, 0.5)',
    dropout2d: 'sn.dropout2d(image, 0.5)',
    dropout3d: 'sn.dropout3d(volume, 0.5)',
    rrelu: 'sn.rrelu(x, { training: true })',
    gumbelSoftmax: 'sn.gumbelSoftmax(x)',
    ...Object.fromEntries(
      'beta cauchy gumbel laplace logistic logNormal normal'
        .split(' ')
        .map((name) => [`distributions.${name}`, `sn.distributions.${name}(v, 2).logProb(p)`]),
    ),
    'distributions.gamma': 'sn.distributions.gamma(v, 2).logProb(p)',
    'distributions.uniform': 'sn.distributions.uniform(v.neg(), v).logProb(p)',
    'distributions.chi2': 'sn.distributions.chi2(v).logProb(p)',
    'distributions.exponential': 'sn.distributions.exponential(v).logProb(p)',
    'distributions.studentT': 'sn.distributions.studentT(v).logProb(p)',
    'distributions.bernoulli': 'sn.distributions.bernoulli(p).logProb(k.sign())',
    'distributions.categorical': 'sn.distributions.categorical(p).logProb(k)',
    'distributions.geometric': 'sn.distributions.geometric(p).logProb(k)',
    'distributions.poisson': 'sn.distributions.poisson(v).logProb(k)',
  },
};
