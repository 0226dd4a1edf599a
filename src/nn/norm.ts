// Normalising layers: a scale of ones and a shift of zeros around the operations of
// tensor/ops/reduce/norm.ts. Norms that differ in their rank alone have one factory.

import type { DType } from '../ir/dtype.ts';
import type { Weighed } from '../tensor/inferred.ts';
import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { expectTensor } from '../tensor/expect.ts';
import { checkRank, show } from '../tensor/ops/operand.ts';
import { ones, tensor, zeros } from '../tensor/ops/creation/creation.ts';
import {
  batchNorm,
  batchNormUpdate,
  groupNorm,
  instanceNorm,
  layerNorm,
  rmsNorm,
} from '../tensor/ops/reduce/norm.ts';
import { mean, varMean } from '../tensor/ops/reduce/reduce.ts';
import { squeeze, unsqueeze } from '../tensor/ops/shape/view.ts';
import { noGrad } from '../tensor/derivative/transform.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { initOptions, typeOf, type InitOptions } from './init.ts';
import { Module } from './module.ts';
import { parameter } from './parameters.ts';

export interface NormLayerOptions extends InitOptions {
  /** Added to the variance under the root; 1e-5 by default. */
  readonly eps?: number;
  /** Whether there are a scale and a shift; true by default. */
  readonly affine?: boolean;
  /** Whether there is a shift beside the scale; true by default. */
  readonly bias?: boolean;
}

const normLayerOptions: arg.Table<NormLayerOptions> = {
  ...initOptions,
  eps: arg.number,
  affine: arg.flag,
  bias: arg.flag,
};

function scale(shape: readonly number[], options: NormLayerOptions): Tensor | undefined {
  return options.affine === false ? undefined : parameter(ones(shape, typeOf(options)));
}

function shift(shape: readonly number[], options: NormLayerOptions): Tensor | undefined {
  const wanted = options.affine !== false && options.bias !== false;
  return wanted ? parameter(zeros(shape, typeOf(options))) : undefined;
}

function listOf(shape: number | readonly number[]): readonly number[] {
  return typeof shape === 'number' ? [shape] : shape;
}

const takesLayerNorm = arg.takes<typeof LayerNorm>(
  ['the shape', arg.sizes(1)],
  ['options', arg.options<NormLayerOptions>(normLayerOptions)],
);

/** Standardises over the trailing axes (Ba et al., 2016). */
export class LayerNorm extends Module {
  weight: Tensor | undefined;
  bias: Tensor | undefined;
  readonly shape: readonly number[];
  readonly eps: number;

  constructor(shape: number | readonly number[], options: NormLayerOptions = {}) {
    takesLayerNorm('LayerNorm', shape, options);
    super();
    this.shape = listOf(shape);
    this.eps = options.eps ?? 1e-5;
    this.weight = scale(this.shape, options);
    this.bias = shift(this.shape, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
    return layerNorm(x, this.shape, this.weight, this.bias, { eps: this.eps });
  }
}

const takesRMSNorm = arg.takes<typeof RMSNorm>(
  ['the shape', arg.sizes(1)],
  [
    'options',
    arg.options<Omit<NormLayerOptions, 'bias'>>({ ...initOptions, eps: arg.number, affine: arg.flag }),
  ],
);

/**
 * Divides by the root mean square over the trailing axes (Zhang and Sennrich, 2019); there is no
 * shift.
 */
export class RMSNorm extends Module {
  weight: Tensor | undefined;
  readonly shape: readonly number[];
  /** By default the distance from 1 to the next larger value of f64 where x is f64, else of f32. */
  readonly eps: number | undefined;

  constructor(shape: number | readonly number[], options: Omit<NormLayerOptions, 'bias'> = {}) {
    takesRMSNorm('RMSNorm', shape, options);
    super();
    this.shape = listOf(shape);
    this.eps = options.eps;
    this.weight = scale(this.shape, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
    return rmsNorm(x, this.shape, this.weight, this.eps === undefined ? {} : { eps: this.eps });
  }
}

const takesGroupNorm = arg.takes<typeof GroupNorm>(
  ['the number of groups', arg.count(1)],
  ['the number of channels', arg.count(1)],
  ['options', arg.options<NormLayerOptions>(normLayerOptions)],
);

/** Standardises each of `groups` runs of channels of a sample [N, C, …] (Wu and He, 2018). */
export class GroupNorm extends Module {
  weight: Tensor | undefined;
  bias: Tensor | undefined;
  readonly groups: number;
  readonly eps: number;

  constructor(groups: number, channels: number, options: NormLayerOptions = {}) {
    takesGroupNorm('GroupNorm', groups, channels, options);
    super();
    this.groups = groups;
    this.eps = options.eps ?? 1e-5;
    this.weight = scale([channels], options);
    this.bias = shift([channels], options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
    return groupNorm(x, this.groups, this.weight, this.bias, { eps: this.eps });
  }
}

export interface BatchNormLayerOptions extends NormLayerOptions {
  /** How much a batch counts in the running statistics; 0.1 by default. */
  readonly momentum?: number;
  /**
   * Whether there are running statistics; true by default. Without, every batch is standardised by
   * its own.
   */
  readonly trackRunningStats?: boolean;
}

const takesBatchNorm = arg.takes<typeof BatchNorm>(
  ['the number of channels', arg.count(1)],
  [
    'options',
    arg.options<BatchNormLayerOptions>({
      ...normLayerOptions,
      momentum: arg.number,
      trackRunningStats: arg.flag,
    }),
  ],
);

/** What norms by statistics of batches share: a scale, a shift, and running statistics. */
abstract class RunningNorm extends Module {
  weight: Tensor | undefined;
  bias: Tensor | undefined;
  runningMean: Tensor | undefined = undefined;
  runningVar: Tensor | undefined = undefined;
  readonly eps: number;
  readonly momentum: number;

