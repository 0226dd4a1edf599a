// Pools and changes of size as modules; MaxPool2d and AvgPool2d are in sequential.ts.

import * as arg from '../ir/arguments.ts';
import { interpolate, interpolateOptions, type InterpolateOptions } from '../tensor/ops/image/interpolate.ts';
import { channelShuffle, pixelShuffle, pixelUnshuffle } from '../tensor/ops/image/shuffle.ts';
import type { PerAxis } from '../tensor/ops/operand.ts';
import {
  avgPool1d,
  avgPool3d,
  avgPoolOptions,
  maxPool1d,
  maxPool3d,
  type AvgPoolOptions,
  type MaxPoolOptions,
} from '../tensor/ops/product/pool.ts';
import { localResponseNorm, type LocalResponseOptions } from '../tensor/ops/reduce/norm.ts';
import { windowOptions } from '../tensor/ops/shape/window.ts';
import {
  adaptiveAvgPool1d,
  adaptiveAvgPool2d,
  adaptiveAvgPool3d,
  adaptiveMaxPool1d,
  adaptiveMaxPool2d,
  adaptiveMaxPool3d,
  outputSizes,
  type OutputSize,
} from '../tensor/ops/window/adaptive.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { Module } from './module.ts';

const takesMaxPool1d = arg.takes<typeof MaxPool1d>(
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<MaxPoolOptions>(windowOptions)],
);

/** The largest value of each window of [N, C, L]. */
export class MaxPool1d extends Module {
  readonly kernelSize: PerAxis;
  readonly options: MaxPoolOptions;

  constructor(kernelSize: PerAxis, options: MaxPoolOptions = {}) {
    takesMaxPool1d('MaxPool1d', kernelSize, options);
    super();
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return maxPool1d(x, this.kernelSize, this.options);
  }
}

const takesAvgPool1d = arg.takes<typeof AvgPool1d>(
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<AvgPoolOptions>(avgPoolOptions)],
);

/** The mean of each window of [N, C, L]. */
export class AvgPool1d extends Module {
  readonly kernelSize: PerAxis;
  readonly options: AvgPoolOptions;

  constructor(kernelSize: PerAxis, options: AvgPoolOptions = {}) {
    takesAvgPool1d('AvgPool1d', kernelSize, options);
    super();
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return avgPool1d(x, this.kernelSize, this.options);
  }
}

const takesMaxPool3d = arg.takes<typeof MaxPool3d>(
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<MaxPoolOptions>(windowOptions)],
);

/** The largest value of each window of [N, C, D, H, W]. */
export class MaxPool3d extends Module {
  readonly kernelSize: PerAxis;
  readonly options: MaxPoolOptions;

  constructor(kernelSize: PerAxis, options: MaxPoolOptions = {}) {
    takesMaxPool3d('MaxPool3d', kernelSize, options);
    super();
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return maxPool3d(x, this.kernelSize, this.options);
  }
}

const takesAvgPool3d = arg.takes<typeof AvgPool3d>(
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<AvgPoolOptions>(avgPoolOptions)],
);

/** The mean of each window of [N, C, D, H, W]. */
export class AvgPool3d extends Module {
  readonly kernelSize: PerAxis;
  readonly options: AvgPoolOptions;

  constructor(kernelSize: PerAxis, options: AvgPoolOptions = {}) {
    takesAvgPool3d('AvgPool3d', kernelSize, options);
    super();
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return avgPool3d(x, this.kernelSize, this.options);
  }
}

const takesAdaptiveAvgPool1d = arg.takes<typeof AdaptiveAvgPool1d>(['outputSize', outputSizes]);

/** Means over an even grid of windows of [N, C, L]. */
export class AdaptiveAvgPool1d extends Module {
  readonly outputSize: OutputSize;

  constructor(outputSize: OutputSize) {
    takesAdaptiveAvgPool1d('AdaptiveAvgPool1d', outputSize);
    super();
    this.outputSize = outputSize;
  }

  forward(x: Tensor): Tensor {
    return adaptiveAvgPool1d(x, this.outputSize);
  }
}

const takesAdaptiveMaxPool1d = arg.takes<typeof AdaptiveMaxPool1d>(['outputSize', outputSizes]);

/** Maxima over an even grid of windows of [N, C, L]. */
export class AdaptiveMaxPool1d extends Module {
  readonly outputSize: OutputSize;

  constructor(outputSize: OutputSize) {
    takesAdaptiveMaxPool1d('AdaptiveMaxPool1d', outputSize);
    super();
    this.outputSize = outputSize;
  }

  forward(x: Tensor): Tensor {
    return adaptiveMaxPool1d(x, this.outputSize);
  }
}

const takesAdaptiveAvgPool2d = arg.takes<typeof AdaptiveAvgPool2d>(['outputSize', outputSizes]);

