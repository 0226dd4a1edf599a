// A decoder-only transformer of configurable parts, as an ordinary function of tensors: it takes T tokens
// that follow those of a cache, and the cache gets their keys and values. One program serves all positions.

import { add, dynamicSlice, embedding, mul, tanh, tensor, zeros } from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { ModelConfig, RopeConfig } from '../config/config.ts';
import { frequenciesOf, ropeTable } from '../config/rope.ts';
import { attend, type DecoderLayerCache, type TokenPosition } from './attention.ts';
import { feedForward } from './feed-forward.ts';
import { capped, norm, product } from './linear.ts';
import { heldOf, valuesOf, type DecoderWeights, type LayerWeights } from './weights.ts';

/** Cosines and sines of all positions that there is room for, [room, 2, dims]. */
export interface RotaryTable {
  readonly all: Tensor;
  /** Those of layers with a window; often the same. */
  readonly window: Tensor;
}

/**
 * The tables of `slots` positions, of a model with room for `room` tokens; `factors` of its file divide
 * the frequencies.
 */
export function turnsOf(
  config: ModelConfig,
  slots: number,
  room: number,
  factors?: ArrayLike<number>,
): RotaryTable {
  const table = (rope: RopeConfig): Tensor => {
    const values = ropeTable(rope, frequenciesOf(rope, room, factors), slots);
    return tensor(values, { shape: [slots, 2, rope.dims] });
  };
  const all = table(config.rope);
  return { all, window: config.windowRope === config.rope ? all : table(config.windowRope) };
}

/** Empty caches of all layers. */
export function emptyCache(config: ModelConfig, room: number, dtype: 'f32' | 'f16'): DecoderLayerCache[] {
  const shape = [2, config.keyHeads, room, config.headSize];
  return Array.from({ length: config.layers }, () => zeros(shape, { dtype }));
}

/** A decoder with its weights. */
export class Decoder {
  readonly config: ModelConfig;
  readonly weights: DecoderWeights;
  readonly turns: RotaryTable;

  constructor(config: ModelConfig, weights: DecoderWeights, turns: RotaryTable) {
    this.config = config;
    this.weights = weights;
    this.turns = turns;
  }

  /**
   * Tokens (i32, [T]) from `position` (i32, []) on: what the layers make of them, [T, width] behind the
   * last norm, and the caches with their keys and values, for which there must be room.
   */
  run(
    tokens: Tensor,
    position: Tensor,
    cache: readonly DecoderLayerCache[],
  ): { hidden: Tensor; cache: DecoderLayerCache[] } {
    const { config, weights } = this;
    const place = this.#place(position, tokens.shape[0]!);
    let stream = embedding(tokens, valuesOf(weights.embedding));
    if (config.embeddingScale !== 1) stream = mul(stream, config.embeddingScale);
    const seen = cache.map((before, i) => {
      const [after, next] = layer(stream, weights.layers[i]!, before, place, config, i);
      stream = after;
      return next;
    });
    return { hidden: norm(stream, weights.norm, config.epsilon), cache: seen };
  }

  /** Scores of all tokens, f32 [rows, vocabulary], for rows of `run`'s hidden states. */
  scores(hidden: Tensor): Tensor {
    const { config, weights } = this;
    const raw = product(hidden, { parts: [weights.head] }, config.vocabulary);
    return capped(raw, config.logitCap, tanh);
  }

  /** Gives back the memory of weights and tables. */
  dispose(): void {
    const { all, window } = this.turns;
    for (const each of new Set([...heldOf(this.weights), all, window])) each.dispose?.();
  }

  #place(position: Tensor, rows: number): TokenPosition {
    const { all, window } = this.turns;
    const at = (table: Tensor): Tensor =>
      dynamicSlice(table, [position, 0, 0], [rows, ...table.shape.slice(1)]);
    const turns = at(all);
    return { position, turns, windowTurns: window === all ? turns : at(window) };
  }
}

/** A layer: attention and the feed-forward part, each added to the stream. */
function layer(
  stream: Tensor,
  weights: LayerWeights,
  cache: DecoderLayerCache,
  place: TokenPosition,
  config: ModelConfig,
  index: number,
): [stream: Tensor, cache: DecoderLayerCache] {
  const { epsilon } = config;
  const behind = (x: Tensor, weight: Tensor | undefined): Tensor =>
    weight === undefined ? x : norm(x, weight, epsilon);
  const [found, seen] = attend(
    norm(stream, weights.attentionNorm, epsilon),
    weights.attention,
    cache,
    place,
    config,
    index,
  );
  const middle = add(stream, behind(found, weights.attentionPostNorm));
  const fed = feedForward(norm(middle, weights.feedNorm, epsilon), weights.feed, config);
  return [add(middle, behind(fed, weights.feedPostNorm)), seen];
}
