// Dropout, of elements and of whole channels, and dropout that keeps what `selu` standardised: one
// factory makes the class of each. Outside of training all give what they take.

import type { DType } from '../ir/dtype.ts';
import * as arg from '../ir/arguments.ts';
import {
  alphaDropout,
  dropout1d,
  dropout2d,
  dropout3d,
  featureAlphaDropout,
} from '../tensor/ops/creation/dropout.ts';
import { dropout, type DropoutOptions } from '../tensor/ops/creation/random.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { Module } from './module.ts';

const takesDropout = arg.takes<DropoutClass>(['p', arg.optional(arg.share)]);

/** Dropout with a probability, in training alone. */
interface DropoutLayer extends Module {
  readonly p: number;
  forward<D extends DType>(x: Tensor<D>): Tensor<D>;
}

type DropoutClass = new (p?: number) => DropoutLayer;

/** The class of dropouts that `apply` computes. */
/* @__NO_SIDE_EFFECTS__ */
function dropping(
  name: string,
  apply: (x: Tensor, p: number, options: DropoutOptions) => Tensor,
): DropoutClass {
  return class extends Module {
    readonly p: number;

    constructor(p: number = 0.5) {
      takesDropout(name, p);
      super();
      this.p = p;
    }

    forward<D extends DType>(x: Tensor<D>): Tensor<D> {
      return apply(x, this.p, { training: this.training });
    }
  };
}

const OfElements: DropoutClass = dropping('Dropout', dropout);
const OfChannels1: DropoutClass = dropping('Dropout1d', dropout1d);
const OfChannels2: DropoutClass = dropping('Dropout2d', dropout2d);
const OfChannels3: DropoutClass = dropping('Dropout3d', dropout3d);
const Alpha: DropoutClass = dropping('AlphaDropout', alphaDropout);
const FeatureAlpha: DropoutClass = dropping('FeatureAlphaDropout', featureAlphaDropout);

/** In training zeroes each element with probability `p` and scales the others by 1 / (1 − p). */
export class Dropout extends OfElements {}

/** Zeroes each channel [N, C, L] whole with probability `p`, and scales the others. */
export class Dropout1d extends OfChannels1 {}

/** Zeroes each channel [N, C, H, W] whole with probability `p`, and scales the others. */
export class Dropout2d extends OfChannels2 {}

/** Zeroes each channel [N, C, D, H, W] whole with probability `p`, and scales the others. */
export class Dropout3d extends OfChannels3 {}

/** Sets elements to what `selu` gives for −∞, and keeps mean and variance. */
export class AlphaDropout extends Alpha {}

/** `AlphaDropout` of whole channels [N, C, …]. */
export class FeatureAlphaDropout extends FeatureAlpha {}