/** Means over an even grid of windows of [N, C, H, W]. */
export class AdaptiveAvgPool2d extends Module {
  readonly outputSize: OutputSize;

  constructor(outputSize: OutputSize) {
    takesAdaptiveAvgPool2d('AdaptiveAvgPool2d', outputSize);
    super();
    this.outputSize = outputSize;
  }

  forward(x: Tensor): Tensor {
    return adaptiveAvgPool2d(x, this.outputSize);
  }
}

const takesAdaptiveMaxPool2d = arg.takes<typeof AdaptiveMaxPool2d>(['outputSize', outputSizes]);

/** Maxima over an even grid of windows of [N, C, H, W]. */
export class AdaptiveMaxPool2d extends Module {
  readonly outputSize: OutputSize;

  constructor(outputSize: OutputSize) {
    takesAdaptiveMaxPool2d('AdaptiveMaxPool2d', outputSize);
    super();
    this.outputSize = outputSize;
  }

  forward(x: Tensor): Tensor {
    return adaptiveMaxPool2d(x, this.outputSize);
  }
}

const takesAdaptiveAvgPool3d = arg.takes<typeof AdaptiveAvgPool3d>(['outputSize', outputSizes]);

/** Means over an even grid of windows of [N, C, D, H, W]. */
export class AdaptiveAvgPool3d extends Module {
  readonly outputSize: OutputSize;

  constructor(outputSize: OutputSize) {
    takesAdaptiveAvgPool3d('AdaptiveAvgPool3d', outputSize);
    super();
    this.outputSize = outputSize;
  }

  forward(x: Tensor): Tensor {
    return adaptiveAvgPool3d(x, this.outputSize);
  }
}

const takesAdaptiveMaxPool3d = arg.takes<typeof AdaptiveMaxPool3d>(['outputSize', outputSizes]);

/** Maxima over an even grid of windows of [N, C, D, H, W]. */
export class AdaptiveMaxPool3d extends Module {
  readonly outputSize: OutputSize;

  constructor(outputSize: OutputSize) {
    takesAdaptiveMaxPool3d('AdaptiveMaxPool3d', outputSize);
    super();
    this.outputSize = outputSize;
  }

  forward(x: Tensor): Tensor {
    return adaptiveMaxPool3d(x, this.outputSize);
  }
}

const takesUpsample = arg.takes<typeof Upsample>([
  'options',
  arg.options<InterpolateOptions>(interpolateOptions),
]);

/** [N, C, S…] in another size: `interpolate` as a layer. */
export class Upsample extends Module {
  readonly options: InterpolateOptions;

  constructor(options: InterpolateOptions = {}) {
    takesUpsample('Upsample', options);
    super();
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return interpolate(x, this.options);
  }
}

const takesPixelShuffle = arg.takes<typeof PixelShuffle>(['the factor', arg.count(1)]);

/** Channels become squares of factor × factor pixels. */
export class PixelShuffle extends Module {
  readonly factor: number;

  constructor(factor: number) {
    takesPixelShuffle('PixelShuffle', factor);
    super();
    this.factor = factor;
  }

  forward(x: Tensor): Tensor {
    return pixelShuffle(x, this.factor);
  }
}

const takesPixelUnshuffle = arg.takes<typeof PixelUnshuffle>(['the factor', arg.count(1)]);

/** Squares of factor × factor pixels become channels. */
export class PixelUnshuffle extends Module {
  readonly factor: number;

  constructor(factor: number) {
    takesPixelUnshuffle('PixelUnshuffle', factor);
    super();
    this.factor = factor;
  }

  forward(x: Tensor): Tensor {
    return pixelUnshuffle(x, this.factor);
  }
}

const takesChannelShuffle = arg.takes<typeof ChannelShuffle>(['the number of groups', arg.count(1)]);

/** Runs of channels interleaved. */
export class ChannelShuffle extends Module {
  readonly groups: number;

  constructor(groups: number) {
    takesChannelShuffle('ChannelShuffle', groups);
    super();
    this.groups = groups;
  }

  forward(x: Tensor): Tensor {
    return channelShuffle(x, this.groups);
  }
}

const takesLocalResponseNorm = arg.takes<typeof LocalResponseNorm>(
  ['the size', arg.count(1)],
  ['options', arg.options<LocalResponseOptions>({ alpha: arg.number, beta: arg.number, k: arg.number })],
);

/** Divided by the squares of neighbouring channels (Krizhevsky et al., 2012). */
export class LocalResponseNorm extends Module {
  readonly size: number;
  readonly options: LocalResponseOptions;

  constructor(size: number, options: LocalResponseOptions = {}) {
    takesLocalResponseNorm('LocalResponseNorm', size, options);
    super();
    this.size = size;
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return localResponseNorm(x, this.size, this.options);
  }
}
