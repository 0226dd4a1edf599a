// More activations as modules; see activation.ts for the usual ones.

import type { DType } from '../ir/dtype.ts';
import type { Floated, Limited } from '../tensor/inferred.ts';
import * as arg from '../ir/arguments.ts';
import { expectTensor } from '../tensor/expect.ts';
import {
  celu,
  elu,
  glu,
  hardsigmoid,
  hardswish,
  hardtanh,
  logSigmoid,
  mish,
  relu6,
  selu,
  softplus,
  softsign,
  tanhshrink,
} from '../tensor/ops/elementwise/activation.ts';
import { hardshrink, softshrink, threshold } from '../tensor/ops/elementwise/shrink.ts';
import { logSoftmax, softmin } from '../tensor/ops/reduce/softmax.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { Module } from './module.ts';

/** x itself, where a layer is expected. */
export class Identity extends Module {
  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    expectTensor('Identity', 'x', x);
    return x;
  }
}

/** x limited to [0, 6]. */
export class ReLU6 extends Module {
  forward<D extends DType>(x: Tensor<D>): Tensor<Limited<D>> {
    return relu6(x);
  }
}

/** x·tanh(softplus(x)). */
export class Mish extends Module {
  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return mish(x);
  }
}

/** Scaled elu that keeps mean 0 and variance 1. */
export class SELU extends Module {
  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return selu(x);
  }
}

/** x·hardsigmoid(x). */
export class Hardswish extends Module {
  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return hardswish(x);
  }
}

/** x / 6 + ½, limited to [0, 1]. */
export class Hardsigmoid extends Module {
  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return hardsigmoid(x);
  }
}

/** log sigmoid(x). */
export class LogSigmoid extends Module {
  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return logSigmoid(x);
  }
}

/** x / (1 + |x|). */
export class Softsign extends Module {
  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return softsign(x);
  }
}

/** x − tanh(x). */
export class Tanhshrink extends Module {
  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return tanhshrink(x);
  }
}

const takesELU = arg.takes<typeof ELU>(['alpha', arg.optional(arg.number)]);

/** x above 0, alpha·(eˣ − 1) below. */
export class ELU extends Module {
  readonly alpha: number;

  constructor(alpha: number = 1) {
    takesELU('ELU', alpha);
    super();
    this.alpha = alpha;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return elu(x, this.alpha);
  }
}

const takesCELU = arg.takes<typeof CELU>(['alpha', arg.optional(arg.number)]);

/** x above 0, alpha·(e^(x/alpha) − 1) below. */
export class CELU extends Module {
  readonly alpha: number;

  constructor(alpha: number = 1) {
    takesCELU('CELU', alpha);
    super();
    this.alpha = alpha;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return celu(x, this.alpha);
  }
}

const takesHardtanh = arg.takes<typeof Hardtanh>(
  ['low', arg.optional(arg.number)],
  ['high', arg.optional(arg.number)],
);

/** x limited to [low, high]. */
export class Hardtanh extends Module {
  readonly low: number;
  readonly high: number;

  constructor(low: number = -1, high: number = 1) {
    takesHardtanh('Hardtanh', low, high);
    super();
    this.low = low;
    this.high = high;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Limited<D>> {
    return hardtanh(x, this.low, this.high);
  }
}

const takesSoftplus = arg.takes<typeof Softplus>(
  ['beta', arg.optional(arg.number)],
  ['threshold', arg.optional(arg.number)],
);

/** log(1 + e^(beta·x)) / beta, and x itself where beta·x is greater than a threshold that you give. */
export class Softplus extends Module {
  readonly beta: number;
  readonly threshold: number | undefined;

  constructor(beta: number = 1, threshold?: number) {
    takesSoftplus('Softplus', beta, threshold);
    super();
    this.beta = beta;
    this.threshold = threshold;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    const { beta, threshold } = this;
    return softplus(x, threshold === undefined ? { beta } : { beta, threshold });
  }
}

const takesSoftshrink = arg.takes<typeof Softshrink>(['lambda', arg.optional(arg.notNegative)]);

/** x moved towards 0 by `lambda`, 0 within it. */
export class Softshrink extends Module {
  readonly lambda: number;

  constructor(lambda: number = 0.5) {
    takesSoftshrink('Softshrink', lambda);
    super();
    this.lambda = lambda;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return softshrink(x, this.lambda);
  }
}

const takesHardshrink = arg.takes<typeof Hardshrink>(['lambda', arg.optional(arg.notNegative)]);

/** x where |x| is above `lambda`, else 0. */
export class Hardshrink extends Module {
  readonly lambda: number;

  constructor(lambda: number = 0.5) {
    takesHardshrink('Hardshrink', lambda);
    super();
    this.lambda = lambda;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return hardshrink(x, this.lambda);
  }
}

const takesThreshold = arg.takes<typeof Threshold>(['the threshold', arg.number], ['the value', arg.element]);

/** x where it is above the threshold, else the value. */
export class Threshold extends Module {
  readonly threshold: number;
  readonly value: number;

  constructor(threshold: number, value: number) {
    takesThreshold('Threshold', threshold, value);
    super();
    this.threshold = threshold;
    this.value = value;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return threshold(x, this.threshold, this.value);
  }
}

const takesLogSoftmax = arg.takes<typeof LogSoftmax>(['axis', arg.optional(arg.integer)]);

/** Log softmax along an axis, the last by default. */
export class LogSoftmax extends Module {
  readonly axis: number;

  constructor(axis: number = -1) {
    takesLogSoftmax('LogSoftmax', axis);
    super();
    this.axis = axis;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return logSoftmax(x, this.axis);
  }
}

const takesSoftmin = arg.takes<typeof Softmin>(['axis', arg.optional(arg.integer)]);

/** softmax(−x) along an axis, the last by default. */
export class Softmin extends Module {
  readonly axis: number;

  constructor(axis: number = -1) {
    takesSoftmin('Softmin', axis);
    super();
    this.axis = axis;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return softmin(x, this.axis);
  }
}

const takesGLU = arg.takes<typeof GLU>(['axis', arg.optional(arg.integer)]);

/** The first half of an axis, the last by default, gated by the second. */
export class GLU extends Module {
  readonly axis: number;

  constructor(axis: number = -1) {
    takesGLU('GLU', axis);
    super();
    this.axis = axis;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<Floated<D>> {
    return glu(x, this.axis);
  }
}
