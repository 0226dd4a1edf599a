// Sequential: layers one after another; and the layers between convolutions and a classifier that have no parameters.

import { avgPool2d, maxPool2d, type AvgPoolOptions, type MaxPoolOptions } from '../tensor/ops/pool.ts';
import type { PerAxis } from '../tensor/ops/operand.ts';
import { flatten } from '../tensor/ops/view.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { applyLayer, Module, type Layer } from './module.ts';

/** Layers applied one after another; functions such as `relu` count as layers. */
export class Sequential extends Module {
  readonly layers: readonly Layer[];

  constructor(...layers: readonly Layer[]) {
    super();
    this.layers = layers;
  }

  forward(x: Tensor): Tensor {
    return this.layers.reduce((at, layer) => applyLayer(layer, at), x);
  }
}

/** Makes one axis of axes `start` … `end`; by default of all but the first. */
export class Flatten extends Module {
  readonly start: number;
  readonly end: number;

  constructor(start: number = 1, end: number = -1) {
    super();
    this.start = start;
    this.end = end;
  }

  forward(x: Tensor): Tensor {
    return flatten(x, this.start, this.end);
  }
}

/** The largest value of each window of [N, C, H, W]. */
export class MaxPool2d extends Module {
  readonly kernelSize: PerAxis;
  readonly options: MaxPoolOptions;

  constructor(kernelSize: PerAxis, options: MaxPoolOptions = {}) {
    super();
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return maxPool2d(x, this.kernelSize, this.options);
  }
}

/** The mean of each window of [N, C, H, W]. */
export class AvgPool2d extends Module {
  readonly kernelSize: PerAxis;
  readonly options: AvgPoolOptions;

  constructor(kernelSize: PerAxis, options: AvgPoolOptions = {}) {
    super();
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return avgPool2d(x, this.kernelSize, this.options);
  }
}
