// Activations as modules, for models that are printed or stored as lists of layers. Where a layer
// is expected, the functions themselves (`relu`, `gelu`, …) do as well.

import type { DType } from '../ir/dtype.ts';
import type { Floated } from '../tensor/inferred.ts';
import * as arg from '../ir/arguments.ts';
import {
  gelu,
  geluForm,
  leakyRelu,
  relu,
  sigmoid,
  silu,
  type GeluOptions,
} from '../tensor/ops/elementwise/activation.ts';
import { tanh } from '../tensor/ops/elementwise/elementwise.ts';
import { softmax } from '../tensor/ops/reduce/softmax.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { Module } from './module.ts';

/** max(x, 0). */
export class ReLU extends Module {
  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return relu(x);
  }
}

const takesLeakyReLU = arg.takes<typeof LeakyReLU>(['slope', arg.optional(arg.number)]);

/** x where positive, else slope·x. */
export class LeakyReLU extends Module {
  readonly slope: number;

  constructor(slope: number = 0.01) {
    takesLeakyReLU('LeakyReLU', slope);
    super();
    this.slope = slope;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return leakyRelu(x, this.slope);
  }
}

const takesGELU = arg.takes<typeof GELU>(['approximate', arg.optional(geluForm)]);

/** x·Φ(x), or an approximation of it. */
export class GELU extends Module {
  readonly approximate: NonNullable<GeluOptions['approximate']>;

  constructor(approximate: NonNullable<GeluOptions['approximate']> = 'none') {
    takesGELU('GELU', approximate);
    super();
    this.approximate = approximate;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return gelu(x, { approximate: this.approximate });
  }
}

/** x·σ(x). */
export class SiLU extends Module {
  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return silu(x);
  }
}

/** tanh(x). */
export class Tanh extends Module {
  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return tanh(x);
  }
}

/** 1 / (1 + e⁻ˣ). */
export class Sigmoid extends Module {
  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return sigmoid(x);
  }
}

const takesSoftmax = arg.takes<typeof Softmax>(['axis', arg.optional(arg.integer)]);

/** Softmax along an axis, the last by default. */
export class Softmax extends Module {
  readonly axis: number;

  constructor(axis: number = -1) {
    takesSoftmax('Softmax', axis);
    super();
    this.axis = axis;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return softmax(x, this.axis);
  }
}
