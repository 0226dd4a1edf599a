// GroupQueryAttention of com.microsoft: heads of keys and values that several heads of queries share, a
// cache of them that is longer than what is in it, texts of unequal lengths, rotations of places.

import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Rows } from '../../call.ts';
import { turnedPairs } from '../attention.ts';
import { hosted } from '../row.ts';
import { anglesAt, refuse } from './attention.ts';

interface Sizes {
  readonly heads: number;
  /** Heads of keys and values. */
  readonly shared: number;
  readonly size: number;
}

/** Queries, keys and values, [batch, heads, length, size], out of one tensor or three. */
function separate(call: Call): { parts: readonly [Tensor, Tensor, Tensor]; sizes: Sizes } {
  const [heads, shared] = [call.attributes.int('num_heads', 1), call.attributes.int('kv_num_heads', 1)];
  const query = call.tensor(0);
  const [key, value] = [call.optional(1), call.optional(2)];
  const isPacked = key === undefined || value === undefined;
  const size = query.shape[2]! / (isPacked ? heads + 2 * shared : heads);
  const perHead = (x: Tensor, count: number): Tensor =>
    sn.transpose(sn.reshape(x, [x.shape[0]!, x.shape[1]!, count, size]), 1, 2);
  const flat = isPacked
    ? sn.split(query, [heads * size, shared * size, shared * size], 2)
    : [query, key, value];
  const counts = [heads, shared, shared];
  const parts = flat.map((x, i) => perHead(x!, counts[i]!)) as [Tensor, Tensor, Tensor];
  return { parts, sizes: { heads, shared, size } };
}

/** Elements behind a text's past: those of `fresh` follow it, then zeros, in a cache of `keys`. */
function cached(fresh: Tensor, past: Tensor | undefined, before: Tensor, keys: number): Tensor {
  const [batch, heads, length, size] = fresh.shape as readonly [number, number, number, number];
  if (past === undefined)
    return sn.pad(fresh, [
      [0, 0],
      [0, 0],
      [0, keys - length],
      [0, 0],
    ]);
  const place = sn.sub(sn.reshape(sn.arange(keys), [1, 1, keys, 1]), before);
  const longer = sn.pad(past, [
    [0, 0],
    [0, 0],
    [0, keys - past.shape[2]!],
    [0, 0],
  ]);
  const isOld = sn.lt(place, 0);
  const isNew = sn.logicalAnd(sn.ge(place, 0), sn.lt(place, length));
  const at = sn.expand(sn.clamp(place, 0, length - 1), [batch, heads, keys, size]);
  const moved = length === 1 ? fresh : sn.gather(fresh, 2, at);
  return sn.where(isOld, longer, sn.where(isNew, moved, sn.zerosLike(longer)));
}

/** Scores that are capped, before masks. */
function capped(scores: Tensor, softcap: number): Tensor {
  return softcap === 0 ? scores : sn.mul(sn.tanh(sn.div(scores, softcap)), softcap);
}

