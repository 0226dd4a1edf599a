// Attention of com.microsoft: with the projections of queries, keys and values inside or outside of it,
// masks in several forms, and keys and values of steps before.

import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Rows } from '../../call.ts';
import { inHeads, spelledOut, turnedPairs } from '../attention.ts';
import { row } from '../row.ts';
import { scaledProduct, type Quantised } from './integers.ts';

/** Queries, keys and values in heads: [batch, heads, length, size]. */
type Heads = readonly [q: Tensor, k: Tensor, v: Tensor];

/** [batch, heads, length, size] as [batch, length, heads·size]. */
function flat(x: Tensor): Tensor {
  const [batch, heads, length, size] = x.shape as readonly [number, number, number, number];
  return sn.reshape(sn.transpose(x, 1, 2), [batch, length, heads * size]);
}

/** Refuses what an attribute asks for. */
export function refuse(call: Call, name: string, isUsual: boolean): void {
  if (!isUsual) call.fail(`attribute '${name}' is not supported with this value`);
}

/**
 * A mask of 0 and 1, of one row a text or a row a query, or the numbers of keys that texts have, or
 * where they end and begin: what is added to scores, [batch, 1, 1 or queries, keys].
 */
function paddingBias(call: Call, mask: Tensor, batch: number, keys: number): Tensor {
  const filler = call.attributes.float('mask_filter_value', -10000);
  const places = sn.arange(keys);
  let seen: Tensor;
  if (mask.rank === 1) {
    const count = mask.shape[0]!;
    if (count !== batch && count !== 2 * batch)
      call.fail(`a mask of ${count} numbers for ${batch} texts is not supported`);
    const column = (from: number): Tensor => sn.reshape(sn.narrow(mask, 0, from, batch), [batch, 1]);
    seen = sn.lt(places, column(0));
    if (count === 2 * batch) seen = sn.logicalAnd(seen, sn.ge(places, column(batch)));
  } else if (mask.rank <= 3) seen = sn.gt(mask, 0);
  else return call.fail('a mask of four axes is not supported');
  const rows =
    seen.rank === 3 ? sn.unsqueeze(seen, 1) : sn.reshape(seen, [seen.shape[0]!, 1, 1, seen.shape[1]!]);
  return sn.where(rows, 0, filler);
}

interface Inputs {
  readonly mask: Tensor | undefined;
  /** Added to the scores. */
  readonly bias: Tensor | undefined;
  /** Keys that lie before those of the first query. */
  readonly past: number;
}

/** softmax(q·kᵀ·scale + masks)·v, [batch, queries, heads·size], and its scores where asked for. */
function attended(
  call: Call,
  [q, k, v]: Heads,
  { mask, bias, past }: Inputs,
  shown?: number,
): [Tensor, Tensor?] {
  const [batch, , queries, size] = q.shape as readonly [number, number, number, number];
  const keys = k.shape[2]!;
  const given = call.attributes.float('scale', 0);
  const scale = given === 0 ? 1 / Math.sqrt(size) : given;
  const biases: Tensor[] = [];
  if (mask !== undefined) biases.push(paddingBias(call, mask, batch, keys));
  if (bias !== undefined) biases.push(sn.cast(bias, 'f32'));
  if (call.attributes.int('unidirectional', 0) === 1 && queries > 1) {
    const place = sn.add(sn.unsqueeze(sn.arange(queries), 1), past);
    biases.push(sn.where(sn.le(sn.arange(keys), place), 0, -Infinity));
  }
  const sum =
    biases.length === 0
      ? undefined
      : sn.cast(
          biases.reduce((x, y) => sn.add(x, y)),
          q.dtype,
        );
  if (shown !== undefined && call.wants(shown)) {
    const [out, scores] = spelledOut([q, k, v], sum, scale, 0, 2);
    return [flat(out), scores];
  }
  return [
    flat(sn.scaledDotProductAttention(q, k, v, { scale, ...(sum === undefined ? {} : { mask: sum }) })),
  ];
}

/** Attention to what a past [2, batch, heads, length, size] and x·W + b hold, and both together. */
function withPast(
  call: Call,
  projected: Tensor,
  mask: Tensor | undefined,
  past: Tensor | undefined,
  bias?: Tensor,
): (Tensor | undefined)[] {
  const { attributes } = call;
  const heads = attributes.int('num_heads', 1);
  refuse(call, 'do_rotary', attributes.int('do_rotary', 0) === 0);
  refuse(call, 'past_present_share_buffer', attributes.int('past_present_share_buffer', 0) === 0);
  const width = projected.shape.at(-1)!;
  const sizes = attributes.ints('qkv_hidden_sizes') ?? [width / 3, width / 3, width / 3];
  const [q, k, v] = sn.split(projected, sizes, 2).map((x) => inHeads(x, heads)) as [Tensor, Tensor, Tensor];
  const joined = (x: Tensor, at: number): Tensor =>
    past === undefined ? x : sn.cat([sn.select(past, 0, at), x], 2);
  const [keys, values] = [joined(k, 0), joined(v, 1)];
  const [out] = attended(call, [q, keys, values], { mask, bias, past: past?.shape[3] ?? 0 });
  return [out, call.wants(1) ? sn.stack([keys, values], 0) : undefined];
}

