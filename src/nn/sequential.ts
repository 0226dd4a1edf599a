// Sequential: layers one after another; and the layers between convolutions and a classifier that
// have no parameters.

import { within } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import {
  avgPool2d,
  avgPoolOptions,
  maxPool2d,
  type AvgPoolOptions,
  type MaxPoolOptions,
} from '../tensor/ops/product/pool.ts';
import { windowOptions } from '../tensor/ops/shape/window.ts';
import type { PerAxis } from '../tensor/ops/operand.ts';
import { flatten } from '../tensor/ops/shape/view.ts';
import { expectTensor } from '../tensor/expect.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { aLayer, applyLayer, Module, nameOf, type Layer } from './module.ts';

/** Layers applied one after another; functions such as `relu` count as layers. */
export class Sequential extends Module {
  readonly layers: readonly Layer[];

  constructor(...layers: readonly Layer[]) {
    super();
    layers.forEach((layer, i) => aLayer.accepts(layer) || aLayer.refuse('Sequential', `layer ${i}`, layer));
    this.layers = layers;
  }

  forward(x: Tensor): Tensor {
    expectTensor('Sequential', 'x', x);
    return this.layers.reduce((at, layer, i) => {
      try {
        return applyLayer(layer, at);
      } catch (error) {
        throw within(error, `in layer ${i} of Sequential, ${nameOf(layer)}`);
      }
    }, x);
  }
}

const takesFlatten = arg.takes<typeof Flatten>(
  ['start', arg.optional(arg.integer)],
  ['end', arg.optional(arg.integer)],
);

/** Makes one axis of axes `start` … `end`; by default of all but the first. */
export class Flatten extends Module {
  readonly start: number;
  readonly end: number;

  constructor(start: number = 1, end: number = -1) {
    takesFlatten('Flatten', start, end);
    super();
    this.start = start;
    this.end = end;
  }

  forward(x: Tensor): Tensor {
    return flatten(x, this.start, this.end);
  }
}

const takesMaxPool2d = arg.takes<typeof MaxPool2d>(
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<MaxPoolOptions>(windowOptions)],
);

/** The largest value of each window of [N, C, H, W]. */
export class MaxPool2d extends Module {
  readonly kernelSize: PerAxis;
  readonly options: MaxPoolOptions;

  constructor(kernelSize: PerAxis, options: MaxPoolOptions = {}) {
    takesMaxPool2d('MaxPool2d', kernelSize, options);
    super();
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return maxPool2d(x, this.kernelSize, this.options);
  }
}

const takesAvgPool2d = arg.takes<typeof AvgPool2d>(
  ['kernelSize', arg.sizes(1)],
  ['options', arg.options<AvgPoolOptions>(avgPoolOptions)],
);

/** The mean of each window of [N, C, H, W]. */
export class AvgPool2d extends Module {
  readonly kernelSize: PerAxis;
  readonly options: AvgPoolOptions;

  constructor(kernelSize: PerAxis, options: AvgPoolOptions = {}) {
    takesAvgPool2d('AvgPool2d', kernelSize, options);
    super();
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return avgPool2d(x, this.kernelSize, this.options);
  }
}
