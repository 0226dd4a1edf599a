// The timed workload of training a recurrent layer (../recurrent.ts), with data from seeds. What its losses
// must be are PyTorch's in float64 (bench/train-torch.py --losses lstmTrain).

import * as sn from '../../index.ts';
import type { Tensor } from '../../index.ts';
import { initRecurrent, lstmTrain, recurrentStep, sequences, sequencesShape } from '../recurrent.ts';
import { uniform } from './inputs.ts';
import type { TimedWorkload } from './workload.ts';

function seeded(shape: readonly number[], seed: number, bound: number): Tensor {
  const size = shape.reduce((a, b) => a * b);
  return sn.tensor(uniform(size, seed, -bound, bound), { shape });
}

/** Of the first three steps. */
const losses: readonly number[] = [0.3415788906339699, 0.33935702336933754, 0.3379617376009499];

export const lstmTrainTimed: TimedWorkload = {
  ...lstmTrain,
  args: () => {
    const bound = 1 / Math.sqrt(sequences.width);
    return [
      ...initRecurrent((shape, number) => seeded(shape, 92 + number, bound)),
      seeded(sequencesShape, 90, 1),
      seeded(sequencesShape, 91, 1),
    ];
  },
  start: (args) => {
    let [layer, state, x, target] = args as Parameters<typeof recurrentStep>;
    const compiled = sn.compile(recurrentStep, { donate: [0, 1] });
    return () => {
      const [loss, ...next] = compiled(layer, state, x, target);
      [layer, state] = next;
      return loss;
    };
  },
  reference: () => losses.map((loss, i) => [i, loss] as const),
  tolerance: 1e-4,
};
