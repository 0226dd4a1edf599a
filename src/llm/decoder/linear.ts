// Products with weights, whole or in parts, and the norm in front of them.

import { add, linear, mul, narrow, rmsNorm } from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { valuesOf, type LinearWeights } from './weights.ts';

/** x [T, in] through a weight, cut to these sizes along what comes out; each lies in one part. */
export function products(x: Tensor, { parts, bias }: LinearWeights, sizes: readonly number[]): Tensor[] {
  let next = 0;
  const results = parts.flatMap((part) => {
    const whole = linear(x, valuesOf(part));
    const own: number[] = [];
    for (let left = whole.shape.at(-1)!; left > 0; left -= own.at(-1)!) own.push(sizes[next++]!);
    return cut(whole, own);
  });
  if (bias === undefined) return results;
  const shifts = cut(bias, sizes);
  return results.map((result, i) => add(result, shifts[i]!));
}

/** Pieces of the last axis, one behind the other. */
function cut(x: Tensor, sizes: readonly number[]): Tensor[] {
  if (sizes.length === 1) return [x];
  let from = 0;
  return sizes.map((size) => {
    const piece = narrow(x, -1, from, size);
    from += size;
    return piece;
  });
}

/** x [T, in] through a weight: [T, out]. */
export function product(x: Tensor, weight: LinearWeights, size: number): Tensor {
  return products(x, weight, [size])[0]!;
}

/** x / √(mean x² + ε), scaled. */
export function norm(x: Tensor, weight: Tensor, epsilon: number): Tensor {
  return rmsNorm(x, [x.shape.at(-1)!], weight, { eps: epsilon });
}

/** cap · tanh(x / cap), or x where there is no cap. */
export function capped(x: Tensor, cap: number | undefined, tanh: (x: Tensor) => Tensor): Tensor {
  return cap === undefined ? x : mul(tanh(mul(x, 1 / cap)), cap);
}
