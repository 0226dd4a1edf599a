// Single operations and short chains, each meant to be one kernel or two: what fusion is for.

import { gelu as geluOf, relu } from '../tensor/ops/activation.ts';
import { scaledDotProductAttention } from '../tensor/ops/attention.ts';
import { conv2d } from '../tensor/ops/conv.ts';
import { zeros } from '../tensor/ops/creation.ts';
import { add, mul } from '../tensor/ops/elementwise.ts';
import { crossEntropy } from '../tensor/ops/loss.ts';
import { matmul } from '../tensor/ops/matmul.ts';
import { layerNorm as layerNormOf, rmsNorm as rmsNormOf } from '../tensor/ops/norm.ts';
import { sum } from '../tensor/ops/reduce.ts';
import { cumsum as cumsumOf } from '../tensor/ops/scan.ts';
import { logSoftmax as logSoftmaxOf, softmax as softmaxOf } from '../tensor/ops/softmax.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { valueAndGrad } from '../tensor/transform.ts';
import { workload, type Workload } from './workload.ts';

const square = [1024, 1024];

export const gelu: Workload = workload(
  'gelu',
  'gelu_tanh(2x + 1) · x over 4 Mi elements',
  (x: Tensor) => mul(geluOf(add(mul(x, 2), 1), { approximate: 'tanh' }), x),
  () => [zeros([4 * 1024 * 1024])],
);

export const softmax: Workload = workload(
  'softmax',
  'softmax of rows, [1024, 1024]',
  (x: Tensor) => softmaxOf(x),
  () => [zeros(square)],
);

export const logSoftmax: Workload = workload(
  'logSoftmax',
  'log-softmax of rows, [1024, 1024]',
  (x: Tensor) => logSoftmaxOf(x),
  () => [zeros(square)],
);

export const layerNorm: Workload = workload(
  'layerNorm',
  'layer norm with weight and bias, [1024, 1024]',
  (x: Tensor, weight: Tensor, bias: Tensor) => layerNormOf(x, 1024, weight, bias),
  () => [zeros(square), zeros([1024]), zeros([1024])],
);

export const rmsNorm: Workload = workload(
  'rmsNorm',
  'RMS norm with weight, [1024, 1024]',
  (x: Tensor, weight: Tensor) => rmsNormOf(x, 1024, weight),
  () => [zeros(square), zeros([1024])],
);

export const crossEntropyGrad: Workload = workload(
  'crossEntropyGrad',
  'mean cross-entropy of 1024 classes and its gradient, batch 1024',
  valueAndGrad((logits: Tensor, targets: Tensor) => crossEntropy(logits, targets)),
  () => [zeros(square), zeros([1024], { dtype: 'i32' })],
);

export const matmulBiasGelu: Workload = workload(
  'matmulBiasGelu',
  'gelu(x · w + b), 512 × 512 × 512',
  (x: Tensor, weight: Tensor, bias: Tensor) => geluOf(add(matmul(x, weight), bias)),
  () => [zeros([512, 512]), zeros([512, 512]), zeros([512])],
);

export const convBiasRelu: Workload = workload(
  'convBiasRelu',
  'relu of a 3×3 convolution with bias, [1, 32, 56, 56] to 64 channels',
  (x: Tensor, weight: Tensor, bias: Tensor) => relu(conv2d(x, weight, bias, { padding: 1 })),
  () => [zeros([1, 32, 56, 56]), zeros([64, 32, 3, 3]), zeros([64])],
);

export const normMatmul: Workload = workload(
  'normMatmul',
  'layer norm, then a matrix product, [512, 256] · [256, 1024]',
  (x: Tensor, weight: Tensor, bias: Tensor, matrix: Tensor) =>
    matmul(layerNormOf(x, 256, weight, bias), matrix),
  () => [zeros([512, 256]), zeros([256]), zeros([256]), zeros([256, 1024])],
);

export const attention: Workload = workload(
  'attention',
  'causal attention, batch 4, 4 heads, 128 positions, 64 features',
  (q: Tensor, k: Tensor, v: Tensor) => scaledDotProductAttention(q, k, v, { isCausal: true }),
  () => [zeros([4, 4, 128, 64]), zeros([4, 4, 128, 64]), zeros([4, 4, 128, 64])],
);

export const bigSum: Workload = workload(
  'bigSum',
  'the sum of 16 Mi elements',
  (x: Tensor) => sum(x),
  () => [zeros([2 ** 24])],
);

export const cumsum: Workload = workload(
  'cumsum',
  'the running sum of 1 Mi elements',
  (x: Tensor) => cumsumOf(x, 0),
  () => [zeros([2 ** 20])],
);
