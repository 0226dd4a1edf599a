// Whole models: an optimizer step over many parameters, a perceptron's train step, a transformer
// layer forward and trained.

import * as sn from '../index.ts';
import type { Tensor } from '../index.ts';
import { adam, type OptimizerState } from '../optim/index.ts';
import {
  block,
  decoderLoss,
  initBlock,
  initDecoder,
  type AffineWeights,
  type LayerWeightTree,
  type DecoderParameters,
} from './transformer.ts';
import { workload, type Workload } from './workload.ts';

const optimizer = adam({ lr: 1e-3 });

/**
 * Matrices, vectors and kernels of convolutions in many sizes, as a model of a hundred parameters
 * has them.
 */
function mixedParameters(count: number): Tensor[] {
  return Array.from({ length: count }, (_, i) => {
    const size = 16 * (1 + (i % 7));
    if (i % 3 === 0) return sn.zeros([size, 2 * size]);
    return i % 3 === 1 ? sn.zeros([size]) : sn.zeros([size, 8, 3, 3]);
  });
}

export const adam100: Workload = workload(
  'adam100',
  'one Adam step over 100 parameters of mixed sizes',
  (params: Tensor[], grads: Tensor[], state: OptimizerState) => optimizer.update(params, grads, state),
  () => [mixedParameters(100), mixedParameters(100), optimizer.init(mixedParameters(100))],
);

/** Weights [in, out] and bias of each layer. */
type Perceptron = { readonly hidden: AffineWeights; readonly out: AffineWeights };

function perceptron(x: Tensor, { hidden, out }: Perceptron): Tensor {
  return x.matmul(hidden.weight).add(hidden.bias).relu().matmul(out.weight).add(out.bias);
}

function initPerceptron(): Perceptron {
  return {
    hidden: { weight: sn.zeros([784, 256]), bias: sn.zeros([256]) },
    out: { weight: sn.zeros([256, 10]), bias: sn.zeros([10]) },
  };
}

export const mlpTrainAdam: Workload = workload(
  'mlpTrainAdam',
  'a train step of a perceptron 784-256-10, batch 64, cross-entropy, Adam',
  (params: Perceptron, state: OptimizerState, images: Tensor, labels: Tensor) => {
    const loss = (p: Perceptron): Tensor => sn.crossEntropy(perceptron(images, p), labels);
    const { value, grad } = sn.valueAndGrad(loss)(params);
    return [value, optimizer.update(params, grad, state)];
  },
  () => [
    initPerceptron(),
    optimizer.init(initPerceptron()),
    sn.zeros([64, 784]),
    sn.zeros([64], { dtype: 'i32' }),
  ],
);

/** The loss of one example: an image and its label. */
function exampleLoss(params: Perceptron, image: Tensor, label: Tensor): Tensor {
  return sn.crossEntropy(perceptron(image.unsqueeze(0), params), label.unsqueeze(0));
}

export const vmapPerSampleGrad: Workload = workload(
  'vmapPerSampleGrad',
  'the gradient of each of 64 examples, by vmap, of a perceptron 784-256-10, cross-entropy',
  (params: Perceptron, images: Tensor, labels: Tensor) =>
    sn.vmap(sn.grad(exampleLoss), { inAxes: [null, 0, 0] })(params, images, labels),
  () => [initPerceptron(), sn.zeros([64, 784]), sn.zeros([64], { dtype: 'i32' })],
);

const [width, heads, hidden] = [256, 4, 1024];

/** What enters a layer: batch 4, 128 positions. */
const activations = [4, 128, width];

export const gptBlockForward: Workload = workload(
  'gptBlockForward',
  'a transformer layer, width 256, 4 heads, batch 4, 128 positions, hidden 1024, causal',
  (x: Tensor, p: LayerWeightTree) => block(x, p, heads),
  () => [sn.zeros(activations), initBlock(width, hidden, 1)],
);

export const gptBlockTrain: Workload = workload(
  'gptBlockTrain',
  'a train step of that layer: mean squared error, backward, Adam',
  (params: LayerWeightTree, state: OptimizerState, x: Tensor, target: Tensor) => {
    const loss = (p: LayerWeightTree): Tensor => sn.mseLoss(block(x, p, heads), target);
    const { value, grad } = sn.valueAndGrad(loss)(params);
    return [value, optimizer.update(params, grad, state)];
  },
  () => [
    initBlock(width, hidden, 1),
    optimizer.init(initBlock(width, hidden, 1)),
    sn.zeros(activations),
    sn.zeros(activations),
  ],
);

/** Weights of an LSTM in PyTorch's order: [4H, I], [4H, H], [4H], [4H]. */
type Recurrence = readonly [input: Tensor, state: Tensor, inputBias: Tensor, stateBias: Tensor];

function initRecurrence(): Recurrence {
  return [sn.zeros([512, 64]), sn.zeros([512, 128]), sn.zeros([512]), sn.zeros([512])];
}

export const rnnScan: Workload = workload(
  'rnnScan',
  'an LSTM of 128 steps over [128, 16, 64], 128 wide, forward and gradient',
  (weights: Recurrence, xs: Tensor) =>
    sn.valueAndGrad((own: Recurrence) => {
      const zero = sn.zeros([16, 128]);
      const [, outputs] = sn.scan(
        (state: readonly [Tensor, Tensor], x: Tensor): [readonly [Tensor, Tensor], Tensor] => {
          const next = sn.lstmCell(x, state, ...own);
          return [next, next[0]];
        },
        [zero, zero] as const,
        xs,
      );
      return outputs.square().mean() as Tensor;
    })(weights),
  () => [initRecurrence(), sn.zeros([128, 16, 64])],
);

const deepSizes = { vocabulary: 512, context: 128, width: 128, heads: 4, layers: 12 };

/** A step of the whole model, each layer called through `around`. */
function deepStep(
  around: (fn: typeof block) => typeof block,
): (p: DecoderParameters, tokens: Tensor) => unknown {
  return (params, tokens) =>
    sn.valueAndGrad((p: DecoderParameters) => decoderLoss(p, tokens, tokens, deepSizes.heads, around))(
      params,
    );
}

/** What `checkpointed` is compared with. */
export const unchecked: Workload['fn'] = deepStep((fn) => fn);

export const checkpointed: Workload = workload(
  'checkpointed',
  'a transformer of 12 layers, width 128, batch 8, 128 positions, and its gradient, by checkpointed layers',
  deepStep((fn) => sn.checkpoint(fn)),
  () => [initDecoder(deepSizes), sn.zeros([8, 128], { dtype: 'i32' })],
);
