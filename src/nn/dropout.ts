// Dropout: in training, some elements are zeroed and the others scaled up.

import { TensorError } from '../errors.ts';
import { dropout } from '../tensor/ops/random.ts';
import type { Tensor } from '../tensor/tensor.ts';
import { Module } from './module.ts';

/** In training zeroes each element with probability `p` and scales the others by 1 / (1 − p). */
export class Dropout extends Module {
  readonly p: number;

  constructor(p: number = 0.5) {
    super();
    checkProbability('Dropout', p);
    this.p = p;
  }

  forward(x: Tensor): Tensor {
    return dropout(x, this.p, { training: this.training });
  }
}

/** Throws E_VALUE unless 0 ≤ p ≤ 1. */
export function checkProbability(op: string, p: number): void {
  if (!(p >= 0 && p <= 1)) throw new TensorError('E_VALUE', op, `p must be in [0, 1]: ${p}`);
}
