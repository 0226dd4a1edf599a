// Sequential: layers one after another; and Flatten, which stands between convolutions and a
// classifier.

import type { DType } from '../ir/dtype.ts';
import { within } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import { flatten } from '../tensor/ops/shape/view.ts';
import { expectTensor } from '../tensor/expect.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { aLayer, applyLayer, Module, nameOf, type Layer, type Through } from './module.ts';

/**
 * Layers applied one after another; functions such as `relu` count as layers. Where `layers` is a
 * tuple, the type checker knows the dtype that comes out as far as it knows that of the last ones.
 */
export class Sequential<const L extends readonly Layer[] = readonly Layer[]> extends Module {
  readonly layers: readonly Layer[];

  constructor(...layers: L) {
    super();
    layers.forEach((layer, i) => aLayer.accepts(layer) || aLayer.refuse('Sequential', `layer ${i}`, layer));
    this.layers = layers;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Through<L, D>> {
    expectTensor('Sequential', 'x', x);
    return this.layers.reduce((at: Tensor, layer, i) => {
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

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return flatten(x, this.start, this.end);
  }
}