  protected constructor(channels: number, options: BatchNormLayerOptions) {
    super();
    this.eps = options.eps ?? 1e-5;
    this.momentum = options.momentum ?? 0.1;
    this.weight = scale([channels], options);
    this.bias = shift([channels], options);
    if (options.trackRunningStats === false) return;
    // Host data rather than constants, so that the first training step has the structure of every
    // other.
    const values = options.dtype === 'f64' ? new Float64Array(channels) : new Float32Array(channels);
    this.runningMean = tensor(values);
    this.runningVar = tensor(values.fill(1));
  }

  override buffers(): readonly string[] {
    return ['runningMean', 'runningVar'];
  }

  /** The running statistics follow those of a batch of `count` elements a channel, where there are any. */
  protected follow(count: number, statistics: () => readonly [mean: Tensor, variance: Tensor]): void {
    const { runningMean, runningVar, momentum } = this;
    if (runningMean === undefined || runningVar === undefined) return;
    noGrad(() => {
      const running = [runningMean, runningVar] as const;
      const next = batchNormUpdate(running, statistics(), count, momentum);
      running.forEach((old, i) => old.assign(next[i]!));
    });
  }
}

/**
 * Standardises each channel of [N, C, …] over the batch (Ioffe and Szegedy, 2015): in training by
 * its own statistics, which running ones follow (the variance unbiased), else by those.
 */
export class BatchNorm extends RunningNorm {
  constructor(channels: number, options: BatchNormLayerOptions = {}) {
    takesBatchNorm('BatchNorm', channels, options);
    super(channels, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
    const { runningMean, runningVar, training } = this;
    const settings = { eps: this.eps, training: training || runningMean === undefined };
    const [y, mean, variance] = batchNorm(x, runningMean, runningVar, this.weight, this.bias, settings);
    if (training) this.follow(x.size / x.shape[1]!, () => [mean, variance]);
    return y;
  }
}

type BatchNormClass = new (channels: number, options?: BatchNormLayerOptions) => BatchNorm;

/** The class of batch norms that take tensors of these ranks alone. */
/* @__NO_SIDE_EFFECTS__ */
function batchNormOf(name: string, ...ranks: readonly number[]): BatchNormClass {
  return class extends BatchNorm {
    constructor(channels: number, options: BatchNormLayerOptions = {}) {
      takesBatchNorm(name, channels, options);
      super(channels, options);
    }

    override forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
      checkRank(name, 'x', x, ...ranks);
      return super.forward(x);
    }
  };
}

const BatchNormOf1: BatchNormClass = batchNormOf('BatchNorm1d', 2, 3);
const BatchNormOf2: BatchNormClass = batchNormOf('BatchNorm2d', 4);
const BatchNormOf3: BatchNormClass = batchNormOf('BatchNorm3d', 5);

/** `BatchNorm` of [N, C] or [N, C, L]. */
export class BatchNorm1d extends BatchNormOf1 {}

/** `BatchNorm` of [N, C, H, W]. */
export class BatchNorm2d extends BatchNormOf2 {}

/** `BatchNorm` of [N, C, D, H, W]. */
export class BatchNorm3d extends BatchNormOf3 {}

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

const takesInstanceNorm = arg.takes<InstanceNormClass>(
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

/** Standardises each channel of each sample over its places (Ulyanov et al., 2016). */
interface InstanceNorm extends RunningNorm {
  readonly channels: number;
  readonly spatial: number;
  forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>>;
}

type InstanceNormClass = new (channels: number, options?: InstanceNormLayerOptions) => InstanceNorm;

/** The class of instance norms over `spatial` axes. */
/* @__NO_SIDE_EFFECTS__ */
function instanceNormOf(name: string, spatial: number): InstanceNormClass {
  return class extends RunningNorm {
    readonly channels: number;
    readonly spatial: number;

    constructor(channels: number, options: InstanceNormLayerOptions = {}) {
      takesInstanceNorm(name, channels, options);
      super(channels, { affine: false, trackRunningStats: false, ...options });
      this.channels = channels;
      this.spatial = spatial;
    }

    forward<D extends DType>(x: Tensor<D>): Tensor<Weighed<D>> {
      const { channels } = this;
      expectTensor('instanceNorm', 'x', x);
      if (x.rank !== spatial + 1 && x.rank !== spatial + 2) {
        const problem = `expects rank ${spatial + 2} (or ${spatial + 1}): ${show(x)}`;
        throw new TensorError('E_SHAPE', 'instanceNorm', problem);
      }
      if (x.shape.at(-spatial - 1) !== channels)
        throw new TensorError('E_SHAPE', 'instanceNorm', `expects ${channels} channels: ${show(x)}`);
      return x.rank === spatial + 1 ? squeeze(this.normed(unsqueeze(x, 0)), 0) : this.normed(x);
    }

    normed(x: Tensor): Tensor {
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
  };
}

const InstanceNormOf1: InstanceNormClass = instanceNormOf('InstanceNorm1d', 1);
const InstanceNormOf2: InstanceNormClass = instanceNormOf('InstanceNorm2d', 2);
const InstanceNormOf3: InstanceNormClass = instanceNormOf('InstanceNorm3d', 3);

/** Standardises each channel of each sample of [N, C, L] (or without N). */
export class InstanceNorm1d extends InstanceNormOf1 {}

/** Standardises each channel of each sample of [N, C, H, W] (or without N). */
export class InstanceNorm2d extends InstanceNormOf2 {}

/** Standardises each channel of each sample of [N, C, D, H, W] (or without N). */
export class InstanceNorm3d extends InstanceNormOf3 {}
