// Drafts: what may come next in a text, guessed by something that is quicker than the model. The model tries a
// few at once, which takes little longer than one token, and keeps those that it would have chosen itself.

import { tensor } from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { TokenChoice } from './programs.ts';
import type { Sequence } from './sequence.ts';

/** Drafts a round, at most: a text has room for so many tokens behind its end. */
export const mostDrafts = 16;

/** Guesses what comes next. */
export interface Drafter {
  /** What a draft costs, as a share of what a token of the model costs. */
  readonly cost: number;
  /** `count` tokens behind a text, one after the other in tensors of i32; undefined where there is no guess. */
  propose(text: readonly number[], count: number): Promise<readonly Tensor[] | undefined>;
  /** Called after a round: the last token of the text before it, and drafts, which `kept` are in all, stand in `text`. */
  settle(text: readonly number[], kept: number): void;
  /** Gives back what it holds; `failed` says that an error ended the text. */
  end(failed: boolean): void;
}

/** The longest run of tokens that is looked up, and the shortest. */
const runs = { longest: 3, shortest: 2 } as const;

/**
 * What came behind the last tokens when they stood in the text before (prompt lookup: Saxena, 2023). It costs
 * nothing, and helps where a text repeats parts of its prompt, as summaries and changed programs do.
 */
export class LookupDrafter implements Drafter {
  readonly cost = 0;
  /** Where each run of tokens ended last; the run at the end of the text is not there yet. */
  readonly #ends = new Map<string, number>();
  #known = 0;

  async propose(text: readonly number[], count: number): Promise<readonly Tensor[] | undefined> {
    this.#learn(text);
    for (let size: number = runs.longest; size >= runs.shortest; size--) {
      const end = text.length < size ? undefined : this.#ends.get(keyOf(text, text.length, size));
      if (end === undefined) continue;
      const guess = text.slice(end, end + count);
      // Near the end of the text it goes round.
      for (let i = 0; guess.length < count; i++) guess.push(guess[i]!);
      return [tensor(Int32Array.from(guess))];
    }
    return undefined;
  }

  #learn(text: readonly number[]): void {
    for (let end = this.#known; end < text.length; end++)
      for (let size: number = runs.shortest; size <= runs.longest; size++)
        if (end >= size) this.#ends.set(keyOf(text, end, size), end);
    this.#known = text.length;
  }

  settle(): void {}

  end(): void {}
}

const keyOf = (text: readonly number[], end: number, size: number): string =>
  text.slice(end - size, end).join(' ');

/** Tokens that a draft model may be behind before it takes the text in blocks. */
const mostBehind = 8;

/** A draft model, as a text has it. */
export interface DraftingModel {
  /** What a token of it costs, as a share of what a token of the model costs. */
  readonly cost: number;
  readonly sequence: Sequence;
  /** Tokens that there is room for. */
  readonly room: number;
  /** Takes the sequence back. */
  readonly release: (failed: boolean) => void;
}

/**
 * What a smaller model of the same tokens would write (Leviathan et al., 2023). It draws with the key that the
 * model draws with at each position, so both draw the same token where they agree on what is likely.
 */
export class ModelDrafter implements Drafter {
  readonly cost: number;
  readonly #model: DraftingModel;
  readonly #choice: TokenChoice<number>;
  readonly #check: () => void;
  /** The position of the last token of the text when drafts were asked for. */
  #from = 0;

  constructor(model: DraftingModel, { key, numbers }: TokenChoice<number>, check: () => void) {
    this.cost = model.cost;
    this.#model = model;
    // Penalties are the model's own.
    this.#choice = { key, numbers: { ...numbers, penalty: undefined }, given: undefined, allowed: undefined };
    this.#check = check;
  }

  async propose(text: readonly number[], count: number): Promise<readonly Tensor[] | undefined> {
    const { sequence, room } = this.#model;
    if (text.length + count > room) return undefined;
    this.#from = text.length - 1;
    const drafts = [await this.#behind(text)];
    while (drafts.length < count) {
      const { token, scores } = sequence.next(drafts.at(-1)!, this.#choice);
      scores.dispose();
      drafts.push(token);
    }
    return drafts;
  }

  /** The token behind a text, i32 [1]. */
  async #behind(text: readonly number[]): Promise<Tensor> {
    const { sequence } = this.#model;
    sequence.cut(Math.min(sequence.sharedWith(text), text.length - 1));
    if (text.length - sequence.length > mostBehind) {
      const { scores, hidden } = await sequence.prompt(text, this.#check);
      const token = sequence.choose(scores, this.#choice);
      scores.dispose();
      hidden.dispose();
      return token;
    }
    let last: Tensor | undefined;
    while (sequence.length < text.length) {
      last?.dispose();
      const at = sequence.length;
      const given = tensor(Int32Array.of(text[at]!));
      const { token, scores } = sequence.next(given, this.#choice);
      given.dispose();
      scores.dispose();
      sequence.know(at, text[at]!);
      last = token;
    }
    return last!;
  }

  settle(text: readonly number[], kept: number): void {
    for (let at = this.#from; at < this.#from + kept; at++) this.#model.sequence.know(at, text[at]!);
  }

  end(failed: boolean): void {
    this.#model.release(failed);
  }
}

/** Tokens that are written without drafts where these did not pay, or nothing was free to make them. */
export const pause = 16;

/**
 * Decides whether drafts pay, by how many of them stood. It does not ask the clock, so that the same seed takes
 * the same way.
 */
export class DraftBudget {
  readonly #cost: number;
  /** Tokens that a round brings, on average, the last rounds most. */
  #average: number;
  #rest = 0;

  /** `cost` is that of a draft and of trying it, as a share of a token's. */
  constructor(drafts: number, cost: number) {
    this.#cost = 1 + drafts * cost;
    this.#average = drafts + 1;
  }

  /** Whether the next token is tried with drafts. */
  pays(): boolean {
    if (this.#rest === 0) return true;
    this.#rest--;
    return false;
  }

  /** A round brought so many tokens. */
  round(tokens: number): void {
    this.#average += (tokens - this.#average) / 4;
    if (this.#average >= this.#cost) return;
    this.#rest = pause;
    this.#average = this.#cost;
  }
}
