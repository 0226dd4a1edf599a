// What a language model runs for a token, and for a block of a prompt: a layer of a decoder with weights in blocks of
// 8 bits, at a position that is a number of the run.

import * as sn from '../index.ts';
import type { Tensor } from '../index.ts';
import { rowWords } from '../ir/blocks/sizes.ts';
import type { ModelConfig } from '../llm/config/config.ts';
import { emptyCache } from '../llm/decoder/cache.ts';
import { Decoder, decoderLayer } from '../llm/decoder/decoder.ts';
import type { DecoderWeights, DenseWeights, ExpertWeights, LayerWeights } from '../llm/decoder/weights.ts';
import { programsOf, type Stepped } from '../llm/engine/programs.ts';
import { samplingOf } from '../llm/sampling/options.ts';
import { QuantizedTensor } from '../quant/index.ts';
import { workload, type Workload } from './workload.ts';

/** Sizes of a plain Llama. */
interface LlamaSizes {
  readonly layers: number;
  readonly width: number;
  readonly hidden: number;
  readonly heads: number;
  readonly keyHeads: number;
  readonly vocabulary: number;
  readonly contextLength: number;
  /** Of the rotary embeddings. */
  readonly ropeBase: number;
}

/** A plain Llama of these sizes, with heads of 64 values. */
function llamaOf({ ropeBase, ...sizes }: LlamaSizes): ModelConfig {
  const rope = { layout: 'interleaved', dims: 64, base: ropeBase, scaling: { kind: 'none' } } as const;
  return {
    architecture: 'llama',
    ...sizes,
    headSize: 64,
    epsilon: 1e-5,
    rope,
    windowRope: rope,
    windows: Array.from({ length: sizes.layers }, () => undefined),
    scale: 1 / 8,
    embeddingScale: 1,
    normOffset: 0,
    gate: 'silu',
    hasHeadNorms: false,
    hasPostNorms: false,
  };
}

/** The sizes of Llama 3.2 1B. */
export const llama: ModelConfig = llamaOf({
  layers: 16,
  width: 2048,
  hidden: 8192,
  heads: 32,
  keyHeads: 8,
  vocabulary: 128_256,
  contextLength: 8192,
  ropeBase: 500_000,
});

/** The sizes of SmolLM-135M, which is a small Llama. */
export const smallLlama: ModelConfig = llamaOf({
  layers: 30,
  width: 576,
  hidden: 1536,
  heads: 9,
  keyHeads: 3,
  vocabulary: 49_152,
  contextLength: 2048,
  ropeBase: 10_000,
});

/** Eight experts, of which a token is given to two, as in Mixtral, but small. */
export const mixture: ModelConfig = {
  ...llama,
  width: 1024,
  heads: 16,
  keyHeads: 4,
  hidden: 2048,
  experts: { count: 8, used: 2, hidden: 2048, isNormalised: true },
};

/** Positions of a cache, and the one at which tokens come. */
const room = 1024;

/** A weight of q8_0, [..., out, in], which takes no memory. */
function blocks(...shape: readonly number[]): QuantizedTensor {
  const columns = shape.at(-1)!;
  const words = sn.zeros([...shape.slice(0, -1), rowWords('q8_0', columns)], { dtype: 'u32' });
  return new QuantizedTensor(words, 'q8_0', columns);
}

function feedWeights({ width, hidden, experts }: ModelConfig): DenseWeights | ExpertWeights {
  if (experts === undefined)
    return {
      gateUp: { parts: [blocks(hidden, width), blocks(hidden, width)] },
      down: { parts: [blocks(width, hidden)] },
    };
  const { count, hidden: inside } = experts;
  return {
    router: { parts: [sn.zeros([count, width])] },
    gate: blocks(count, inside, width),
    up: blocks(count, inside, width),
    down: blocks(count, width, inside),
  };
}

function layerWeights(config: ModelConfig): LayerWeights {
  const { width, heads, keyHeads, headSize } = config;
  return {
    attentionNorm: sn.zeros([width]),
    attention: {
      qkv: { parts: [blocks((heads + 2 * keyHeads) * headSize, width)] },
      output: { parts: [blocks(width, heads * headSize)] },
    },
    feedNorm: sn.zeros([width]),
    feed: feedWeights(config),
  };
}

/** A layer on so many tokens, with the turns of their positions. */
function layerOf(name: string, about: string, config: ModelConfig, tokens: number): Workload {
  const run = (
    cache: Tensor,
    weights: LayerWeights,
    stream: Tensor,
    turns: Tensor,
    position: Tensor,
  ): readonly Tensor[] => {
    const place = { texts: [{ position, slot: position }], turns, windowTurns: turns };
    const [after, [seen]] = decoderLayer(stream, weights, [cache], place, config, 0);
    return [after, seen!];
  };
  // The cache is written where it lies.
  return workload(name, about, sn.compile(run, { donate: [0] }), () => [
    emptyCache(config, room, 'f16')[0]!,
    layerWeights(config),
    sn.zeros([tokens, config.width]),
    sn.zeros([tokens, 2, config.headSize]),
    sn.zeros([], { dtype: 'i32' }),
  ]);
}

export const llamaDecodeLayer: Workload = layerOf(
  'llamaDecodeLayer',
  'a layer of Llama 3.2 1B in q8_0 on one token, cache of 1024 positions in f16',
  llama,
  1,
);

export const llamaPrefillLayer: Workload = layerOf(
  'llamaPrefillLayer',
  'the same layer on 128 tokens of a prompt',
  llama,
  128,
);

export const moeDecodeLayer: Workload = layerOf(
  'moeDecodeLayer',
  'a layer with 8 experts, 2 of them for a token, width 1024, on one token',
  mixture,
  1,
);

/** The program of a token: all layers, with the embedding before them, and the head and the likeliest token behind. */
function stepOf(name: string, about: string, config: ModelConfig): Workload {
  const run = (
    cache: readonly Tensor[],
    weights: DecoderWeights,
    turns: Tensor,
    token: Tensor,
    position: Tensor,
  ): Stepped => {
    const decoder = new Decoder(config, weights, { all: turns, window: turns });
    const { numbers } = samplingOf(name, { temperature: 0 });
    const key = sn.zeros([2], { dtype: 'u32' });
    const choice = { key, numbers, given: undefined, allowed: undefined };
    return programsOf(decoder).step(cache, undefined, token, position, choice);
  };
  return workload(name, about, sn.compile(run, { donate: [0] }), () => {
    const { vocabulary, width, layers, headSize } = config;
    // The head is the embedding.
    const embedding = { parts: [blocks(vocabulary, width)] };
    const weights = {
      embedding,
      layers: Array.from({ length: layers }, () => layerWeights(config)),
      norm: sn.zeros([width]),
      head: embedding,
    };
    const token = sn.zeros([1], { dtype: 'i32' });
    const turns = sn.zeros([room, 2, headSize]);
    return [emptyCache(config, room, 'f32'), weights, turns, token, sn.zeros([], { dtype: 'i32' })];
  });
}

export const llamaDecodeStep: Workload = stepOf(
  'llamaDecodeStep',
  'a token of Llama 3.2 1B in q8_0: 16 layers, embedding, head and choice, cache of 1024 positions in f32',
  llama,
);
