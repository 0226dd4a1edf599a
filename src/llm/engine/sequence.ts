// One text that a decoder writes on: its cache on the device, and the tokens whose keys and values are
// in it. A prompt that begins like the text before keeps what they have in common.

import { TensorError } from '../../errors.ts';
import { noGrad } from '../../tensor/derivative/transform.ts';
import { tensor, zeros } from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { emptyCache, type CacheType } from '../decoder/cache.ts';
import type { Decoder } from '../decoder/decoder.ts';
import type { Cache, ChosenTexts, TokenChoice, Programs } from './programs.ts';

/** Tokens of a prompt that one program takes, the largest first. */
const blockSizes = [128, 32] as const;

/** Positions that a cache has for a text of `length` tokens: the last block of a prompt may stand out. */
export function slotsFor(length: number): number {
  return length + blockSizes[0];
}

/** What a sequence runs with. */
export interface Runner {
  readonly decoder: Decoder;
  readonly programs: Programs;
  /** Tokens that a text may have. */
  readonly room: number;
  readonly cacheType: CacheType;
}

/** What a prompt comes to. */
export interface Prompted {
  /** Scores of the token behind it, f32 [vocabulary]. */
  readonly scores: Tensor;
  /** What the layers make of its last token, f32 [width]. */
  readonly hidden: Tensor;
}

/** A text that takes a step beside others. */
export interface SteppingText {
  readonly sequence: Sequence;
  /** Its last token, i32 [1]. */
  readonly token: Tensor;
  readonly choice: TokenChoice<number>;
}

/** Runs a piece of work when its turn comes. */
export type TakeTurn = <T>(run: () => Promise<T>) => Promise<T>;

const single = (value: number): Tensor => tensor(Int32Array.of(value), { shape: [] });

/** A cache, and what is in it. */
export class Sequence {
  readonly #runner: Runner;
  readonly #takeTurn: TakeTurn;
  #cache: Cache;
  #written: Tensor | undefined;
  /** Tokens at the positions that the cache holds; those that were not read back yet are unknown. */
  #tokens: (number | undefined)[] = [];
  /** Tokens of the prompt: its keys are turned as those of a text of so many. */
  #prompted = 0;

  /** `takeTurn` runs the blocks of its prompts. */
  constructor(runner: Runner, takeTurn: TakeTurn) {
    this.#runner = runner;
    this.#takeTurn = takeTurn;
    const { decoder, room, cacheType } = runner;
    this.#cache = emptyCache(decoder.config, slotsFor(room), cacheType);
  }

  /** Tokens whose keys and values are there. */
  get length(): number {
    return this.#tokens.length;
  }

