// Training of convolutions: one with both its gradients, and a step of a small residual network (He
// et al., 2016). Sizes and functions; the first is counted as it is (all.ts), both are timed with data
// (timed/networks.ts).

import * as sn from '../index.ts';
import type { Tensor } from '../index.ts';
import { sgd, type OptimizerState } from '../optim/index.ts';
import { workload, type Workload } from './workload.ts';

/** Of `convTrain`. */
export const planes = { batch: 8, channels: 64, size: 56, window: 3 } as const;

/** [batch, channels, size, size] and [channels, channels, window, window]. */
export const planesShapes: readonly (readonly number[])[] = [
  [planes.batch, planes.channels, planes.size, planes.size],
  [planes.channels, planes.channels, planes.window, planes.window],
];

/** A convolution that keeps its size, and both gradients where the result is its own cotangent. */
export function convolved(
  x: Tensor,
  weight: Tensor,
): readonly [result: Tensor, byInput: Tensor, byWeight: Tensor] {
  const { value, vjp } = sn.vjp(
    (a: Tensor, b: Tensor) => sn.conv2d(a, b, undefined, { padding: (planes.window - 1) / 2 }),
    x,
    weight,
  );
  return [value, ...vjp(value)];
}

export const convTrain: Workload = workload(
  'convTrain',
  'a convolution 3×3, [8, 64, 56, 56] to 64 channels, with both gradients',
  convolved,
  () => planesShapes.map((shape) => sn.zeros(shape)) as [Tensor, Tensor],
);

/** Of `resnetTrain`: its three stages have a block each, and twice the channels at half the size. */
export const residual = { batch: 64, size: 28, channels: [16, 32, 64], classes: 10, rate: 0.05 } as const;

/** A convolution that keeps its size or halves it, and the norm behind it. */
export type ConvNorm = { readonly kernel: Tensor; readonly gain: Tensor; readonly shift: Tensor };

/** Means and variances of a norm's batches. */
export type NormStatistics = readonly [mean: Tensor, variance: Tensor];

/** Its convolutions in the order of `convolutionShapes`, and the layer behind them. */
export type Residual = {
  readonly convolutions: readonly ConvNorm[];
  readonly weight: Tensor;
  readonly bias: Tensor;
};

/**
 * Weights in the order in which they are used: the first layer, and of each block the two
 * convolutions, then the one beside them where the size changes.
 */
export const convolutionShapes: readonly (readonly number[])[] = residual.channels.reduce<number[][]>(
  (shapes, channels, stage) => {
    const from = shapes.at(-1)![0]!;
    const block = [
      [channels, from, 3, 3],
      [channels, channels, 3, 3],
    ];
    return [...shapes, ...block, ...(stage === 0 ? [] : [[channels, from, 1, 1]])];
  },
  [[residual.channels[0], 1, 3, 3]],
);

type Trained = readonly [
  loss: Tensor,
  params: Residual,
  running: readonly NormStatistics[],
  state: OptimizerState,
];

const optimizer = sgd({ lr: residual.rate });

/** What the optimizer of `residualStep` begins with. */
export function initOptimizer(params: Residual): OptimizerState {
  return optimizer.init(params);
}

/** One step of training by the cross-entropy of `labels`. */
export function residualStep(
  params: Residual,
  running: readonly NormStatistics[],
  state: OptimizerState,
  images: Tensor,
  labels: Tensor,
): Trained {
  const loss = (p: Residual): [Tensor, readonly NormStatistics[]] => {
    const seen: NormStatistics[] = [];
    const norm = (x: Tensor, stride = 1): Tensor => {
      const { kernel, gain, shift } = p.convolutions[seen.length]!;
      const y = sn.conv2d(x, kernel, undefined, { stride, padding: (kernel.shape[2]! - 1) / 2 });
      const [out, ...batch] = sn.batchNorm(y, undefined, undefined, gain, shift, { training: true });
      seen.push(sn.batchNormUpdate(running[seen.length]!, batch, y.size / y.shape[1]!));
      return out;
    };
    let x = norm(images).relu();
    for (const stage of residual.channels.keys()) {
      const stride = stage === 0 ? 1 : 2;
      const inner = norm(norm(x, stride).relu());
      x = inner.add(stage === 0 ? x : norm(x, stride)).relu();
    }
    const logits = x.mean([2, 3]).matmul(p.weight).add(p.bias);
    return [sn.crossEntropy(logits, labels), seen];
  };
  const { value, grad, aux } = sn.valueAndGrad(loss, { hasAux: true })(params);
  const [next, nextState] = optimizer.update(params, grad, state);
  return [value, next, aux, nextState];
}

/** Images, and where the network begins: ones, zeros, and weights by `kernel` of their number and shape. */
export function initResidual(
  kernel: (shape: readonly number[], number: number) => Tensor,
): [Residual, readonly NormStatistics[], OptimizerState] {
  const { channels, classes } = residual;
  const convolutions = convolutionShapes.map((shape, i) => {
    const width = [shape[0]!];
    return { kernel: kernel(shape, i), gain: sn.ones(width), shift: sn.zeros(width) };
  });
  const head = kernel([channels.at(-1)!, classes], convolutions.length);
  const params = { convolutions, weight: head, bias: sn.zeros([classes]) };
  const running = convolutionShapes.map(([width]): NormStatistics => [sn.zeros([width!]), sn.ones([width!])]);
  return [params, running, initOptimizer(params)];
}

export const resnetTrain: Workload = workload(
  'resnetTrain',
  'a train step of ResNet-8 on 28×28, batch 64, batch norms, cross-entropy, SGD',
  residualStep,
  (): [Residual, readonly NormStatistics[], OptimizerState, Tensor, Tensor] => [
    ...initResidual((shape) => sn.zeros(shape)),
    sn.zeros([residual.batch, 1, residual.size, residual.size]),
    sn.zeros([residual.batch], { dtype: 'i32' }),
  ],
);
