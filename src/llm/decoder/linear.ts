// Products with weights, whole or in parts, and the norm in front of them.

import {
  add,
  cat,
  clamp,
  embedding,
  ge,
  linear,
  mul,
  narrow,
  rmsNorm,
  sub,
  unsqueeze,
  where,
} from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { valuesOf, type LinearWeights } from './weights.ts';

/** x [T, in] through a weight, cut to these sizes along what comes out. */
export function products(x: Tensor, { parts, bias }: LinearWeights, sizes: readonly number[]): Tensor[] {
  const left = [...sizes];
  const results: Tensor[] = [];
  for (let at = 0; at < parts.length;) {
    // Parts that end where one of the sizes does.
    const own: number[] = [];
    const joined: Tensor[] = [];
    let [had, wanted] = [0, 0];
    do {
      joined.push(linear(x, valuesOf(parts[at]!)));
      had += parts[at]!.shape[0]!;
      at += 1;
      for (; wanted < had; wanted += own.at(-1)!) own.push(left.shift()!);
    } while (wanted > had);
    results.push(...cut(joined.length === 1 ? joined[0]! : cat(joined, -1), own));
  }
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

/** The rows of a matrix that tokens (i32, [T], all of them in the matrix) have: [T, columns]. */
export function lookUp(tokens: Tensor, { parts }: LinearWeights): Tensor {
  const [first, ...rest] = parts;
  if (rest.length === 0) return embedding(tokens, valuesOf(first!));
  let from = 0;
  return parts.reduce<Tensor | undefined>((before, part) => {
    const own = sub(tokens, from);
    const [count] = part.shape as readonly [number];
    from += count;
    const rows = embedding(clamp(own, 0, count - 1), valuesOf(part));
    return before === undefined ? rows : where(unsqueeze(ge(own, 0), -1), rows, before);
  }, undefined)!;
}

/** x / √(mean x² + ε), scaled. */
export function norm(x: Tensor, weight: Tensor, epsilon: number): Tensor {
  return rmsNorm(x, [x.shape.at(-1)!], weight, { eps: epsilon });
}

/** cap · tanh(x / cap), or x where there is no cap. */
export function capped(x: Tensor, cap: number | undefined, tanh: (x: Tensor) => Tensor): Tensor {
  return cap === undefined ? x : mul(tanh(mul(x, 1 / cap)), cap);
}