function groupQuery(call: Call): (Tensor | undefined)[] {
  const { attributes } = call;
  for (const name of ['k_quant_type', 'v_quant_type'])
    refuse(call, name, attributes.string(name, 'NONE') === 'NONE');
  refuse(call, 'sliding_window_cache', attributes.int('sliding_window_cache', 0) === 0);
  refuse(call, 'qk_output', attributes.int('qk_output', 0) === 0);
  const {
    parts: [rawQ, rawK, v],
    sizes: { heads, shared, size },
  } = separate(call);
  const [batch, , length] = rawQ.shape as readonly [number, number, number];
  const total = call.needed(6);
  const [pastKeys, pastValues] = [3, 4].map((place) => call.optional(place));
  const keys = Math.max(total, pastKeys?.shape[2] ?? 0);
  // The first run of a text has no past, whatever cache is given.
  const isFirst = total === length || pastKeys === undefined || pastKeys.shape[2] === 0;
  const lengths = sn.reshape(sn.add(sn.cast(call.tensor(5), 'i32'), 1), [batch, 1, 1, 1]);
  const before = isFirst ? sn.zeros([batch, 1, 1, 1], { dtype: 'i32' }) : sn.sub(lengths, length);
  const weights = [14, 15].map((place) => call.optional(place));
  const normal = (x: Tensor, weight: Tensor | undefined): Tensor =>
    weight === undefined
      ? x
      : sn.rmsNorm(x, [size], weight, { eps: attributes.float('qk_norm_epsilon', 1e-6) });
  let [q, k] = [normal(rawQ, weights[0]), normal(rawK, weights[1])];
  if (attributes.int('do_rotary', 0) === 1) {
    const caches = [call.tensor(7), call.tensor(8)] as const;
    const own = call.optional(9);
    const places = own ?? sn.add(sn.reshape(before, [batch, 1]), sn.arange(length));
    const angles = anglesAt(caches, places);
    const turning = {
      isInterleaved: attributes.int('rotary_interleaved', 0) === 1,
      width: 2 * caches[0].shape[1]!,
    };
    [q, k] = [turnedPairs(q, angles, turning), turnedPairs(k, angles, turning)];
  }
  const past = isFirst ? [undefined, undefined] : [pastKeys, pastValues];
  const [allKeys, allValues] = [cached(k, past[0], before, keys), cached(v, past[1], before, keys)];
  // What a query sees: keys up to its own place, as far back as the window reaches.
  const column = sn.arange(keys);
  const place = sn.add(before, sn.reshape(sn.arange(length), [1, 1, length, 1]));
  const isCausal = attributes.int('causal', 1) === 1;
  let seen = isCausal ? sn.le(column, place) : sn.lt(column, sn.maximum(lengths, isFirst ? length : 0));
  const window = attributes.int('local_window_size', -1);
  if (window > 0) seen = sn.logicalAnd(seen, sn.gt(column, sn.sub(place, window)));
  const group = heads / shared;
  const inGroups = (x: Tensor, count: number): Tensor =>
    sn.reshape(x, [batch, shared, count, x.shape[2]!, size]);
  const grouped = [inGroups(q, group), inGroups(allKeys, 1), inGroups(allValues, 1)] as const;
  const given = attributes.float('scale', 0);
  const scale = given === 0 ? 1 / Math.sqrt(size) : given;
  const bias = call.optional(10);
  const allowed = sn.unsqueeze(seen, 1);
  const softcap = attributes.float('softcap', 0);
  const sink = call.optional(11);
  const isSmooth = attributes.int('smooth_softmax', 0) === 1 || sink !== undefined;
  let out: Tensor;
  if (softcap === 0 && !isSmooth && bias === undefined) {
    out = sn.scaledDotProductAttention(...grouped, { scale, mask: allowed });
  } else {
    const [gq, gk, gv] = grouped;
    const raw = capped(
      sn.mul(sn.matmul(sn.cast(gq, 'f32'), sn.transpose(sn.cast(gk, 'f32'))), scale),
      softcap,
    );
    const added = bias === undefined ? raw : sn.add(raw, perGroup(bias, shared, group));
    const scores = sn.where(allowed, added, -Infinity);
    // A score of its own, of no key, that takes its share: 0, or what the head has.
    const none =
      sink === undefined ? sn.zeros([]) : sn.reshape(sn.cast(sink, 'f32'), [1, shared, group, 1, 1]);
    const top = sn.amax(scores, -1, { keepdim: true });
    const most = isSmooth ? sn.maximum(top, none) : top;
    const powers = sn.exp(sn.sub(scores, most));
    const sum = sn.sum(powers, -1, { keepdim: true });
    const all = isSmooth ? sn.add(sum, sn.exp(sn.sub(none, most))) : sum;
    out = sn.cast(sn.matmul(sn.div(powers, all), sn.cast(gv, 'f32')), q.dtype);
  }
  const perHead = sn.reshape(out, [batch, heads, length, size]);
  return [
    sn.reshape(sn.transpose(perHead, 1, 2), [batch, length, heads * size]),
    call.wants(1) ? allKeys : undefined,
    call.wants(2) ? allValues : undefined,
  ];
}

/** What is added to scores, with its axis of heads in groups. */
function perGroup(bias: Tensor, shared: number, group: number): Tensor {
  const split = bias.shape[1] === 1 ? [1, 1] : [shared, group];
  return sn.reshape(sn.cast(bias, 'f32'), [bias.shape[0]!, ...split, ...bias.shape.slice(2)]);
}

export const grouped: Rows = { GroupQueryAttention: hosted([1], [6], groupQuery) };
