// Keys and values that decoding keeps: room for as many positions as will come, so that every step has
// the same shapes and one compiled program.

import { unchecked } from '../../tensor/debug.ts';
import { arange, full, zeros } from '../../tensor/ops/creation/creation.ts';
import { add } from '../../tensor/ops/elementwise/arithmetic.ts';
import { le, where } from '../../tensor/ops/elementwise/compare.ts';
import { scaledDotProductAttention } from '../../tensor/ops/product/attention.ts';
import { indexCopy } from '../../tensor/ops/shape/scatter.ts';
import { moveaxis, reshape } from '../../tensor/ops/shape/view.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { splitHeads, type MultiHeadAttention } from '../attention.ts';

/** Keys and values [.., heads, room, d] of positions seen so far, and how many they are. */
export interface AttentionCache {
  readonly keys: Tensor;
  readonly values: Tensor;
  /** i32, []. */
  readonly length: Tensor;
}

/** What one layer of a decoder keeps: its own positions, and the memory's keys and values. */
export interface LayerCache extends AttentionCache {
  readonly memoryKeys: Tensor;
  readonly memoryValues: Tensor;
}

/** An empty cache with room for `size` positions, and the projections of the memory. */
export function emptyCache(
  own: MultiHeadAttention,
  other: MultiHeadAttention,
  memory: Tensor,
  size: number,
): LayerCache {
  const width = memory.shape.at(-1)!;
  const shape = [...memory.shape.slice(0, -2), own.heads, size, width / own.heads];
  const { dtype } = own.key.weight;
  return {
    keys: zeros(shape, { dtype }),
    values: zeros(shape, { dtype }),
    length: zeros([], { dtype: 'i32' }),
    memoryKeys: splitHeads(other.key.forward(memory), other.heads),
    memoryValues: splitHeads(other.value.forward(memory), other.heads),
  };
}

/** Attention of x [.., S, width] to keys and values that are there. */
export function attendKept(
  attention: MultiHeadAttention,
  x: Tensor,
  keys: Tensor,
  values: Tensor,
  mask?: Tensor,
): Tensor {
  const q = splitHeads(attention.query.forward(x), attention.heads);
  const seen = scaledDotProductAttention(q, keys, values, {
    dropout: attention.training ? attention.dropout : 0,
    ...(mask === undefined ? {} : { mask }),
  });
  return attention.output.forward(reshape(moveaxis(seen, -3, -2), x.shape));
}

/**
 * Causal attention of positions that follow those of a cache, and the cache with them. Beyond the
 * cache's room the result is NaN: lengths are known on the device alone.
 */
export function attendCached(
  attention: MultiHeadAttention,
  x: Tensor,
  cache: AttentionCache,
): [output: Tensor, cache: AttentionCache] {
  const room = cache.keys.shape.at(-2)!;
  const count = x.shape.at(-2)!;
  const places = add(arange(count), cache.length);
  const written = (old: Tensor, fresh: Tensor): Tensor =>
    unchecked(() => indexCopy(old, old.rank - 2, places, splitHeads(fresh, attention.heads)));
  const keys = written(cache.keys, attention.key.forward(x));
  const values = written(cache.values, attention.value.forward(x));
  const mask = le(arange(room), reshape(places, [count, 1]));
  const length = add(cache.length, count);
  const output = attendKept(attention, x, keys, values, mask);
  const held = where(le(length, room), output, full([], NaN, { dtype: output.dtype }));
  return [held, { keys, values, length }];
}
