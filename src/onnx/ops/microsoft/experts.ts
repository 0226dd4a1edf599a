// Mixtures of experts of com.microsoft: a router chooses the best experts for each token, whose results
// are added with their weights. Every expert computes every token, and what is not chosen counts 0.

import * as sn from '../../../operations/index.ts';
import type { Tensor } from '../../../tensor/tensor.ts';
import type { Call, Rows } from '../../call.ts';
import { row } from '../row.ts';
import { fastGelu } from './activation.ts';
import { refuse } from './attention.ts';
import { bitsOf, unpacked, widenedBlocks } from './blocks.ts';

/** What one layer of all experts has: [experts, outputs, inputs], [experts, outputs]. */
interface Layer {
  readonly weight: Tensor;
  readonly bias: Tensor | undefined;
}

/**
 * The share of each expert in each token, [tokens, experts]: 0 for those that are not chosen. Shares come
 * from the scores of all experts, of those that are chosen alone, or are given.
 */
function shares(call: Call, logits: Tensor, from: 'all' | 'chosen' | Tensor): Tensor {
  const { attributes } = call;
  const wide = sn.cast(logits, 'f32');
  const [, best] = sn.topk(wide, attributes.int('k', 1), 1);
  const chosen = sn.any(sn.eq(sn.unsqueeze(best, 2), sn.arange(wide.shape[1]!)), 1);
  if (from === 'chosen') return sn.softmax(sn.where(chosen, wide, -Infinity), 1);
  const weights = sn.where(chosen, from === 'all' ? sn.softmax(wide, 1) : sn.cast(from, 'f32'), 0);
  if (attributes.int('normalize_routing_weights', 0) === 0) return weights;
  return sn.div(weights, sn.sum(weights, 1, { keepdim: true }));
}

/** x of all experts through a layer: [experts, tokens, inputs] or [1, ..] to [experts, tokens, outputs]. */
function through(x: Tensor, { weight, bias }: Layer): Tensor {
  const out = sn.matmul(x, sn.transpose(sn.cast(weight, 'f32')));
  return bias === undefined ? out : sn.add(out, sn.unsqueeze(sn.cast(bias, 'f32'), 1));
}

function activation(call: Call, x: Tensor, gateless: Tensor | undefined): Tensor {
  const { attributes } = call;
  const name = attributes.string('activation_type', 'relu');
  switch (name) {
    case 'relu':
      return sn.relu(x);
    case 'gelu':
      return fastGelu(x);
    case 'silu':
      return gateless === undefined ? sn.silu(x) : sn.mul(sn.silu(x), gateless);
    case 'identity':
      return x;
    case 'swiglu': {
      const fusion = attributes.int('swiglu_fusion', 0);
      const width = x.shape.at(-1)! / 2;
      let [gate, linear] = [x, gateless];
      if (fusion === 1) {
        const pairs = sn.reshape(x, [...x.shape.slice(0, -1), width, 2]);
        [gate, linear] = [sn.select(pairs, -1, 0), sn.select(pairs, -1, 1)];
      } else if (fusion === 2) [gate, linear] = [sn.narrow(x, -1, 0, width), sn.narrow(x, -1, width, width)];
      if (linear === undefined) return call.fail("input 'fc3_experts_weights' is missing");
      const limit = attributes.float('swiglu_limit', Infinity);
      const [g, l] = [sn.clamp(gate, -Infinity, limit), sn.clamp(linear, -limit, limit)];
      const sigmoid = sn.sigmoid(sn.mul(g, attributes.float('activation_alpha', 1)));
      return sn.mul(sn.mul(g, sigmoid), sn.add(l, attributes.float('activation_beta', 0)));
    }
    default:
      return call.fail(`attribute 'activation_type': '${name}' is not supported`);
  }
}

function mixed(
  call: Call,
  [first, second, third]: readonly [Layer, Layer, Layer | undefined],
  from: 'all' | 'chosen' | Tensor,
): Tensor {
  refuse(call, 'use_sparse_mixer', call.attributes.int('use_sparse_mixer', 0) === 0);
  const x = call.tensor(0);
  const tokens = sn.reshape(sn.cast(x, 'f32'), [1, -1, x.shape.at(-1)!]);
  const hidden = activation(call, through(tokens, first), third && through(tokens, third));
  const results = through(hidden, second);
  const share = sn.unsqueeze(sn.transpose(shares(call, call.tensor(1), from)), 2);
  // An expert that counts nothing may have overflown.
  const counted = sn.where(sn.eq(share, 0), 0, sn.mul(results, share));
  return sn.cast(sn.reshape(sn.sum(counted, 0), x.shape), x.dtype);
}

function experts(call: Call): Tensor {
  const layer = (place: number): Layer => ({ weight: call.tensor(place), bias: call.optional(place + 1) });
  return mixed(call, [layer(2), layer(4), call.inputs[6] === undefined ? undefined : layer(6)], 'all');
}

/** Weights in blocks, or one scale a line. */
function quantisedLayer(call: Call, at: number, zeroAt: number): Layer {
  const bits = bitsOf(call, 'expert_weight_bits', 4);
  const numbers = unpacked(call.tensor(at), bits);
  const [count, outputs, inputs] = numbers.shape as readonly [number, number, number];
  const scales = call.tensor(at + 1);
  const perLine = scales.rank === 2 ? sn.unsqueeze(scales, 2) : scales;
  const lines = perLine.shape[2]!;
  const block = call.attributes.int('block_size', 0);
  refuse(call, 'block_size', block <= 0 || block * lines === inputs);
  const packed = call.optional(zeroAt);
  let zeros: Tensor | number = 2 ** (bits - 1);
  if (packed !== undefined) {
    const own = unpacked(packed, bits);
    zeros = own.rank === 2 ? sn.unsqueeze(own, 2) : own;
  }
  const blocks = sn.reshape(numbers, [count, outputs, lines, inputs / lines]);
  const weight = sn.reshape(widenedBlocks(blocks, perLine, zeros), [count, outputs, inputs]);
  return { weight, bias: call.optional(at + 2) };
}

function quantisedExperts(call: Call): Tensor {
  const { attributes } = call;
  refuse(call, 'quant_type', attributes.string('quant_type', 'int') === 'int');
  refuse(call, 'weights_prepacked', attributes.int('weights_prepacked', -1) !== 1);
  const third = call.inputs[8] === undefined ? undefined : quantisedLayer(call, 8, 13);
  return mixed(
    call,
    [quantisedLayer(call, 2, 11), quantisedLayer(call, 5, 12), third],
    call.optional(14) ?? 'chosen',
  );
}

export const expertRows: Rows = { MoE: row([1], experts), QMoE: row([1], quantisedExperts) };