  /** How many tokens at the beginning of a prompt are there already. */
  sharedWith(prompt: readonly number[]): number {
    const differs = prompt.findIndex((token, i) => this.#tokens[i] !== token);
    return differs < 0 ? prompt.length : differs;
  }

  /**
   * Makes the text this prompt, in blocks. `before` runs ahead of each and may throw, which leaves
   * what was computed so far.
   */
  async prompt(tokens: readonly number[], before: () => void): Promise<Prompted> {
    const { decoder, room } = this.#runner;
    if (tokens.length === 0) throw new TensorError('E_VALUE', 'generate', 'the prompt has no token');
    if (tokens.length > room) {
      const problem = `the prompt has ${tokens.length} tokens, and there is room for ${room}`;
      throw new TensorError('E_LIMIT', 'generate', problem, 'loadModel with a larger contextLength');
    }
    const { vocabulary } = decoder.config;
    const odd = tokens.find((token) => !Number.isInteger(token) || token < 0 || token >= vocabulary);
    if (odd !== undefined) {
      throw new TensorError('E_INDEX', 'generate', `there is no token ${odd} among ${vocabulary}`);
    }
    // The last token is always computed: its scores are wanted.
    const shared = this.#isTurnedLike(tokens.length) ? this.sharedWith(tokens) : 0;
    this.#prompted = tokens.length;
    this.#tokens.length = Math.min(shared, tokens.length - 1);
    let found: Prompted | undefined;
    while (this.#tokens.length < tokens.length) {
      found?.scores.dispose();
      found?.hidden.dispose();
      found = undefined;
      found = await this.#takeTurn(async () => {
        before();
        return this.#nextBlock(tokens);
      });
    }
    return found!;
  }

  /** Whether the keys of the prompt are also those of a text of `length` tokens: some models turn long texts in another way. */
  #isTurnedLike(length: number): boolean {
    const { byLength } = this.#runner.decoder.turns;
    return byLength?.like(length) === byLength?.like(this.#prompted);
  }

  /** The next block of a prompt. */
  async #nextBlock(tokens: readonly number[]): Promise<Prompted> {
    const from = this.#tokens.length;
    const size = blockSizes.findLast((one) => one >= tokens.length - from) ?? blockSizes[0];
    const count = Math.min(size, tokens.length - from);
    const padded = new Int32Array(size);
    padded.set(tokens.slice(from, from + count));
    const turns = this.#runner.decoder.turns.byLength?.rows(from, size, tokens.length);
    const found = this.#block(tensor(padded), single(from), single(count - 1), turns);
    for (const token of tokens.slice(from, from + count)) this.#tokens.push(token);
    // A block at a time, so that others have their turn and nothing is queued that nobody wants.
    await found.hidden.data();
    return found;
  }

  #block(tokens: Tensor, position: Tensor, last: Tensor, turns: Tensor | undefined): Prompted {
    const { programs } = this.#runner;
    const { cache, scores, hidden } = noGrad(() =>
      programs.block(this.#cache, tokens, position, last, turns),
    );
    this.#cache = cache;
    for (const each of [tokens, position, last, turns]) each?.dispose();
    return { scores, hidden };
  }

  /** The first token behind a prompt. */
  first(scores: Tensor, choice: TokenChoice<number>): Tensor {
    const { vocabulary } = this.#runner.decoder.config;
    this.#written?.dispose();
    this.#written = choice.given === undefined ? undefined : zeros([vocabulary]);
    return this.choose(scores, choice);
  }

  /** The token behind what is there, by its scores. */
  choose(scores: Tensor, choice: TokenChoice<number>): Tensor {
    const position = single(this.length - 1);
    const token = noGrad(() => this.#runner.programs.choose(scores, this.#written, position, choice));
    position.dispose();
    return token;
  }

  /** The token behind `token`, which joins the text; both are on the device. */
  next(token: Tensor, choice: TokenChoice<number>): { readonly token: Tensor; readonly scores: Tensor } {
    const position = single(this.length);
    const stepped = noGrad(() =>
      this.#runner.programs.step(this.#cache, this.#written, token, position, choice),
    );
    position.dispose();
    this.#cache = stepped.cache;
    this.#written = stepped.written;
    this.#tokens.push(undefined);
    return { token: stepped.token, scores: stepped.scores };
  }

  /**
   * The scores behind the tokens of several texts, which join them: f32 [texts and spares, vocabulary], in one program.
   * `spares` are other sequences that fill it up: their rows see one key, and write behind all places of a text.
   */
  static nextEach(texts: readonly SteppingText[], spares: readonly Sequence[]): Tensor {
    const all = [...texts.map(({ sequence }) => sequence), ...spares];
    const { programs, room } = all[0]!.#runner;
    const nowhere = slotsFor(room) - 1;
    const positions = all.map((one, i) => (i < texts.length ? one.length : 0));
    const slots = positions.map((position, i) => (i < texts.length ? position : nowhere));
    const made = [positions, slots, ...spares.map(() => [0])].map((list) => tensor(Int32Array.from(list)));
    const [at, into, ...others] = made;
    const caches = all.map((one) => one.#cache);
    const given = [...texts.map(({ token }) => token), ...others];
    const stepped = noGrad(() => programs.stepEach(caches, given, at!, into!));
    for (const each of made) each.dispose();
    for (const [i, one] of all.entries()) one.#cache = stepped.caches[i]!;
    for (const { sequence } of texts) sequence.#tokens.push(undefined);
    return stepped.scores;
  }

  /** The tokens behind texts that `nextEach` has given `scores`, each by its row of them. */
  static chooseEach(
    scores: Tensor,
    texts: readonly (SteppingText & { readonly row: number })[],
  ): Pick<ChosenTexts, 'all' | 'each'> {
    const { programs } = texts[0]!.sequence.#runner;
    const rows = tensor(Int32Array.from(texts, ({ row }) => row));
    const positions = tensor(Int32Array.from(texts, ({ sequence }) => sequence.length - 1));
    const choosing = texts.map(({ sequence, token, choice }) => ({
      choice,
      token,
      written: sequence.#written,
    }));
    const { all, each, written } = noGrad(() => programs.chooseEach(rows, positions, scores, choosing));
    for (const [i, { sequence }] of texts.entries()) {
      sequence.#written?.dispose();
      sequence.#written = written[i];
    }
    return { all, each };
  }

  /**
   * Tries drafts (tensors of i32, one behind the other) behind `token` (i32 [1]), the last one of the text. Returns `Verified.found`;
   * the caller reads it, and says with `keep` how many of these tokens belong to the text.
   */
  verify(token: Tensor, drafts: readonly Tensor[], choice: TokenChoice<number>): Tensor {
    const position = single(this.length);
    const verified = noGrad(() =>
      this.#runner.programs.verify(this.#cache, this.#written, token, drafts, position, choice),
    );
    position.dispose();
    this.#cache = verified.cache;
    this.#written = verified.written;
    return verified.found;
  }

  /** Joins tokens whose keys and values the cache has behind those that the sequence knows. */
  keep(tokens: readonly number[]): void {
    this.#tokens.push(...tokens);
  }

  /** Forgets all tokens from `length` on. */
  cut(length: number): void {
    if (length < this.#prompted && !this.#isTurnedLike(length)) {
      this.#tokens = [];
      this.#prompted = 0;
    } else {
      this.#tokens.length = Math.min(this.#tokens.length, length);
    }
  }

  /** Says which token stands at a position, once it was read back. */
  know(position: number, token: number): void {
    if (position < this.#tokens.length) this.#tokens[position] = token;
  }

  /** Ends its text: keys and values stay, for texts that begin alike. */
  rest(): void {
    this.#written?.dispose();
    this.#written = undefined;
  }

  /** Gives the memory of the cache back. */
  dispose(): void {
    for (const layer of this.#cache) layer.dispose();
    this.rest();
    this.#cache = [];
    this.#tokens = [];
  }
}
