// A decoder-only transformer of configurable parts, as an ordinary function of tensors: it takes T tokens
// that follow those of a cache, and the cache gets their keys and values. One program serves all positions.

import {
  add,
  dynamicSlice,
  expand,
  gather,
  gelu,
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
  zeros,
} from '../../operations/index.ts';
import { unchecked } from '../../tensor/debug.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { ModelConfig, RopeConfig, ExpertsConfig } from '../config/config.ts';
import { frequenciesOf, ropeTable, turnedLike, type Frequencies } from '../config/rope.ts';
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

/** How the positions of texts are turned. */
interface RotaryTables {
  /** Cosines and sines [slots, 2, dims]: row p turns the last token of a text of p + 1 tokens. */
  readonly all: Tensor;
  /** Those of layers with a window; often the same. */
  readonly window: Tensor;
  /** Of models that turn texts by their length. */
  readonly byLength?: {
    /** Texts of which it is the same are turned alike. */
    readonly like: (length: number) => number;
    /** Rows in the place of those of `all`: of `count` tokens from `from` on, of a text of `length`. */
    readonly rows: (from: number, count: number, length: number) => Tensor;
  };
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
): RotaryTables {
  const { rope, windowRope } = config;
  const rows = (of: RopeConfig, from: number, count: number, length?: number): Tensor => {
    let [like, found]: [number?, Frequencies?] = [];
    // Neighbours are mostly turned with the same frequencies.
    const values = ropeTable(of, from, count, (position) => {
      const at = turnedLike(of, room, length ?? position + 1);
      if (found === undefined || like !== at) [like, found] = [at, frequenciesOf(of, at, factors)];
      return found;
    });
    return tensor(values, { shape: [count, 2, of.dims] });
  };
  const all = rows(rope, 0, slots);
  const window = windowRope === rope ? all : rows(windowRope, 0, slots);
  const like = (length: number): number => turnedLike(rope, room, length);
  if (like(1) === like(room)) return { all, window };
  return { all, window, byLength: { like, rows: (...tokens) => rows(rope, ...tokens) } };
}

/** A decoder with its weights. */
export class Decoder {
  readonly config: ModelConfig;
  readonly weights: DecoderWeights;
  readonly turns: RotaryTables;

  constructor(config: ModelConfig, weights: DecoderWeights, turns: RotaryTables) {
    this.config = config;
    this.weights = weights;
    this.turns = turns;
  }

  /**
   * Tokens (i32, [T]) from `position` (i32, []) on: what the layers make of them, [T, width] behind the
   * last norm, and the caches with their keys and values, for which there must be room. Each is turned as the last one of
   * its text, or by `turns` ([T, 2, dims], `RotaryTables.byLength`).
   */
  run(
    tokens: Tensor,
    position: Tensor,
    cache: readonly DecoderLayerCache[],
    turns?: Tensor,
  ): { hidden: Tensor; cache: DecoderLayerCache[] } {
    const rows = tokens.shape[0]!;
    const place = this.#place([{ position, slot: position }], (table) =>
      turns !== undefined && table === this.turns.all
        ? turns
        : dynamicSlice(table, [position, 0, 0], [rows, ...table.shape.slice(1)]),
    );
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
    const place = this.#place(texts, (table) => unchecked(() => indexSelect(table, 0, positions)));
    return this.#run(tokens, place, caches);
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
