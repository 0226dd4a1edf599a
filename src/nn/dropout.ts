// Dropout: in training, some elements are zeroed and the others scaled up.

import type { DType } from '../ir/dtype.ts';
import * as arg from '../ir/arguments.ts';
import { dropout } from '../tensor/ops/creation/random.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { Module } from './module.ts';

const takesDropout = arg.takes<typeof Dropout>(['p', arg.optional(arg.share)]);

/** In training zeroes each element with probability `p` and scales the others by 1 / (1 − p). */
export class Dropout extends Module {
  readonly p: number;

  constructor(p: number = 0.5) {
    takesDropout('Dropout', p);
    super();
    this.p = p;
  }

  forward<D extends DType>(x: Tensor<D>): Tensor<D> {
    return dropout(x, this.p, { training: this.training });
  }
}
