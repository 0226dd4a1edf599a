// A decoder-only transformer of configurable parts, as an ordinary function of tensors: it takes T tokens
// that follow those of a cache, and the cache gets their keys and values. One program serves all positions.

import {
  add,
  arange,
  dynamicSlice,
  expand,
  gather,
  gelu,
  gt,
  indexSelect,
  matmul,
  mul,
  reshape,
  scatter,
  select,
  silu,
  softmax,
  sum,
  tanh,
  tensor,
  topk,
  transpose,
  unsqueeze,
  where,
  zeros,
} from '../../operations/index.ts';
import { unchecked } from '../../tensor/debug.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { ModelConfig, RopeConfig, ExpertsConfig } from '../config/config.ts';
import { frequenciesOf, longBehind, ropeTable } from '../config/rope.ts';
import { attend, type TextPlace, type TokenPosition } from './attention.ts';
import type { DecoderLayerCache } from './cache.ts';
import { lookUp, capped, norm, product, products } from './linear.ts';
import {
  heldOf,
  valuesOf,
  type DecoderWeights,
  type LayerWeights,
  type DenseWeights,
  type ExpertWeights,
} from './weights.ts';
import { CompilerBug } from '../../errors.ts';

/** Cosines and sines of all positions that there is room for, [room, 2, dims]. */
interface RotaryTable {
  /** Those of short texts, and behind them those of long ones, where they differ. */
  readonly all: Tensor;
  /** Those of layers with a window; often the same. */
  readonly window: Tensor;
  /** Tokens of the longest text that is short, where short and long texts differ. */
  readonly longBehind?: number | undefined;
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
  const table = (rope: RopeConfig, rooms: readonly number[]): Tensor => {
    const parts = rooms.map((each) => ropeTable(rope, frequenciesOf(rope, each, factors), slots));
    const values = new Float32Array(parts.length * parts[0]!.length);
    for (const [i, part] of parts.entries()) values.set(part, i * part.length);
    return tensor(values, { shape: [rooms.length * slots, 2, rope.dims] });
  };
  const short = longBehind(config.rope, room);
  const all = table(config.rope, short === undefined ? [room] : [short, room]);
  const window = config.windowRope === config.rope ? all : table(config.windowRope, [room]);
  return { all, window, longBehind: short };
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
   * last norm, and the caches with their keys and values, for which there must be room. Where short and long texts
   * differ, all are turned as those of a text of `length` tokens (i32, []), and each as the last one of its text without.
   */
  run(
    tokens: Tensor,
    position: Tensor,
    cache: readonly DecoderLayerCache[],
    length?: Tensor,
  ): { hidden: Tensor; cache: DecoderLayerCache[] } {
    const rows = tokens.shape[0]!;
    const turns = (table: Tensor): Tensor => {
      if (this.#shortOf(table) === undefined)
        return dynamicSlice(table, [position, 0, 0], [rows, ...table.shape.slice(1)]);
      return this.#rowsOf(table, add(position, arange(rows)), length);
    };
    const place = this.#place([{ position, slot: position }], turns);
    const { hidden, caches } = this.#run(tokens, place, [cache]);
    return { hidden, cache: caches[0]! };
  }

  /**
   * One token of each of several texts (i32, [texts]), which have a cache each: row `i` of the result is what `run` makes
   * of token `i`. It sees the keys up to `positions[i]`, and its own are written at `slots[i]` (i32, [texts]).
   */
  runEach(
    tokens: Tensor,
    positions: Tensor,
    slots: Tensor,
    caches: readonly (readonly DecoderLayerCache[])[],
  ): { hidden: Tensor; caches: DecoderLayerCache[][] } {
    const texts = caches.map((_, i) => ({ position: select(positions, 0, i), slot: select(slots, 0, i) }));
    const place = this.#place(texts, (table) => this.#rowsOf(table, positions));
    return this.#run(tokens, place, caches);
  }

  /** Tokens of the longest text that is short, of a table with rows of short texts and behind them those of long ones. */
  #shortOf(table: Tensor): number | undefined {
    return table === this.turns.all ? this.turns.longBehind : undefined;
  }

