// The timed workloads of training convolutions (../networks.ts), with data from seeds. What the losses
// of the residual network must be are PyTorch's in float64 (bench/train-torch.py --losses).

import * as sn from '../../index.ts';
import type { Tensor } from '../../index.ts';
import {
  convTrain,
  convolved,
  initResidual,
  planes,
  planesShapes,
  residual,
  residualStep,
  resnetTrain,
} from '../networks.ts';
import type { Workload } from '../workload.ts';
import { uniform, uniformSource } from './inputs.ts';
import { sampled, type Reference } from './references.ts';
import type { TimedWorkload } from './workload.ts';

/** A counted workload with data. */
function timed(
  counted: Workload,
  args: () => readonly unknown[],
  rest: Pick<TimedWorkload, 'start' | 'reference' | 'tolerance'>,
): TimedWorkload {
  return { ...counted, args, ...rest };
}

function planesData(): [x: Float32Array, weight: Float32Array] {
  const [x, weight] = planesShapes.map((shape) => shape.reduce((a, b) => a * b)) as [number, number];
  return [uniform(x, 60), uniform(weight, 61, -0.1, 0.1)];
}

/** Gradients by the weights of two filters, at a few places: each is a sum over all positions. */
function weightGradients(): Reference {
  const { batch, channels, size, window } = planes;
  const [x, weight] = planesData();
  const reach = (window - 1) / 2;
  const pixel = (n: number, c: number, y: number, z: number): number =>
    y < 0 || y >= size || z < 0 || z >= size ? 0 : x[((n * channels + c) * size + y) * size + z]!;
  const filters = [3, 42].map((filter) => {
    const result = new Float64Array(batch * size * size);
    for (let n = 0; n < batch; n++)
      for (let c = 0; c < channels; c++)
        for (let tap = 0; tap < window * window; tap++) {
          const [i, j] = [Math.floor(tap / window) - reach, (tap % window) - reach];
          const factor = weight[(filter * channels + c) * window * window + tap]!;
          for (let at = 0; at < size * size; at++)
            result[n * size * size + at]! += factor * pixel(n, c, Math.floor(at / size) + i, (at % size) + j);
        }
    return { filter, result };
  });
  const each = channels * window * window;
  return filters.flatMap(({ filter, result }) =>
    sampled(each, 40, (place) => {
      const [c, tap] = [Math.floor(place / window ** 2), place % window ** 2];
      const [i, j] = [Math.floor(tap / window) - reach, (tap % window) - reach];
      return result.reduce((sum, value, at) => {
        const [n, inPlane] = [Math.floor(at / size ** 2), at % size ** 2];
        return sum + value * pixel(n, c, Math.floor(inPlane / size) + i, (inPlane % size) + j);
      }, 0);
    }).map(([place, value]) => [filter * each + place, value] as const),
  );
}

/** Its result is the gradient by the weights, which follows from the result of the convolution. */
export const convTrainTimed: TimedWorkload = timed(
  convTrain,
  () => planesData().map((data, i) => sn.tensor(data, { shape: planesShapes[i]! })),
  {
    start: (args) => {
      const compiled = sn.compile(convolved);
      return () => {
        const [result, byInput, byWeight] = compiled(...(args as [Tensor, Tensor]));
        result.dispose();
        byInput.dispose();
        return byWeight;
      };
    },
    reference: weightGradients,
    tolerance: 1e-4,
  },
);

/** Weights by the number of their layer, within the bound that keeps the variance of what passes. */
function kernelData(shape: readonly number[], number: number): Tensor {
  const size = shape.reduce((a, b) => a * b);
  const inputs = shape.length === 2 ? shape[0]! : size / shape[0]!;
  const bound = Math.sqrt((shape.length === 2 ? 1 : 6) / inputs);
  return sn.tensor(uniform(size, 70 + number, -bound, bound), { shape });
}

/** Of the first three steps. */
const losses: readonly number[] = [2.354505093930807, 2.3284183317336264, 2.306745334322344];

export const resnetTrainTimed: TimedWorkload = timed(
  resnetTrain,
  () => {
    const { batch, size, classes } = residual;
    const next = uniformSource(62);
    const labels = Int32Array.from({ length: batch }, () => Math.floor(next() * classes));
    const images = sn.tensor(uniform(batch * size * size, 63), { shape: [batch, 1, size, size] });
    return [...initResidual(kernelData), images, sn.tensor(labels)];
  },
  {
    start: (args) => {
      let [params, running, state, images, labels] = args as Parameters<typeof residualStep>;
      const compiled = sn.compile(residualStep, { donate: [0, 1, 2] });
      return () => {
        const [loss, ...next] = compiled(params, running, state, images, labels);
        [params, running, state] = next;
        return loss;
      };
    },
    reference: () => losses.map((loss, i) => [i, loss] as const),
    tolerance: 1e-4,
  },
);
