// A perceptron that trains and predicts, as someone would write it for `sinter build`.

import * as sn from '../../src/index.ts';
import type { Tensor } from '../../src/index.ts';
import { Linear, ReLU, Sequential } from '../../src/nn/index.ts';
import { adam, type OptimizerState } from '../../src/optim/index.ts';

sn.manualSeed(3);
const first = new Sequential(new Linear(20, 16), new ReLU(), new Linear(16, 4));
const optimizer = adam({ lr: 0.01 });

export interface State {
  readonly model: Sequential;
  readonly optimizer: OptimizerState;
}
export const state: State = { model: first, optimizer: optimizer.init(first) };

function loss(model: State['model'], images: Tensor, labels: Tensor): Tensor {
  return sn.crossEntropy(model.forward(images), labels);
}

export function train(
  { model, optimizer: before }: State,
  batch: { readonly images: Tensor; readonly labels: Tensor },
  rate: Tensor,
): { state: State; loss: Tensor } {
  const { value, grad } = sn.valueAndGrad(loss)(model, batch.images, batch.labels);
  const [next, after] = optimizer.update(model, grad, before, { lr: rate });
  return { state: { model: next, optimizer: after }, loss: value };
}

export function predict({ model }: State, images: Tensor): { logits: Tensor; best: Tensor } {
  const logits = model.forward(images);
  return { logits, best: sn.argmax(logits, -1) };
}

/** Random words, and a captured tensor that is no part of the state. */
export const scale: Tensor = sn.tensor([1, 2, 4, 8]);
export function noise(_: State, shift: Tensor): Tensor {
  return sn.randn([4]).mul(scale).add(shift);
}

const images = sn.randn([8, 20]);
const labels = sn.tensor([0, 1, 2, 3, 0, 1, 2, 3], { dtype: 'i32' });
export const inputs: {
  readonly train: readonly [{ readonly images: Tensor; readonly labels: Tensor }, number];
  readonly predict: readonly [Tensor];
  readonly noise: readonly [Tensor];
} = {
  train: [{ images, labels }, 0.01],
  predict: [images],
  noise: [sn.zeros([4])],
};
