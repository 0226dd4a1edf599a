// Instance norms (Ulyanov et al., 2016): each channel of each sample is standardised over its places.

import type { DType } from '../../ir/dtype.ts';
import type { Weighed } from '../../tensor/inferred.ts';
import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';
import { expectTensor } from '../../tensor/expect.ts';
import { show } from '../../tensor/ops/operand.ts';
import { batchNorm, instanceNorm } from '../../tensor/ops/reduce/norm.ts';
import { mean, varMean } from '../../tensor/ops/reduce/reduce.ts';
import { squeeze, unsqueeze } from '../../tensor/ops/shape/view.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { initOptions, type InitOptions } from '../init.ts';
import { RunningNorm } from '../norm.ts';

export interface InstanceNormLayerOptions extends InitOptions {
  /** Added to the variance under the root; 1e-5 by default. */
  readonly eps?: number;
  /** Whether there are a scale and a shift; false by default. */
  readonly affine?: boolean;
  /** How much a batch counts in the running statistics; 0.1 by default. */
  readonly momentum?: number;
  /** Whether there are running statistics, used outside of training; false by default. */
  readonly trackRunningStats?: boolean;
}

const takesInstanceNorm = arg.takes<typeof InstanceNorm1d>(
  ['the number of channels', arg.count(1)],
  [
    'options',
    arg.options<InstanceNormLayerOptions>({
      ...initOptions,
      eps: arg.number,
      affine: arg.flag,
      momentum: arg.number,
      trackRunningStats: arg.flag,
    }),
  ],
);

abstract class InstanceNorm extends RunningNorm {
  readonly channels: number;
  readonly spatial: number;

  protected constructor(name: string, spatial: number, channels: number, options: InstanceNormLayerOptions) {
    takesInstanceNorm(name, channels, options);
    super(channels, { affine: false, trackRunningStats: false, ...options });
    this.channels = channels;
    this.spatial = spatial;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
    const { spatial, channels } = this;
    expectTensor('instanceNorm', 'x', x);
    if (x.rank !== spatial + 1 && x.rank !== spatial + 2) {
      const problem = `expects rank ${spatial + 2} (or ${spatial + 1}): ${show(x)}`;
      throw new TensorError('E_SHAPE', 'instanceNorm', problem);
    }
    if (x.shape.at(-spatial - 1) !== channels)
      throw new TensorError('E_SHAPE', 'instanceNorm', `expects ${channels} channels: ${show(x)}`);
    return x.rank === spatial + 1 ? squeeze(this.normed(unsqueeze(x, 0)), 0) : this.normed(x);
  }

  private normed(x: Tensor): Tensor {
    const { weight, bias, runningMean, runningVar, eps, training } = this;
    if (!training && runningMean !== undefined)
      return batchNorm(x, runningMean, runningVar, weight, bias, { eps })[0];
    const places = x.shape.map((_, axis) => axis).slice(2);
    const count = places.reduce((size, axis) => size * x.shape[axis]!, 1);
    this.follow(count, () => {
      const [variance, centre] = varMean(x, places, { correction: 0 });
      return [mean(centre, 0), mean(variance, 0)];
    });
    return instanceNorm(x, weight, bias, { eps });
  }
}

/** Standardises each channel of each sample of [N, C, L] (or without N). */
export class InstanceNorm1d extends InstanceNorm {
  constructor(channels: number, options: InstanceNormLayerOptions = {}) {
    super('InstanceNorm1d', 1, channels, options);
  }
}

/** Standardises each channel of each sample of [N, C, H, W] (or without N). */
export class InstanceNorm2d extends InstanceNorm {
  constructor(channels: number, options: InstanceNormLayerOptions = {}) {
    super('InstanceNorm2d', 2, channels, options);
  }
}

/** Standardises each channel of each sample of [N, C, D, H, W] (or without N). */
export class InstanceNorm3d extends InstanceNorm {
  constructor(channels: number, options: InstanceNormLayerOptions = {}) {
    super('InstanceNorm3d', 3, channels, options);
  }
}
