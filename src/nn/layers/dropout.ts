// Dropout of whole channels, and dropout that keeps what `selu` standardised, as modules.

import type { DType } from '../../ir/dtype.ts';
import * as arg from '../../ir/arguments.ts';
import {
  alphaDropout,
  dropout1d,
  dropout2d,
  dropout3d,
  featureAlphaDropout,
} from '../../tensor/ops/creation/dropout.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { Module } from '../module.ts';

const takesShare = arg.takes<(p?: number) => unknown>(['p', arg.optional(arg.share)]);

/** Dropout with a probability, in training alone. */
abstract class Dropping extends Module {
  readonly p: number;

  protected constructor(name: string, p: number) {
    takesShare(name, p);
    super();
    this.p = p;
  }
}

/** Zeroes each channel [N, C, L] whole with probability `p`, and scales the others. */
export class Dropout1d extends Dropping {
  constructor(p: number = 0.5) {
    super('Dropout1d', p);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return dropout1d(x, this.p, { training: this.training });
  }
}

/** Zeroes each channel [N, C, H, W] whole with probability `p`, and scales the others. */
export class Dropout2d extends Dropping {
  constructor(p: number = 0.5) {
    super('Dropout2d', p);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return dropout2d(x, this.p, { training: this.training });
  }
}

/** Zeroes each channel [N, C, D, H, W] whole with probability `p`, and scales the others. */
export class Dropout3d extends Dropping {
  constructor(p: number = 0.5) {
    super('Dropout3d', p);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return dropout3d(x, this.p, { training: this.training });
  }
}

/** Sets elements to what `selu` gives for −∞, and keeps mean and variance. */
export class AlphaDropout extends Dropping {
  constructor(p: number = 0.5) {
    super('AlphaDropout', p);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return alphaDropout(x, this.p, { training: this.training });
  }
}

/** `AlphaDropout` of whole channels [N, C, …]. */
export class FeatureAlphaDropout extends Dropping {
  constructor(p: number = 0.5) {
    super('FeatureAlphaDropout', p);
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return featureAlphaDropout(x, this.p, { training: this.training });
  }
}
