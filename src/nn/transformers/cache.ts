// Keys and values that decoding keeps: room for as many positions as will come, so that every step has
// the same shapes and one compiled program.

import { TensorError } from '../../errors.ts';
import { unchecked, watchRange } from '../../tensor/debug.ts';
import { arange, full, zeros } from '../../tensor/ops/creation/creation.ts';
import { add } from '../../tensor/ops/elementwise/arithmetic.ts';
import { le, where } from '../../tensor/ops/elementwise/compare.ts';
import { show } from '../../tensor/ops/operand.ts';
import { scaledDotProductAttention } from '../../tensor/ops/product/attention.ts';
import { indexCopy } from '../../tensor/ops/shape/scatter.ts';
import { moveaxis, reshape } from '../../tensor/ops/shape/view.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { repeatHeads, splitHeads, type MultiHeadAttention } from '../attention.ts';
import type { Linear } from '../linear.ts';

/** Keys and values [.., kvHeads, room, d] of positions seen so far, and how many they are. */
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

/** An empty cache with room for `size` positions of each example; `lead` are the axes before a position's. */
export function emptyCache(
  { kvHeads, key, value }: MultiHeadAttention,
  lead: readonly number[],
  size: number,
): AttentionCache {
  const empty = ({ weight: { dtype, shape } }: Linear): Tensor =>
    zeros([...lead, kvHeads, size, Number(shape[0]) / kvHeads], { dtype });
  return { keys: empty(key), values: empty(value), length: zeros([], { dtype: 'i32' }) };
}

/** The projections of a memory, which all positions read. */
export function memoryOf(
  { kvHeads, key, value }: MultiHeadAttention,
  memory: Tensor,
): Pick<LayerCache, 'memoryKeys' | 'memoryValues'> {
  return {
    memoryKeys: splitHeads(key.forward(memory), kvHeads),
    memoryValues: splitHeads(value.forward(memory), kvHeads),
  };
}

/**
 * Watches that positions x [.., S, width] fit behind those of a cache: that more come than its room has
 * is refused here, that they do together when the next value is read, as with other positions.
 */
export function checkRoom(op: string, x: Tensor, { keys, length }: AttentionCache): void {
  const [room, count] = [keys.shape.at(-2)!, x.shape.at(-2)!];
  const hint = 'more room in startCache';
  if (count > room)
    throw new TensorError(
      'E_SHAPE',
      op,
      `${show(x)} are ${count} positions, and the cache holds ${room}`,
      hint,
    );
  watchRange(op, 'position', add(length, count - 1), 0, room, `a cache for ${room}`);
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
  const shared = attention.heads / attention.kvHeads;
  const seen = scaledDotProductAttention(q, repeatHeads(keys, shared), repeatHeads(values, shared), {
    dropout: attention.training ? attention.dropout : 0,
    ...(mask === undefined ? {} : { mask }),
  });
  return attention.output.forward(reshape(moveaxis(seen, -3, -2), x.shape));
}

/**
 * Causal attention of positions that follow those of a cache, and the cache with them. Beyond the
 * cache's room the result is NaN, if nobody has checked (`checkRoom`): lengths are known on the device alone.
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
    unchecked(() => indexCopy(old, old.rank - 2, places, splitHeads(fresh, attention.kvHeads)));
  const keys = written(cache.keys, attention.key.forward(x));
  const values = written(cache.values, attention.value.forward(x));
  const mask = le(arange(room), reshape(places, [count, 1]));
  const length = add(cache.length, count);
  const output = attendKept(attention, x, keys, values, mask);
  const held = where(le(length, room), output, full([], NaN, { dtype: output.dtype }));
  return [held, { keys, values, length }];
}