  /** The rows of a table for positions of texts of this length, or each of the last token of its text. */
  #rowsOf(table: Tensor, positions: Tensor, length?: Tensor): Tensor {
    const short = this.#shortOf(table);
    let rows = positions;
    if (short !== undefined) {
      const isLong = gt(length ?? add(positions, 1), short);
      rows = where(isLong, add(positions, table.shape[0]! / 2), positions);
    }
    return unchecked(() => indexSelect(table, 0, rows));
  }

  #run(
    tokens: Tensor,
    place: TokenPosition,
    before: readonly (readonly DecoderLayerCache[])[],
  ): { hidden: Tensor; caches: DecoderLayerCache[][] } {
    const { config, weights } = this;
    // Prompts are checked by the host, and what the device chooses is a token: a check would be a run of its own for each.
    let stream = unchecked(() => lookUp(tokens, weights.embedding));
    if (config.embeddingScale !== 1) stream = mul(stream, config.embeddingScale);
    const caches: DecoderLayerCache[][] = before.map(() => []);
    for (const [i, layer] of weights.layers.entries()) {
      const held = before.map((cache) => cache[i]!);
      const [after, seen] = decoderLayer(stream, layer, held, place, config, i);
      stream = after;
      for (const [text, cache] of seen.entries()) caches[text]!.push(cache);
    }
    return { hidden: norm(stream, weights.norm, config.epsilon), caches };
  }

  /** Scores of all tokens, f32 [rows, vocabulary], for rows of `run`'s hidden states. */
  scores(hidden: Tensor): Tensor {
    const { config, weights } = this;
    const raw = product(hidden, weights.head, config.vocabulary);
    return capped(raw, config.logitCap, tanh);
  }

  /** Weights that a token is multiplied with: all but an embedding that is no head. */
  get parameters(): number {
    const { config } = this;
    // A head that is the embedding stands there twice.
    const sizes = heldOf(this.weights).map(({ shape }) => shape.reduce((size, axis) => size * axis, 1));
    return sizes.reduce((sum, size) => sum + size, 0) - config.vocabulary * config.width;
  }

  /** Gives back the memory of weights and tables. */
  dispose(): void {
    const { all, window } = this.turns;
    for (const each of new Set([...heldOf(this.weights), all, window])) each.dispose?.();
  }

  #place(texts: readonly TextPlace[], at: (table: Tensor) => Tensor): TokenPosition {
    const { all, window } = this.turns;
    const turns = at(all);
    return { texts, turns, windowTurns: window === all ? turns : at(window) };
  }
}

/** A layer: attention and the feed-forward part, each added to the stream, and its cache of each text. */
export function decoderLayer(
  stream: Tensor,
  weights: LayerWeights,
  caches: readonly DecoderLayerCache[],
  place: TokenPosition,
  config: ModelConfig,
  index: number,
): [stream: Tensor, caches: readonly DecoderLayerCache[]] {
  const { epsilon } = config;
  const behind = (x: Tensor, weight: Tensor | undefined): Tensor =>
    weight === undefined ? x : norm(x, weight, epsilon);
  const [found, seen] = attend(
    norm(stream, weights.attentionNorm, epsilon),
    weights.attention,
    caches,
    place,
    config,
    index,
  );
  const middle = add(stream, behind(found, weights.attentionPostNorm));
  const fed = feedForward(norm(middle, weights.feedNorm, epsilon), weights.feed, config);
  return [add(middle, behind(fed, weights.feedPostNorm)), seen];
}

// The feed-forward part of a layer: a gated product, or a mixture of experts of which the device
// chooses a few for each token.

/** x [T, width] through the feed-forward part: [T, width]. */
export function feedForward(x: Tensor, weights: DenseWeights | ExpertWeights, config: ModelConfig): Tensor {
  if ('gateUp' in weights) {
    const { hidden, width } = config;
    const [gate, up] = products(x, weights.gateUp, [hidden, hidden]) as [Tensor, Tensor];
    return product(gated(gate, up, config), weights.down, width);
  }
  const { experts } = config;
  if (experts === undefined) throw new CompilerBug('llm', 'weights of experts without their configuration');
  return mixture(x, weights, config, experts);
}

function gated(gate: Tensor, up: Tensor, config: ModelConfig): Tensor {
  return mul(config.gate === 'silu' ? silu(gate) : gelu(gate, { approximate: 'tanh' }), up);
}

/**
 * A weighted sum of the experts that each token is given to. Of few tokens the weights of their
 * experts are read where they lie; of many every expert is computed, which reads each weight once.
 */
function mixture(x: Tensor, weights: ExpertWeights, config: ModelConfig, experts: ExpertsConfig): Tensor {
  const rows = x.shape[0]!;
  const { count, used } = experts;
  // The greatest scores are the likeliest experts, so only a share of all of them needs all of them.
  const scores = product(x, weights.router, count);
  const [best, chosen] = topk(scores, used, -1);
  const shares = experts.isNormalised ? softmax(best, -1) : gather(softmax(scores, -1), 1, chosen);
  const [gate, up, down] = [weights.gate, weights.up, weights.down].map((each) => valuesOf(each));
  if (rows * used <= count) {
    const places = reshape(chosen, [rows * used]);
    // [T · used, 1, in] with the chosen [T · used, out, in].
    const through = (input: Tensor, weight: Tensor): Tensor =>
      matmul(input, transpose(indexSelect(weight, 0, places)));
    const { width } = config;
    const each = reshape(expand(unsqueeze(x, 1), [rows, used, width]), [rows * used, 1, width]);
    const inside = gated(through(each, gate!), through(each, up!), config);
    const results = reshape(through(inside, down!), [rows, used, width]);
    return sum(mul(results, unsqueeze(shares, -1)), 1);
  }
  const spread = scatter(zeros([rows, count]), 1, chosen, shares);
  const all = unsqueeze(x, 0);
  const inside = gated(matmul(all, transpose(gate!)), matmul(all, transpose(up!)), config);
  const results = matmul(inside, transpose(down!));
  return sum(mul(results, unsqueeze(transpose(spread), -1)), 0);
}
