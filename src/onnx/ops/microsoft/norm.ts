// Normalisations of com.microsoft: of sums with what is skipped, of embeddings, of groups of channels.

import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Rows } from '../../call.ts';
import { row } from '../row.ts';

interface Normal {
  readonly out: Tensor;
  readonly mean: Tensor;
  readonly inverse: Tensor;
}

/** Standardised along the last axis in f32 at least, or only divided by the root mean square. */
function normalised(x: Tensor, eps: number, isSimple: boolean, gamma: Tensor, beta?: Tensor): Normal {
  const wide = x.dtype === 'f64' ? x : sn.cast(x, 'f32');
  const mean = sn.mean(wide, -1, { keepdim: true });
  const centred = isSimple ? wide : sn.sub(wide, mean);
  const inverse = sn.rsqrt(sn.add(sn.mean(sn.square(centred), -1, { keepdim: true }), eps));
  const scaled = sn.mul(sn.mul(centred, inverse), sn.cast(gamma, wide.dtype));
  const moved = beta === undefined ? scaled : sn.add(scaled, sn.cast(beta, wide.dtype));
  return { out: sn.cast(moved, x.dtype), mean, inverse };
}

const epsilon = (call: Call, otherwise: number): number => call.attributes.float('epsilon', otherwise);

/** The sum of x, of what skips it, and of a bias; its normal form, and the sum where it is asked for. */
function skipped(isSimple: boolean): (call: Call) => (Tensor | undefined)[] {
  return (call) => {
    const beta = isSimple ? undefined : call.optional(3);
    const bias = call.optional(isSimple ? 3 : 4);
    const pair = sn.add(call.tensor(0), call.tensor(1));
    const sum = bias === undefined ? pair : sn.add(pair, bias);
    const { out, mean, inverse } = normalised(sum, epsilon(call, 1e-12), isSimple, call.tensor(2), beta);
    const wanted = (place: number, value: Tensor): Tensor | undefined =>
      call.wants(place) ? value : undefined;
    return [out, isSimple ? undefined : wanted(1, mean), wanted(2, inverse), wanted(3, sum)];
  };
}

/** By the root mean square, along the axes from `axis` on. */
function simplified(call: Call): (Tensor | undefined)[] {
  const x = call.tensor(0);
  const axis = call.axis(call.attributes.int('axis', -1), x.rank);
  const lines = sn.reshape(x, [...x.shape.slice(0, axis), -1]);
  const gamma = sn.reshape(call.tensor(1), [-1]);
  const { out, inverse } = normalised(lines, epsilon(call, 1e-5), true, gamma);
  const ones = x.shape.map((dim, i) => (i < axis ? dim : 1));
  return [sn.reshape(out, x.shape), call.wants(1) ? sn.reshape(inverse, ones) : undefined];
}

/** Rows of a table for each number of a matrix. */
function looked(table: Tensor, ids: Tensor): Tensor {
  const rows = sn.indexSelect(table, 0, sn.reshape(sn.cast(ids, 'i32'), [ids.size]));
  return sn.reshape(rows, [...ids.shape, table.shape[1]!]);
}

/** Sums of word, place and segment vectors, normalised; and how many words each text has. */
function embedded(call: Call): (Tensor | undefined)[] {
  const ids = call.tensor(0);
  const [batch, length] = ids.shape as readonly [number, number];
  const [segments, segmentTable, places] = [call.optional(1), call.optional(4), call.optional(8)];
  const positions = call.tensor(3);
  const place = places === undefined ? sn.narrow(positions, 0, 0, length) : looked(positions, places);
  const words = sn.add(looked(call.tensor(2), ids), place);
  const sum =
    segments === undefined || segmentTable === undefined
      ? words
      : sn.add(words, looked(segmentTable, segments));
  const { out } = normalised(sum, epsilon(call, 1e-12), false, call.tensor(5), call.tensor(6));
  const mask = call.optional(7);
  const counts =
    mask === undefined ? sn.zeros([batch], { dtype: 'i32' }) : sn.sum(sn.cast(sn.eq(mask, 1), 'i32'), 1);
  return [out, call.wants(1) ? sn.cast(counts, 'i32') : undefined, call.wants(2) ? sum : undefined];
}

/** Groups of channels, which come last unless told; of a sum, where there is something to skip. */
function grouped(isSkipped: boolean): (call: Call) => (Tensor | undefined)[] {
  return (call) => {
    const { attributes } = call;
    const parts = isSkipped ? [3, 4].map((place) => call.optional(place)) : [];
    const sum = parts.reduce<Tensor>((x, part) => {
      if (part === undefined) return x;
      return sn.add(x, part.rank === 2 ? sn.reshape(part, [part.shape[0]!, 1, 1, part.shape[1]!]) : part);
    }, call.tensor(0));
    const isLast = attributes.int('channels_last', 1) === 1;
    const x = isLast ? sn.moveaxis(sum, -1, 1) : sum;
    const wide = sn.cast(x, 'f32');
    const [gamma, beta] = [1, 2].map((place) => sn.cast(call.tensor(place), 'f32'));
    const out = sn.groupNorm(wide, attributes.int('groups', 1), gamma, beta, { eps: epsilon(call, 1e-5) });
    const active = sn.cast(attributes.int('activation', 0) === 1 ? sn.silu(out) : out, x.dtype);
    return [isLast ? sn.moveaxis(active, 1, -1) : active, call.wants(1) ? sum : undefined];
  };
}

export const norms: Rows = {
  EmbedLayerNormalization: row([1], embedded),
  GroupNorm: row([1], grouped(false)),
  SimplifiedLayerNormalization: row([1], simplified),
  SkipGroupNorm: row([1], grouped(true)),
  SkipLayerNormalization: row([1], skipped(false)),
  SkipSimplifiedLayerNormalization: row([1], skipped(true)),
};

/** This one stands in the standard domain, although the standard does not have it. */
export const simplifiedNorm: Rows = { SimplifiedLayerNormalization: row([1], simplified) };
