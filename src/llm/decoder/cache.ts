// The cache of a layer: keys and values of the tokens so far, as floats or in blocks of 8 bits that attention
// decodes where it reads them.

import {
  abs,
  bitcast,
  bitwiseAnd,
  bitwiseLeftShift,
  bitwiseRightShift,
  cast,
  cat,
  div,
  dynamicUpdateSlice,
  gt,
  max,
  mul,
  narrow,
  reshape,
  round,
  select,
  sum,
  tensor,
  toFloat,
  toInt,
  unsqueeze,
  where,
  zeros,
} from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { ModelConfig } from '../config/config.ts';

/** What keys and values may be kept in. `q8_0`: blocks of 32 whole numbers of 8 bits, each with a scale in f32. */
export const cacheTypes = ['f32', 'f16', 'q8_0'] as const;
/** One of `cacheTypes`. */
export type CacheType = (typeof cacheTypes)[number];

/** Whether a value names a type of caches. */
export function isCacheType(value: unknown): value is CacheType {
  return cacheTypes.some((type) => type === value);
}

/**
 * Keys, then values, of one layer: [2, key heads, room, head size], f32 or f16. Of q8_0 i32 [2, key heads, room, words]:
 * four codes a word, then the bits of the scales.
 */
export type DecoderLayerCache = Tensor;

/** Values a block of q8_0. */
export const blockSize = 32;

/** Bytes that so many values of a head take. */
export function cacheBytes(type: CacheType, headSize: number): number {
  return type === 'q8_0' ? headSize + 4 * (headSize / blockSize) : headSize * (type === 'f16' ? 2 : 4);
}

/** Empty caches of all layers. */
export function emptyCache(config: ModelConfig, room: number, type: CacheType): DecoderLayerCache[] {
  const { keyHeads, headSize } = config;
  const isFloat = type !== 'q8_0';
  const shape = [2, keyHeads, room, isFloat ? headSize : cacheBytes(type, headSize) / 4];
  return Array.from({ length: config.layers }, () => zeros(shape, { dtype: isFloat ? type : 'i32' }));
}

/** The cache with keys and values [2, key heads, T, head size] (f32) from `position` (i32, []) on. */
export function appended(cache: DecoderLayerCache, fresh: Tensor, position: Tensor): DecoderLayerCache {
  const update = cache.dtype === 'i32' ? encoded(fresh) : cast(fresh, cache.dtype);
  return dynamicUpdateSlice(cache, update, [0, 0, position, 0]);
}

/** Keys (0) or values (1) of a cache: f32 [key heads, room, head size], in a kernel that reads them. */
export function cached(cache: DecoderLayerCache, which: 0 | 1): Tensor {
  const part = select(cache, 0, which);
  return cache.dtype === 'i32' ? decoded(part) : toFloat(part);
}

/** Blocks of values that are all smaller than this are kept as zeros. */
const leastScale = 1e-30;

/** What a code is moved by in its word, from the right, and from the left. */
const byteSteps = [0, 8, 16, 24] as const;

/** f32 [..., size] as words [..., size / 4 + size / 32]. */
function encoded(x: Tensor): Tensor {
  const outer = x.shape.slice(0, -1);
  const size = x.shape.at(-1)!;
  const blocks = reshape(x, [...outer, size / blockSize, blockSize]);
  const scale = mul(max(abs(blocks), -1, { keepdim: true }), 1 / 127);
  const inverse = where(gt(scale, leastScale), div(1, scale), 0);
  const codes = reshape(toInt(round(mul(blocks, inverse))), [...outer, size / 4, 4]);
  const powers = tensor(Int32Array.from(byteSteps, (step) => 2 ** step));
  // Their bits do not meet, so the sum is the word.
  const words = sum(mul(bitwiseAnd(codes, 255), powers), -1);
  return cat([words, bitcast(reshape(scale, [...outer, size / blockSize]), 'i32')], -1);
}

/** Words [..., size / 4 + size / 32] as f32 [..., size]. */
function decoded(x: Tensor): Tensor {
  const outer = x.shape.slice(0, -1);
  const blocks = x.shape.at(-1)! / (blockSize / 4 + 1);
  const words = unsqueeze(narrow(x, -1, 0, blocks * (blockSize / 4)), -1);
  const scales = unsqueeze(bitcast(narrow(x, -1, blocks * (blockSize / 4), blocks), 'f32'), -1);
  const upper = tensor(Int32Array.from(byteSteps, (step) => 24 - step));
  const codes = toFloat(bitwiseRightShift(bitwiseLeftShift(words, upper), 24));
  const values = mul(reshape(codes, [...outer, blocks, blockSize]), scales);
  return reshape(values, [...outer, blocks * blockSize]);
}
