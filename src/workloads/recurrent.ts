// Training of a recurrent layer: one step over a batch of sequences. Counted as it is (all.ts), and timed
// with data (timed/recurrent.ts).

import * as sn from '../index.ts';
import type { Tensor } from '../index.ts';
import { loadStateDict, LSTM } from '../nn/index.ts';
import { sgd, type OptimizerState } from '../optim/index.ts';
import { workload, type Workload } from './workload.ts';

/** Of `lstmTrain`. */
export const sequences = { steps: 128, batch: 32, width: 128, rate: 100 } as const;

/** [steps, batch, width]: of the inputs, and of what the outputs should be. */
export const sequencesShape: readonly number[] = [sequences.steps, sequences.batch, sequences.width];

/** The weights by their names in PyTorch, in the order in which `initRecurrent` asks for them. */
export const recurrentShapes: readonly (readonly [name: string, shape: readonly number[]])[] = [
  ['weight_ih_l0', [4 * sequences.width, sequences.width]],
  ['weight_hh_l0', [4 * sequences.width, sequences.width]],
  ['bias_ih_l0', [4 * sequences.width]],
  ['bias_hh_l0', [4 * sequences.width]],
];

const optimizer = sgd({ lr: sequences.rate });

/** One step of training by the mean squared difference from the targets. */
export function recurrentStep(
  layer: LSTM,
  state: OptimizerState,
  x: Tensor,
  target: Tensor,
): readonly [loss: Tensor, layer: LSTM, state: OptimizerState] {
  const loss = (own: LSTM): Tensor => sn.mseLoss(own.forward(x)[0], target);
  const { value, grad } = sn.valueAndGrad(loss)(layer);
  return [value, ...optimizer.update(layer, grad, state)];
}

/** The layer, with weights by `weight` of their number and shape, and what its optimizer begins with. */
export function initRecurrent(
  weight: (shape: readonly number[], number: number) => Tensor,
): [LSTM, OptimizerState] {
  const layer = new LSTM(sequences.width, sequences.width);
  const weights = recurrentShapes.map(([name, shape], i) => [name, weight(shape, i)] as const);
  loadStateDict(layer, Object.fromEntries(weights));
  return [layer, optimizer.init(layer)];
}

export const lstmTrain: Workload = workload(
  'lstmTrain',
  'a train step of an LSTM of 128 steps, batch 32, 128 wide, mean squared error, SGD',
  recurrentStep,
  (): [LSTM, OptimizerState, Tensor, Tensor] => [
    ...initRecurrent((shape) => sn.zeros(shape)),
    sn.zeros(sequencesShape),
    sn.zeros(sequencesShape),
  ],
);
