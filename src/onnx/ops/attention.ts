// Attention and its relatives: rotary position embeddings, linear attention with a state, and short
// causal convolutions with a state.

import * as sn from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Call, Rows } from '../call.ts';
import { row } from './row.ts';

/** [batch, length, heads·size] as [batch, heads, length, size]; four axes stay. */
export function inHeads(x: Tensor, heads: number): Tensor {
  if (x.rank === 4) return x;
  const [batch, length, width] = x.shape as readonly [number, number, number];
  return sn.transpose(sn.reshape(x, [batch, length, heads, width / heads]), 1, 2);
}

/**
 * What the queries may see, as a tensor that broadcasts to [batch, heads, queries, keys]: bool, or
 * added to the scores.
 */
function maskOf(call: Call, q: Tensor, keys: number, past: number): Tensor | undefined {
  const given = call.optional(3);
  const filled = call.optional(6);
  let mask = given === undefined ? undefined : padded(inScores(given, q), keys);
  const queries = q.shape[2]!;
  const column = sn.arange(keys);
  const lengths =
    filled === undefined ? undefined : sn.reshape(sn.cast(filled, 'i32'), [q.shape[0]!, 1, 1, 1]);
  const conditions: Tensor[] = [];
  // The last query stands at the last key that is filled.
  const place = sn.add(
    sn.unsqueeze(sn.arange(queries), 1),
    lengths === undefined ? past : sn.sub(lengths, queries),
  );
  const [left, right] = ['left', 'right'].map((side) => call.attributes.int(`${side}_window_size`, -1));
  if (call.attributes.int('is_causal', 0) === 1) conditions.push(sn.le(column, place));
  if (left! >= 0) conditions.push(sn.ge(column, sn.sub(place, left!)));
  if (right! >= 0) conditions.push(sn.le(column, sn.add(place, right!)));
  if (lengths !== undefined) conditions.push(sn.lt(column, lengths));
  for (const allowed of conditions) {
    if (mask === undefined) mask = allowed;
    else mask = mask.dtype === 'bool' ? sn.logicalAnd(mask, allowed) : sn.where(allowed, mask, -Infinity);
  }
  return mask;
}

/** What is no condition is added to the scores, in their type. */
function inScores(mask: Tensor, q: Tensor): Tensor {
  return mask.dtype === 'bool' ? mask : sn.cast(mask, q.dtype);
}

/** A mask of fewer keys hides the rest. */
function padded(mask: Tensor, keys: number): Tensor {
  const missing = keys - mask.shape.at(-1)!;
  if (missing <= 0) return mask;
  if (mask.dtype !== 'bool') return sn.pad(mask, [[0, missing]], { value: -Infinity });
  return sn.cast(sn.pad(sn.cast(mask, 'i32'), [[0, missing]]), 'bool');
}

/** A mask with its heads axis split into groups of `group` heads that share keys. */
export function grouped(mask: Tensor, group: number): Tensor {
  if (mask.rank < 3) return mask;
  const heads = mask.shape.at(-3)!;
  const split = heads === 1 ? [1, 1] : [heads / group, group];
  return sn.reshape(mask, [...mask.shape.slice(0, -3), ...split, ...mask.shape.slice(-2)]);
}

function attention(call: Call): (Tensor | undefined)[] {
  const { attributes } = call;
  const isFlat = call.value(0).shape.length === 3;
  const q = inHeads(call.tensor(0), attributes.int('q_num_heads', 1));
  const fresh = [1, 2].map((place) => inHeads(call.tensor(place), attributes.int('kv_num_heads', 1)));
  const [k, v] = fresh.map((x, i) => {
    const past = call.optional(4 + i);
    return past === undefined ? x : sn.cat([past, x], 2);
  }) as [Tensor, Tensor];
  const [batch, heads, queries, size] = q.shape as readonly [number, number, number, number];
  const [shared, keys] = [k.shape[1]!, k.shape[2]!];
  const group = heads / shared;
  if (!Number.isInteger(group))
    call.fail(`${heads} heads of queries are no multiple of ${shared} heads of keys`);
  const mask = maskOf(call, q, keys, keys - fresh[0]!.shape[2]!);
  const inGroups = [q, k, v].map((x, i) =>
    sn.reshape(x, [batch, shared, i === 0 ? group : 1, x.shape[2]!, x.shape[3]!]),
  ) as [Tensor, Tensor, Tensor];
  const given = attributes.float('scale', 0);
  const scale = given === 0 ? 1 / Math.sqrt(size) : given;
  const softcap = attributes.float('softcap', 0);
  const seen = mask === undefined ? undefined : grouped(mask, group);
  let out: Tensor;
  let shown: Tensor | undefined;
  if (softcap === 0 && !call.wants(3)) {
    out = sn.scaledDotProductAttention(...inGroups, { scale, ...(seen === undefined ? {} : { mask: seen }) });
  } else {
    [out, shown] = spelledOut(inGroups, seen, scale, softcap, attributes.int('qk_matmul_output_mode', 0));
    shown = sn.reshape(shown, [batch, heads, queries, keys]);
  }
  const perHead = sn.reshape(out, [batch, heads, queries, v.shape[3]!]);
  const y = isFlat ? sn.reshape(sn.transpose(perHead, 1, 2), [batch, queries, heads * v.shape[3]!]) : perHead;
  return [y, k, v, shown];
}

