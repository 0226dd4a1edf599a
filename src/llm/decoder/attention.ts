// Attention of tokens that follow those of a cache, whose keys and values join it first: T tokens of one text, or one
// token of each of several texts, which have a cache each. Heads of queries share heads of keys and values in groups
// (Ainslie et al., 2023). The position is a number of the run: the mask ends the kernel's loop over the keys at those
// that exist.

import {
  add,
  arange,
  cat,
  expand,
  flip,
  gt,
  le,
  logicalAnd,
  matmul,
  mul,
  narrow,
  permute,
  reshape,
  scaledDotProductAttention,
  softmax,
  stack,
  sub,
  tanh,
  transpose,
  unsqueeze,
  where,
} from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { ModelConfig, RopeConfig } from '../config/config.ts';
import { appended, cached, type DecoderLayerCache } from './cache.ts';
import { capped, norm, product, products } from './linear.ts';
import type { AttentionWeights } from './weights.ts';

/** Where the tokens of one text stand: i32, []. */
export interface TextPlace {
  /** What the first token sees: the keys up to this position. */
  readonly position: Tensor;
  /** Where its key and value are written: at its position, except of a row that is no token of a text. */
  readonly slot: Tensor;
}

/** Where the tokens of a call stand. */
export interface TokenPosition {
  /** Of each text, which have equally many tokens, one text behind the other. */
  readonly texts: readonly TextPlace[];
  /** Cosines and sines of each token: [T, 2, dims]. */
  readonly turns: Tensor;
  /** Those of layers with a window. */
  readonly windowTurns: Tensor;
}

/** Attention of a layer on x [T, width], and the cache of each text with the keys and values of its tokens. */
export function attend(
  x: Tensor,
  weights: AttentionWeights,
  caches: readonly DecoderLayerCache[],
  place: TokenPosition,
  config: ModelConfig,
  layer: number,
): [output: Tensor, caches: readonly DecoderLayerCache[]] {
  const { heads, keyHeads, headSize, width, epsilon } = config;
  const rows = x.shape[0]!;
  const [queries, keys] = [heads * headSize, keyHeads * headSize];
  const [q, k, v] = products(x, weights.qkv, [queries, keys, keys]) as [Tensor, Tensor, Tensor];
  const window = config.windows[layer];
  const [turns, rope] =
    window === undefined ? [place.turns, config.rope] : [place.windowTurns, config.windowRope];
  const turned = (flat: Tensor, count: number, weight: Tensor | undefined): Tensor => {
    const split = reshape(flat, [rows, count, headSize]);
    return rotate(weight === undefined ? split : norm(split, weight, epsilon), turns, rope);
  };
  const query = turned(q, heads, weights.queryNorm);
  const fresh = stack([turned(k, keyHeads, weights.keyNorm), reshape(v, [rows, keyHeads, headSize])]);
  const joining = permute(fresh, [0, 2, 1, 3]);
  const seen = caches.map((cache, i) =>
    appended(cache, ofText(joining, 2, i, caches.length), place.texts[i]!.slot),
  );
  const found = seen.map((cache, i) =>
    looked(ofText(query, 0, i, seen.length), cache, place.texts[i]!.position, config, window),
  );
  return [product(found.length === 1 ? found[0]! : cat(found, 0), weights.output, width), seen];
}

/** What belongs to one of `texts` along an axis. */
function ofText(x: Tensor, axis: number, text: number, texts: number): Tensor {
  const rows = x.shape[axis]! / texts;
  return texts === 1 ? x : narrow(x, axis, text * rows, rows);
}

/** What queries [T, heads, size] find: [T, heads · size]. */
function looked(
  query: Tensor,
  cache: DecoderLayerCache,
  position: Tensor,
  config: ModelConfig,
  window: number | undefined,
): Tensor {
  const { heads, keyHeads, headSize } = config;
  const rows = query.shape[0]!;
  const group = heads / keyHeads;
  // Of one token, the heads that share keys are the rows of one product.
  const merged = rows === 1;
  const grouped = merged
    ? reshape(query, [keyHeads, group, headSize])
    : permute(reshape(query, [rows, keyHeads, group, headSize]), [1, 2, 0, 3]);
  const [k, v] = ([0, 1] as const).map((which) => {
    const part = cached(cache, which);
    return merged ? part : unsqueeze(part, 1);
  });
  const mask = maskOf(rows, cache.shape[2]!, position, window);
  const found =
    config.scoreCap === undefined
      ? scaledDotProductAttention(grouped, k!, v!, { mask, scale: config.scale })
      : cappedAttention(grouped, k!, v!, mask, config);
  return reshape(merged ? found : permute(found, [2, 0, 1, 3]), [rows, heads * headSize]);
}

/** Which keys [room] each of the rows sees: those up to its own position, as far back as its window. */
function maskOf(rows: number, room: number, position: Tensor, window: number | undefined): Tensor {
  const places = rows === 1 ? position : add(reshape(arange(rows), [rows, 1]), position);
  const keys = arange(room);
  const before = le(keys, places);
  const mask = window === undefined ? before : logicalAnd(before, gt(keys, sub(places, window)));
  return rows === 1 ? reshape(mask, [1, room]) : mask;
}

/** Attention whose scores are bounded by a smooth cap. */
function cappedAttention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, config: ModelConfig): Tensor {
  const scores = capped(mul(matmul(q, transpose(k)), config.scale), config.scoreCap, tanh);
  const visible = where(expand(mask, scores.shape), scores, -Infinity);
  return matmul(softmax(visible, -1), v);
}

// Rotary embeddings: pairs of elements of each head turned by an angle that grows with the position.

/**
 * Heads x [T, heads, size] turned by the angles of T positions: `turns` [T, 2, dims] has the cosines
 * and the signed sines of each (config/rope.ts).
 */
function rotate(x: Tensor, turns: Tensor, { layout, dims }: RopeConfig): Tensor {
  const [rows, heads, size] = x.shape as readonly [number, number, number];
  const pairs = layout === 'interleaved' ? [dims / 2, 2] : [2, dims / 2];
  const shaped = [rows, heads, ...pairs];
  const turning = reshape(dims === size ? x : narrow(x, 2, 0, dims), shaped);
  const [cos, sin] = [0, 1].map((which) => reshape(narrow(turns, 1, which, 1), [rows, 1, ...pairs]));
  const exchanged = flip(turning, layout === 'interleaved' ? 3 : 2);
  const turned = reshape(add(mul(turning, cos!), mul(exchanged, sin!)), [rows, heads, dims]);
  return dims === size ? turned : cat([turned, narrow(x, 2, dims, size - dims)], 2);
}
