// Programs that hardly compute: chains of small kernels that cannot fuse, so that what a call costs the host can be seen.

import * as sn from '../index.ts';
import type { Tensor } from '../index.ts';

const side = 8;

/**
 * A program of `kernels` kernels and its input: products and softmaxes of [8, 8] by turns. Neither takes the other in, as each
 * needs a loop of its own.
 */
export function smallKernels(kernels: number): { step: (x: Tensor) => Tensor; input: Tensor } {
  const weight = sn.tensor(Float32Array.from({ length: side * side }, (_, i) => (i % 7) / 7 - 0.5));
  const square = weight.reshape([side, side]);
  const fn = (x: Tensor, w: Tensor): Tensor => {
    let y = x;
    for (let i = 0; i < kernels; i++) y = i % 2 === 0 ? y.matmul(w) : y.softmax();
    return y;
  };
  const compiled = sn.compile(fn);
  return { step: (x) => compiled(x, square), input: sn.ones([side, side]) };
}
