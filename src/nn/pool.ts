// Pools as modules: windows of one size, and even grids of windows, in one to three dimensions.

import type { DType } from '../ir/dtype.ts';
import * as arg from '../ir/arguments.ts';
import type { PerAxis } from '../tensor/ops/operand.ts';
import {
  avgPool1d,
  avgPool2d,
  avgPool3d,
  avgPoolOptions,
  maxPool1d,
  maxPool2d,
  maxPool3d,
  type AvgPoolOptions,
  type MaxPoolOptions,
} from '../tensor/ops/product/pool.ts';
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

const takesMax = arg.takes<(kernelSize: PerAxis, options?: MaxPoolOptions) => unknown>(
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<MaxPoolOptions>(windowOptions)],
);
const takesAvg = arg.takes<(kernelSize: PerAxis, options?: AvgPoolOptions) => unknown>(
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<AvgPoolOptions>(avgPoolOptions)],
);
const takesGrid = arg.takes<(outputSize: OutputSize) => unknown>(['outputSize', outputSizes]);

/** A pool over windows of one size. */
abstract class WindowPool<O extends object> extends Module {
  readonly kernelSize: PerAxis;
  readonly options: O;

  protected constructor(kernelSize: PerAxis, options: O) {
    super();
    this.kernelSize = kernelSize;
    this.options = options;
  }
}

/** A pool over an even grid of windows. */
abstract class GridPool extends Module {
  readonly outputSize: OutputSize;

  protected constructor(name: string, outputSize: OutputSize) {
    takesGrid(name, outputSize);
    super();
    this.outputSize = outputSize;
  }
}

/** The largest value of each window of [N, C, L]. */
export class MaxPool1d extends WindowPool<MaxPoolOptions> {
  constructor(kernelSize: PerAxis, options: MaxPoolOptions = {}) {
    takesMax('MaxPool1d', kernelSize, options);
    super(kernelSize, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return maxPool1d(x, this.kernelSize, this.options);
  }
}

/** The mean of each window of [N, C, L]. */
export class AvgPool1d extends WindowPool<AvgPoolOptions> {
  constructor(kernelSize: PerAxis, options: AvgPoolOptions = {}) {
    takesAvg('AvgPool1d', kernelSize, options);
    super(kernelSize, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return avgPool1d(x, this.kernelSize, this.options);
  }
}

/** The largest value of each window of [N, C, H, W]. */
export class MaxPool2d extends WindowPool<MaxPoolOptions> {
  constructor(kernelSize: PerAxis, options: MaxPoolOptions = {}) {
    takesMax('MaxPool2d', kernelSize, options);
    super(kernelSize, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return maxPool2d(x, this.kernelSize, this.options);
  }
}

/** The mean of each window of [N, C, H, W]. */
export class AvgPool2d extends WindowPool<AvgPoolOptions> {
  constructor(kernelSize: PerAxis, options: AvgPoolOptions = {}) {
    takesAvg('AvgPool2d', kernelSize, options);
    super(kernelSize, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return avgPool2d(x, this.kernelSize, this.options);
  }
}

/** The largest value of each window of [N, C, D, H, W]. */
export class MaxPool3d extends WindowPool<MaxPoolOptions> {
  constructor(kernelSize: PerAxis, options: MaxPoolOptions = {}) {
    takesMax('MaxPool3d', kernelSize, options);
    super(kernelSize, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return maxPool3d(x, this.kernelSize, this.options);
  }
}

/** The mean of each window of [N, C, D, H, W]. */
export class AvgPool3d extends WindowPool<AvgPoolOptions> {
  constructor(kernelSize: PerAxis, options: AvgPoolOptions = {}) {
    takesAvg('AvgPool3d', kernelSize, options);
    super(kernelSize, options);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return avgPool3d(x, this.kernelSize, this.options);
  }
}

/** Means over an even grid of windows of [N, C, L]. */
export class AdaptiveAvgPool1d extends GridPool {
  constructor(outputSize: OutputSize) {
    super('AdaptiveAvgPool1d', outputSize);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return adaptiveAvgPool1d(x, this.outputSize);
  }
}

/** Maxima over an even grid of windows of [N, C, L]. */
export class AdaptiveMaxPool1d extends GridPool {
  constructor(outputSize: OutputSize) {
    super('AdaptiveMaxPool1d', outputSize);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return adaptiveMaxPool1d(x, this.outputSize);
  }
}

/** Means over an even grid of windows of [N, C, H, W]. */
export class AdaptiveAvgPool2d extends GridPool {
  constructor(outputSize: OutputSize) {
    super('AdaptiveAvgPool2d', outputSize);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return adaptiveAvgPool2d(x, this.outputSize);
  }
}

/** Maxima over an even grid of windows of [N, C, H, W]. */
export class AdaptiveMaxPool2d extends GridPool {
  constructor(outputSize: OutputSize) {
    super('AdaptiveMaxPool2d', outputSize);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return adaptiveMaxPool2d(x, this.outputSize);
  }
}

/** Means over an even grid of windows of [N, C, D, H, W]. */
export class AdaptiveAvgPool3d extends GridPool {
  constructor(outputSize: OutputSize) {
    super('AdaptiveAvgPool3d', outputSize);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return adaptiveAvgPool3d(x, this.outputSize);
  }
}

/** Maxima over an even grid of windows of [N, C, D, H, W]. */
export class AdaptiveMaxPool3d extends GridPool {
  constructor(outputSize: OutputSize) {
    super('AdaptiveMaxPool3d', outputSize);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return adaptiveMaxPool3d(x, this.outputSize);
  }
}
