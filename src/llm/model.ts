// A language model that is loaded: text, conversations, scores and embeddings of it.

import { SinterError, TensorError } from '../errors.ts';
import type { ChatMessage, TextCodec } from './codec.ts';
import type { ModelConfig } from './config/config.ts';
import { cacheBytes } from './decoder/cache.ts';
import { Generation } from './engine/generation.ts';
import { SequencePool } from './engine/pool.ts';
import type { Runner } from './engine/sequence.ts';
import { readOptions, type DraftedModel, type DraftModel, type GenerateOptions } from './options.ts';
import type { DraftingModel } from './engine/drafts.ts';

/** What a model is made of. */
export interface ModelParts {
  readonly runner: Runner;
  readonly codec: TextCodec | undefined;
  /** Texts that may be written at once. */
  readonly sequences: number;
  /** Tokens that are asked for before the last one is read. */
  readonly ahead: number;
  /** What a further token beside one costs, as a share of what that costs. */
  readonly rowCost: number;
  /** Bytes of the weights that a token reads. */
  readonly weightBytes: number;
  /** Gives back the memory of the weights. */
  readonly free: () => void;
}

/** A language model. Its memory is given back by `dispose`. */
export class LanguageModel implements DraftModel {
  readonly config: ModelConfig;
  /** Tokens that a text may have, its prompt among them. */
  readonly contextLength: number;
  readonly #parts: ModelParts;
  readonly #pool: SequencePool;
  /** Models that are known to have the same tokens. */
  readonly #sharers = new WeakSet<ModelConfig>();
  #isDisposed = false;

  constructor(parts: ModelParts) {
    this.#parts = parts;
    this.config = parts.runner.decoder.config;
    this.contextLength = parts.runner.room;
    this.#pool = new SequencePool(parts.runner, parts.sequences, parts.rowCost);
  }

  /** Text to tokens and back. Throws E_STATE where the model came without. */
  get codec(): TextCodec {
    const { codec } = this.#parts;
    if (codec !== undefined) return codec;
    throw new SinterError('E_STATE', 'model: it has no tokenizer\n  try: tokens instead of text');
  }

  /** Generations that wait for their turn. */
  get waiting(): number {
    return this.#pool.waiting;
  }

  /**
   * Goes on from a prompt, a text or tokens. Throws E_VALUE for options out of their range, E_LIMIT
   * where the prompt does not fit.
   */
  generate(prompt: string | readonly number[], options: GenerateOptions = {}): Generation {
    return this.#generation('generate', this.tokensOf(prompt), options);
  }

  /** The answer to a conversation, as the model was taught to write it down. */
  chat(messages: readonly ChatMessage[], options: GenerateOptions = {}): Generation {
    const tokens = this.codec.encode(this.codec.template(messages));
    return this.#generation('chat', tokens, options);
  }

  /** Scores (f32, one a token of the vocabulary) of what comes behind a prompt. */
  async logits(prompt: string | readonly number[]): Promise<Float32Array> {
    return this.#prompted(prompt, 'scores');
  }

  /** A text as a vector of length 1: what the layers make of its last token. */
  async embed(prompt: string | readonly number[]): Promise<Float32Array> {
    const state = await this.#prompted(prompt, 'hidden');
    const length = Math.hypot(...state);
    return length === 0 ? state : state.map((value) => value / length);
  }

  /** Bytes that computing a token reads behind `length` others: weights, and their keys and values. */
  tokenBytes(length: number): number {
    const { weightBytes, runner } = this.#parts;
    const { layers, keyHeads, headSize, windows } = this.config;
    const each = 2 * keyHeads * cacheBytes(runner.cacheType, headSize);
    let positions = 0;
    for (let layer = 0; layer < layers; layer++)
      positions += Math.min(length + 1, windows[layer] ?? length + 1);
    return weightBytes + each * positions;
  }

  /** Ends the model and gives its memory back; generations that run fail at their next token. */
  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    this.#pool.close();
    this.#parts.free();
  }

  /** The tokens of a prompt. */
  tokensOf(prompt: string | readonly number[]): readonly number[] {
    const tokens = typeof prompt === 'string' ? this.codec.encode(prompt) : prompt;
    if (Array.isArray(tokens) || ArrayBuffer.isView(tokens)) return Array.from(tokens);
    throw new TensorError('E_VALUE', 'generate', 'the prompt must be text or a list of tokens');
  }

  draftsFor(model: DraftedModel): (prompt: readonly number[]) => DraftingModel | undefined {
    if (model.config === this.config) {
      throw new TensorError('E_VALUE', 'generate', 'draft is the model itself', 'a smaller model, or lookup');
    }
    if (!this.#sharers.has(model.config)) mustShareTokens(this, this.#parts.codec, model);
    this.#sharers.add(model.config);
    const cost = this.#parts.runner.decoder.parameters / model.parameters;
    return (prompt) => {
      const sequence = this.#pool.takeFree(prompt);
      if (sequence === undefined) return undefined;
      const release = (failed: boolean): void => this.#pool.release(sequence, failed);
      return { cost, sequence, room: this.contextLength, release };
    };
  }

  #generation(op: string, prompt: readonly number[], options: GenerateOptions): Generation {
    const { codec, ahead, rowCost, runner } = this.#parts;
    const room = this.contextLength - prompt.length;
    if (room < 0) {
      const problem = `the prompt has ${prompt.length} tokens, and there is room for ${this.contextLength}`;
      throw new TensorError('E_LIMIT', op, problem, 'loadModel with a larger contextLength');
    }
    const model = { config: this.config, codec, parameters: runner.decoder.parameters };
    const request = readOptions(op, options, { prompt, room, ahead, rowCost, model });
    const { vocabulary } = this.config;
    return new Generation(request, { pool: this.#pool, vocabulary, codec });
  }

  async #prompted(prompt: string | readonly number[], which: 'scores' | 'hidden'): Promise<Float32Array> {
    const tokens = this.tokensOf(prompt);
    const sequence = await this.#pool.acquire(tokens, undefined);
    let failed = true;
    try {
      const found = await sequence.prompt(tokens, () => undefined);
      const data = (await found[which].data()) as Float32Array;
      found.scores.dispose();
      found.hidden.dispose();
      failed = false;
      return data;
    } catch (error) {
      throw this.#pool.reasonOf(error);
    } finally {
      this.#pool.release(sequence, failed);
    }
  }
}

/** Throws E_VALUE where tokens of a draft model stand for something else. Sizes may differ: some vocabularies are padded. */
function mustShareTokens(draft: LanguageModel, codec: TextCodec | undefined, model: DraftedModel): void {
  const sizes = [draft.config.vocabulary, model.config.vocabulary] as const;
  const shared = Math.min(...sizes);
  if (codec === undefined || model.codec === undefined) {
    if (sizes[0] === sizes[1]) return;
    const problem = `the draft model has ${sizes[0]} tokens, and the model ${sizes[1]}`;
    throw new TensorError('E_VALUE', 'generate', problem, 'a draft model with the same tokenizer');
  }
  for (let token = 0; token < shared; token++) {
    const [own, other] = [codec.decode([token]), model.codec.decode([token])];
    if (own === other) continue;
    const problem = `token ${token} is ${JSON.stringify(own)} of the draft model, and ${JSON.stringify(other)} of the model`;
    throw new TensorError('E_VALUE', 'generate', problem, 'a draft model with the same tokenizer');
  }
}
