// A decoder-only transformer (Vaswani et al., 2017; norms first, as in GPT-2) as functions of a
// tree of parameters: what the GPT workloads count, and what the demo and the character example
// train.

import * as sn from '../index.ts';
import type { Tensor } from '../index.ts';

/** Scale and shift of a norm, or the matrix [out, in] and bias of a linear map. */
export interface AffineWeights {
  readonly weight: Tensor;
  readonly bias: Tensor;
}

/** One layer; a type alias, so that it is a tree. */
export type LayerWeightTree = {
  readonly norm1: AffineWeights;
  /** Queries, keys and values in one product: [3·width, width]. */
  readonly qkv: AffineWeights;
  readonly project: AffineWeights;
  readonly norm2: AffineWeights;
  readonly up: AffineWeights;
  readonly down: AffineWeights;
};

export type DecoderParameters = {
  /** [vocabulary, width] */
  readonly tokens: Tensor;
  /** [context, width] */
  readonly positions: Tensor;
  readonly blocks: readonly LayerWeightTree[];
  readonly norm: AffineWeights;
  /** [vocabulary, width] */
  readonly head: Tensor;
};

export interface DecoderSizes {
  readonly vocabulary: number;
  readonly context: number;
  readonly width: number;
  readonly heads: number;
  readonly layers: number;
}

function norm(width: number): AffineWeights {
  return { weight: sn.ones([width]), bias: sn.zeros([width]) };
}

/** Weights that keep the variance of what passes, times `gain`. */
function linear(from: number, to: number, gain = 1): AffineWeights {
  return { weight: sn.normal([to, from], { std: gain / Math.sqrt(from) }), bias: sn.zeros([to]) };
}

/** Fresh parameters of a layer; `depth` layers share the growth of the residual stream. */
export function initBlock(width: number, hidden: number, depth: number): LayerWeightTree {
  const gain = 1 / Math.sqrt(2 * depth);
  return {
    norm1: norm(width),
    qkv: linear(width, 3 * width),
    project: linear(width, width, gain),
    norm2: norm(width),
    up: linear(width, hidden),
    down: linear(hidden, width, gain),
  };
}

/** Fresh parameters; the head starts near zero, so that the first loss is about ln(vocabulary). */
export function initDecoder({ vocabulary, context, width, layers }: DecoderSizes): DecoderParameters {
  return {
    tokens: sn.normal([vocabulary, width], { std: 0.5 }),
    positions: sn.normal([context, width], { std: 0.1 }),
    blocks: Array.from({ length: layers }, () => initBlock(width, 4 * width, layers)),
    norm: norm(width),
    head: sn.normal([vocabulary, width], { std: 0.02 }),
  };
}

function normed(x: Tensor, { weight, bias }: AffineWeights): Tensor {
  return sn.layerNorm(x, x.shape.at(-1)!, weight, bias);
}

/**
 * One layer over x [batch, positions, width]: causal attention, then a perceptron, each added to
 * what came in.
 */
export function block(x: Tensor, p: LayerWeightTree, heads: number): Tensor {
  const [batch, length, width] = x.shape as [number, number, number];
  const qkv = sn
    .linear(normed(x, p.norm1), p.qkv.weight, p.qkv.bias)
    .reshape([batch, length, 3, heads, width / heads])
    .permute([2, 0, 3, 1, 4]);
  const [q, k, v] = qkv.unbind() as [Tensor, Tensor, Tensor];
  const seen = sn
    .scaledDotProductAttention(q, k, v, { isCausal: true })
    .permute([0, 2, 1, 3])
    .reshape([batch, length, width]);
  const attended = sn.linear(seen, p.project.weight, p.project.bias).add(x);
  const hidden = sn.linear(normed(attended, p.norm2), p.up.weight, p.up.bias).gelu({ approximate: 'tanh' });
  return sn.linear(hidden, p.down.weight, p.down.bias).add(attended);
}

/**
 * Logits [batch, positions, vocabulary] of what follows each of the tokens [batch, positions];
 * `around` may wrap what is called for each layer.
 */
export function decode(
  p: DecoderParameters,
  tokens: Tensor,
  heads: number,
  around: (fn: typeof block) => typeof block = (fn) => fn,
): Tensor {
  const places = p.positions.narrow(0, 0, tokens.shape[1]!);
  let x = sn.embedding(tokens, p.tokens).add(places);
  for (const layer of p.blocks) x = around(block)(x, layer, heads);
  return sn.linear(normed(x, p.norm), p.head);
}

/** Mean cross-entropy, in nats, of predicting `targets` from `tokens`; both [batch, positions]. */
export function decoderLoss(
  p: DecoderParameters,
  tokens: Tensor,
  targets: Tensor,
  heads: number,
  around?: (fn: typeof block) => typeof block,
): Tensor {
  const logits = decode(p, tokens, heads, around);
  return sn.crossEntropy(
    logits.reshape([targets.size, logits.shape.at(-1)!]),
    targets.reshape([targets.size]),
  );
}
