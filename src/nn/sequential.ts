// Sequential: layers one after another; and Flatten, which stands between convolutions and a
// classifier.

import { within } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
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
