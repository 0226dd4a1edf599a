// Programs that hardly compute: chains of small products, each a kernel of its own, so that what a
// call costs the host can be seen. The matrices are identities, some with zeros beside them:
// whatever the length of the chain, the result is the input.

import * as sn from '../../index.ts';
import type { Tensor } from '../../index.ts';

const [narrow, wide] = [8, 16];

export interface SmallKernels {
  readonly fn: (x: Tensor, ...weights: Tensor[]) => Tensor;
  readonly weights: readonly Tensor[];
  /** `fn`, compiled, over the weights: gives its argument back. */
  readonly step: (x: Tensor) => Tensor;
  readonly input: Tensor;
  readonly values: Float32Array;
}

function identity(rows: number, columns: number): Tensor {
  const ones = Float32Array.from({ length: rows * columns }, (_, i) =>
    Math.floor(i / columns) === i % columns ? 1 : 0,
  );
  return sn.tensor(ones, { shape: [rows, columns] });
}

/**
 * A program of `kernels` products; neighbours have different shapes, and so different pipelines.
 */
export function smallKernels(kernels: number): SmallKernels {
  const [widen, shrink, keep] = [identity(narrow, wide), identity(wide, narrow), identity(narrow, narrow)];
  const fn = (x: Tensor, ...[first, second, last]: Tensor[]): Tensor => {
    let y = x;
    for (let i = 0; i + 1 < kernels; i += 2) y = y.matmul(first!).matmul(second!);
    return kernels % 2 === 0 ? y : y.matmul(last!);
  };
  const weights = [widen, shrink, keep];
  const compiled = sn.compile(fn);
  const values = Float32Array.from({ length: narrow * narrow }, (_, i) => i - 20);
  const input = sn.tensor(values, { shape: [narrow, narrow] });
  return { fn, weights, step: (x) => compiled(x, ...weights), input, values };
}