function attention(call: Call): (Tensor | undefined)[] {
  const bias = call.optional(2);
  const product = sn.matmul(call.tensor(0), call.tensor(1));
  const projected = bias === undefined ? product : sn.add(product, bias);
  return withPast(call, projected, call.optional(3), call.optional(4), call.optional(5));
}

function quantisedAttention(call: Call): (Tensor | undefined)[] {
  const a: Quantised = { value: call.tensor(0), scale: call.tensor(3), zero: call.optional(6) };
  const b: Quantised = { value: call.tensor(1), scale: call.tensor(4), zero: call.optional(7) };
  return withPast(call, scaledProduct(a, b, call.tensor(2)), call.optional(5), call.optional(8));
}

/** Queries, keys and values as they come: one by one, or packed into one or two. */
function separate(call: Call, heads: number): [Tensor, Tensor, Tensor] {
  const [first, second, third] = [0, 1, 2].map((place) => call.optional(place));
  const turned = (x: Tensor): Tensor => sn.transpose(x, 1, 2);
  const part = (x: Tensor, at: number): Tensor => turned(sn.select(x, 3, at));
  const bias = call.optional(3);
  // One vector for queries, keys and values, of which keys and values of a cache have none.
  const parts = (q: Tensor, k: Tensor, v: Tensor): [Tensor, Tensor, Tensor] => {
    if (bias === undefined) return [q, k, v];
    const widths = [q, k, v].map((x) => x.shape[1]! * x.shape[3]!);
    const own = sn.split(bias, widths, 0).map((x) => sn.reshape(x, [1, heads, 1, x.size / heads]));
    const isCache = second?.rank === 4;
    return [q, k, v].map((x, i) => (i > 0 && isCache ? x : sn.add(x, own[i]!))) as [Tensor, Tensor, Tensor];
  };
  if (first!.rank === 5) return parts(part(first!, 0), part(first!, 1), part(first!, 2));
  const q = inHeads(first!, heads);
  if (second === undefined) return call.fail("input 'key' is missing");
  if (second.rank === 5) return parts(q, part(second, 0), part(second, 1));
  if (third === undefined) return call.fail("input 'value' is missing");
  return parts(q, inHeads(second, heads), inHeads(third, heads));
}

function multiHead(call: Call): (Tensor | undefined)[] {
  const heads = call.attributes.int('num_heads', 1);
  for (const place of [8, 9])
    if (call.inputs[place] !== undefined)
      call.fail(`input ${place}: buffers that are shared are not supported`);
  const [q, ownKeys, ownValues] = separate(call, heads);
  const [pastKeys, pastValues] = [6, 7].map((place) => call.optional(place));
  const keys = pastKeys === undefined ? ownKeys : sn.cat([pastKeys, ownKeys], 2);
  const values = pastValues === undefined ? ownValues : sn.cat([pastValues, ownValues], 2);
  const inputs = { mask: call.optional(4), bias: call.optional(5), past: pastKeys?.shape[2] ?? 0 };
  const [out, scores] = attended(call, [q, keys, values], inputs, 3);
  return [out, call.wants(1) ? keys : undefined, call.wants(2) ? values : undefined, scores];
}

/** Angles of places: rows of the caches of cosines and sines, as [batch, 1, length, width/2]. */
export function anglesAt(caches: readonly [Tensor, Tensor], places: Tensor): [Tensor, Tensor] {
  const flatPlaces = sn.reshape(sn.cast(places, 'i32'), [places.size]);
  return caches.map((cache) => {
    const rows = sn.indexSelect(cache, 0, flatPlaces);
    return sn.unsqueeze(sn.reshape(rows, [...places.shape, cache.shape[1]!]), 1);
  }) as [Tensor, Tensor];
}

/**
 * Elements of heads turned in pairs, at places that are told, or that follow the one that is told. ONNX Runtime reads the
 * attribute `scale` and applies it nowhere, and so do we.
 */
function rotary(call: Call): Tensor {
  const { attributes } = call;
  refuse(call, 'is_packed_batching', attributes.int('is_packed_batching', 0) === 0);
  const given = call.tensor(0);
  const caches = [call.tensor(2), call.tensor(3)] as const;
  const own = attributes.int('rotary_embedding_dim', 0);
  const width = own || 2 * caches[0].shape[1]!;
  const named = attributes.int('num_heads', 0);
  const heads = named || (given.rank === 3 ? given.shape[2]! / width : 1);
  const x = inHeads(given, heads);
  const length = x.shape[2]!;
  const places = call.tensor(1);
  const all =
    places.rank === 2
      ? places
      : sn.add(sn.reshape(places, [1, 1]), sn.reshape(sn.arange(length), [1, length]));
  const isInterleaved = attributes.int('interleaved', 0) === 1;
  const turned = turnedPairs(x, anglesAt(caches, all), { isInterleaved, width });
  return given.rank === 4 ? turned : flat(turned);
}

export const attentionRows: Rows = {
  Attention: row([1], attention),
  MultiHeadAttention: row([1], multiHead),
  QAttention: row([1], quantisedAttention),
  RotaryEmbedding: row([1], rotary),
};