/**
 * Attention step by step, for scores that are capped or asked for: as they come, capped, masked, or
 * as weights.
 */
export function spelledOut(
  [q, k, v]: readonly [Tensor, Tensor, Tensor],
  mask: Tensor | undefined,
  scale: number,
  softcap: number,
  shows: number,
): [out: Tensor, shown: Tensor] {
  const scores = sn.mul(sn.matmul(q, sn.transpose(k)), scale);
  const capped = softcap === 0 ? scores : sn.mul(sn.tanh(sn.div(scores, softcap)), softcap);
  const bias = mask === undefined || mask.dtype !== 'bool' ? mask : sn.where(mask, 0, -Infinity);
  const masked = bias === undefined ? capped : sn.add(capped, sn.cast(bias, capped.dtype));
  const raw = sn.softmax(masked, -1);
  // A query that sees nothing gives zeros.
  const isBlind = bias === undefined ? undefined : sn.eq(sn.amax(bias, -1, { keepdim: true }), -Infinity);
  const weights = isBlind === undefined ? raw : sn.where(isBlind, sn.zerosLike(raw), raw);
  return [sn.matmul(weights, v), [scores, capped, masked, weights][shows] ?? scores];
}

/** How pairs of elements are turned. */
export interface Turning {
  /** Pairs lie side by side, not half a head apart. */
  readonly isInterleaved: boolean;
  /** How much of a head is turned. */
  readonly width: number;
}

/**
 * [batch, heads, length, size] with pairs of elements turned by angles whose sines and cosines are
 * given, [batch, 1, length, width/2] or as far as that broadcasts.
 */
export function turnedPairs(
  x: Tensor,
  [cos, sin]: readonly [Tensor, Tensor],
  { isInterleaved, width }: Turning,
): Tensor {
  const size = x.shape[3]!;
  const turned = sn.narrow(x, 3, 0, width);
  const pairs = isInterleaved
    ? sn.reshape(turned, [...x.shape.slice(0, 3), width / 2, 2])
    : sn.transpose(sn.reshape(turned, [...x.shape.slice(0, 3), 2, width / 2]));
  const [a, b] = [sn.select(pairs, -1, 0), sn.select(pairs, -1, 1)];
  const half =
    cos.shape.at(-1) === width / 2 ? [cos, sin] : [cos, sin].map((t) => sn.narrow(t, -1, 0, width / 2));
  const [c, s] = half as [Tensor, Tensor];
  const result = [sn.sub(sn.mul(c, a), sn.mul(s, b)), sn.add(sn.mul(s, a), sn.mul(c, b))];
  const joined = isInterleaved ? sn.reshape(sn.stack(result, -1), turned.shape) : sn.cat(result, -1);
  return width === size ? joined : sn.cat([joined, sn.narrow(x, 3, width, size - width)], 3);
}

