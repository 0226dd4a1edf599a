// Single operations and short chains, each meant to be one kernel or two: what fusion is for.

import * as sn from '../index.ts';
import type { Tensor } from '../index.ts';
import { workload, type Workload } from './workload.ts';

const square = [1024, 1024];

export const gelu: Workload = workload(
  'gelu',
  'gelu_tanh(2x + 1) · x over 4 Mi elements',
  (x: Tensor) => x.mul(2).add(1).gelu({ approximate: 'tanh' }).mul(x),
  () => [sn.zeros([4 * 1024 * 1024])],
);

export const softmax: Workload = workload(
  'softmax',
  'softmax of rows, [1024, 1024]',
  (x: Tensor) => x.softmax(),
  () => [sn.zeros(square)],
);

export const logSoftmax: Workload = workload(
  'logSoftmax',
  'log-softmax of rows, [1024, 1024]',
  (x: Tensor) => x.logSoftmax(),
  () => [sn.zeros(square)],
);

export const layerNorm: Workload = workload(
  'layerNorm',
  'layer norm with weight and bias, [1024, 1024]',
  (x: Tensor, weight: Tensor, bias: Tensor) => sn.layerNorm(x, 1024, weight, bias),
  () => [sn.zeros(square), sn.zeros([1024]), sn.zeros([1024])],
);

export const rmsNorm: Workload = workload(
  'rmsNorm',
  'RMS norm with weight, [1024, 1024]',
  (x: Tensor, weight: Tensor) => sn.rmsNorm(x, 1024, weight),
  () => [sn.zeros(square), sn.zeros([1024])],
);

export const crossEntropyGrad: Workload = workload(
  'crossEntropyGrad',
  'mean cross-entropy of 1024 classes and its gradient, batch 1024',
  sn.valueAndGrad((logits: Tensor, targets: Tensor) => sn.crossEntropy(logits, targets)),
  () => [sn.zeros(square), sn.zeros([1024], { dtype: 'i32' })],
);

export const lmHeadLoss: Workload = workload(
  'lmHeadLoss',
  'mean cross-entropy of 512 tokens over 32768 words, from 768 features each, without logits in memory',
  (hidden: Tensor, words: Tensor, targets: Tensor) =>
    sn.crossEntropy(hidden.matmul(words.transpose(0, 1)), targets),
  () => [sn.zeros([512, 768]), sn.zeros([32_768, 768]), sn.zeros([512], { dtype: 'i32' })],
);

export const matmulBiasGelu: Workload = workload(
  'matmulBiasGelu',
  'gelu(x · w + b), 512 × 512 × 512',
  (x: Tensor, weight: Tensor, bias: Tensor) => x.matmul(weight).add(bias).gelu(),
  () => [sn.zeros([512, 512]), sn.zeros([512, 512]), sn.zeros([512])],
);

export const convBiasRelu: Workload = workload(
  'convBiasRelu',
  'relu of a 3×3 convolution with bias, [1, 32, 56, 56] to 64 channels',
  (x: Tensor, weight: Tensor, bias: Tensor) => sn.conv2d(x, weight, bias, { padding: 1 }).relu(),
  () => [sn.zeros([1, 32, 56, 56]), sn.zeros([64, 32, 3, 3]), sn.zeros([64])],
);

export const normMatmul: Workload = workload(
  'normMatmul',
  'layer norm, then a matrix product, [512, 256] · [256, 1024]',
  (x: Tensor, weight: Tensor, bias: Tensor, matrix: Tensor) =>
    sn.layerNorm(x, 256, weight, bias).matmul(matrix),
  () => [sn.zeros([512, 256]), sn.zeros([256]), sn.zeros([256]), sn.zeros([256, 1024])],
);

export const attention: Workload = workload(
  'attention',
  'causal attention, batch 4, 4 heads, 128 positions, 64 features',
  (q: Tensor, k: Tensor, v: Tensor) => sn.scaledDotProductAttention(q, k, v, { isCausal: true }),
  () => [sn.zeros([4, 4, 128, 64]), sn.zeros([4, 4, 128, 64]), sn.zeros([4, 4, 128, 64])],
);

export const bigSum: Workload = workload(
  'bigSum',
  'the sum of 16 Mi elements',
  (x: Tensor) => x.sum(),
  () => [sn.zeros([2 ** 24])],
);

export const cumsum: Workload = workload(
  'cumsum',
  'the running sum of 1 Mi elements',
  (x: Tensor) => x.cumsum(0),
  () => [sn.zeros([2 ** 20])],
);

export const lstmStep: Workload = workload(
  'lstmStep',
  'one step of an LSTM, 256 inputs to 256 features, batch 64',
  (x: Tensor, hidden: Tensor, cell: Tensor, w: Tensor, u: Tensor, c: Tensor, d: Tensor) =>
    sn.lstmCell(x, [hidden, cell], w, u, c, d),
  () =>
    [
      ...[256, 256, 256].map((width) => sn.zeros([64, width])),
      ...[256, 256].map((width) => sn.zeros([1024, width])),
      ...[1024, 1024].map((width) => sn.zeros([width])),
    ] as [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor],
);

export const fft1d: Workload = workload(
  'fft1d',
  'windowed orthonormal Fourier transforms of 4096 complex points, 64 lines',
  (x: Tensor, window: Tensor) => sn.fft.fft(x.mul(window), { norm: 'ortho' }),
  () => [sn.zeros([64, 4096], { dtype: 'c64' }), sn.zeros([4096])],
);

export const choleskySolve: Workload = workload(
  'choleskySolve',
  '64 systems of 32 equations for 4 right-hand sides, by their Cholesky factorization',
  (a: Tensor, b: Tensor) => sn.choleskySolve(b, sn.cholesky(a)),
  () => [sn.zeros([64, 32, 32]), sn.zeros([64, 32, 4])],
);

export const topkRouting: Workload = workload(
  'topkRouting',
  'routing of a mixture of experts: 512 tokens of 256 features, gates of the best 2 of 8 experts',
  (x: Tensor, router: Tensor) => {
    const [scores, experts] = sn.topk(x.matmul(router), 2);
    return [sn.scatter(sn.zeros([512, 8]), 1, experts, scores.softmax()), experts];
  },
  () => [sn.zeros([512, 256]), sn.zeros([256, 8])],
);
