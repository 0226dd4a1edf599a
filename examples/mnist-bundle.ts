// The perceptron of mnist-mlp.ts, to be trained where there is no compiler: `npx sinter build examples/mnist-bundle.ts --out bundle`.
// A page calls `train({ images, labels })` with 64 digits at a time, and `predict({ images })` with 100.

import { manualSeed, zeros, type Tensor } from 'sinter';
import { newLearner, type Learner } from './mnist-mlp.ts';

export { predict, train } from './mnist-mlp.ts';

manualSeed(1);
export const state: Learner = newLearner();

export const inputs: Readonly<Record<'train' | 'predict', readonly Tensor[]>> = {
  train: [zeros([64, 784]), zeros([64], { dtype: 'i32' })],
  predict: [zeros([100, 784])],
};