/** Pairs of elements turned by angles whose sines and cosines are given by place. */
function rotary(call: Call): Tensor {
  const { attributes } = call;
  const given = call.tensor(0);
  const x = inHeads(given, attributes.int('num_heads', 1));
  const places = call.optional(3);
  const angles = [1, 2].map((at) => {
    const cache = call.tensor(at);
    const chosen =
      places === undefined
        ? cache
        : sn.reshape(sn.indexSelect(cache, 0, sn.reshape(places, [places.size])), [
            ...places.shape,
            cache.shape.at(-1)!,
          ]);
    return sn.unsqueeze(chosen, 1);
  }) as [Tensor, Tensor];
  const width = attributes.int('rotary_embedding_dim', 0) || x.shape[3]!;
  const [cosines] = angles;
  if (cosines.shape.at(-1) !== width / 2)
    call.fail(`${width} elements of a head are turned by ${width / 2} angles, got ${cosines.shape.at(-1)}`);
  const whole = turnedPairs(x, angles, { isInterleaved: attributes.int('interleaved', 0) === 1, width });
  return given.rank === 4 ? whole : sn.reshape(sn.transpose(whole, 1, 2), given.shape);
}

/**
 * Attention without a softmax: a matrix a head that forgets, is corrected and read at every step.
 */
function linearAttention(call: Call): Tensor[] {
  const { attributes } = call;
  const [heads, shared] = [attributes.int('q_num_heads', 1), attributes.int('kv_num_heads', 1)];
  const rule = attributes.string('update_rule', 'gated_delta');
  const query = call.tensor(0);
  const [batch, steps] = query.shape as readonly [number, number];
  const perHead = (x: Tensor, count: number): Tensor =>
    sn.cast(sn.reshape(x, [batch, steps, count, x.shape[2]! / count]), 'f32');
  const [q, k, v] = [perHead(query, heads), perHead(call.tensor(1), shared), perHead(call.tensor(2), shared)];
  const [decay, beta] = [call.optional(4), call.optional(5)];
  const decays = rule.startsWith('gated') && decay !== undefined ? perHead(decay, shared) : undefined;
  const betas = beta === undefined ? undefined : sn.cast(sn.unsqueeze(beta, 3), 'f32');
  const [dk, dv] = [k.shape[3]!, v.shape[3]!];
  const scale = attributes.float('scale', 0) || 1 / Math.sqrt(q.shape[3]!);
  const past = call.optional(3);
  let state = past === undefined ? sn.zeros([batch, shared, dk, dv]) : sn.cast(past, 'f32');
  const outputs: Tensor[] = [];
  for (let t = 0; t < steps; t++) {
    const [key, value] = [sn.unsqueeze(sn.select(k, 1, t), 3), sn.select(v, 1, t)];
    if (decays !== undefined) state = sn.mul(state, sn.unsqueeze(sn.exp(sn.select(decays, 1, t)), 3));
    let written = value;
    if (rule.endsWith('delta')) {
      const known = sn.squeeze(sn.matmul(sn.transpose(state), key), 3);
      written = sn.sub(value, known);
      if (betas !== undefined) written = sn.mul(sn.select(betas, 1, t), written);
    }
    state = sn.add(state, sn.matmul(key, sn.unsqueeze(written, 2)));
    const asked = sn.reshape(sn.select(q, 1, t), [batch, shared, heads / shared, q.shape[3]!]);
    outputs.push(sn.reshape(sn.mul(sn.matmul(asked, state), scale), [batch, heads * dv]));
  }
  return [sn.cast(sn.stack(outputs, 1), query.dtype), sn.cast(state, (past ?? query).dtype)];
}

/** A depthwise convolution over the past and the present, and the end of both for the next call. */
function causalConv(call: Call): Tensor[] {
  const [x, weight, bias] = [call.tensor(0), call.tensor(1), call.optional(2)];
  const [batch, channels] = x.shape as readonly [number, number];
  const reach = weight.shape[2]! - 1;
  const past = call.optional(3) ?? sn.zeros([batch, channels, reach], { dtype: x.dtype });
  const whole = reach === 0 ? x : sn.cat([past, x], 2);
  const out = sn.conv1d(whole, weight, bias, { groups: channels });
  const name = call.attributes.string('activation', 'none');
  const activated = name === 'silu' || name === 'swish' ? sn.silu(out) : out;
  return [activated, sn.narrow(whole, 2, whole.shape[2]! - reach, reach)];
}

function swiGlu(call: Call): Tensor {
  const gate = call.tensor(0);
  return sn.mul(sn.mul(gate, sn.sigmoid(sn.mul(gate, call.attributes.float('alpha', 1)))), call.tensor(1));
}

export const attentions: Rows = {
  Attention: row([23, 24, 25], attention),
  CausalConvWithState: row([27], causalConv),
  LinearAttention: row([27], linearAttention),
  RotaryEmbedding: row([23], rotary),
  SwiGLU: row([28], swiGlu),
};
