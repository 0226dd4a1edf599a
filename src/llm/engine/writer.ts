// Tokens behind a prompt, one after the other: each is chosen on the device, where the next one is
// computed from it, and a few are asked for ahead of the one that is read. Texts that are written at the same time
// take their steps in rounds.

import { key } from '../../tensor/ops/creation/keys.ts';
import { tensor } from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Sampling } from '../sampling/options.ts';
import type { TokenChoice } from './programs.ts';
import type { AskedToken, Rounds } from './rounds.ts';
import type { Sequence } from './sequence.ts';

/** Decides which tokens may come next, as a grammar does. */
export interface Constraint {
  /** A byte a token: 1 where it may come; undefined: all may. */
  allowed(): Uint8Array | undefined;
  /** A token was chosen. */
  accept(token: number): void;
}

/** What a writer is asked for. */
export interface Writing {
  readonly prompt: readonly number[];
  /** Tokens to write at most. */
  readonly most: number;
  readonly sampling: Sampling;
  /** Tokens that are asked for before the last one is read. */
  readonly ahead: number;
  readonly constraint: Constraint | undefined;
  /** Runs before each piece of work, and may throw. */
  readonly check: () => void;
}

/** How many drafts were tried, and how many of them stood. */
export interface DraftCounts {
  readonly tried: number;
  readonly kept: number;
}

export const noDrafts: DraftCounts = { tried: 0, kept: 0 };

/** Writes the tokens of a text, one after the other. */
export interface TextWriter {
  readonly drafts: DraftCounts;
  /** Computes the prompt, and asks for the first token, if there is to be one. */
  begin(): Promise<void>;
  /** The next token; undefined when there are as many as were to be written. */
  next(): Promise<number | undefined>;
  /** Tells the sequence what was written, and gives back what is not needed any more. */
  end(failed: boolean): void;
}

/** What the tokens of a text are chosen with. `disposeChoice` gives its memory back. */
export function choiceOf({ prompt, sampling }: Writing, vocabulary: number): TokenChoice<number> {
  const { numbers, seed } = sampling;
  const given = numbers.penalty !== undefined ? tensor(countsOf(prompt, vocabulary)) : undefined;
  return { key: key(seed), numbers, given, allowed: undefined };
}

export function disposeChoice({ key: drawn, given }: TokenChoice<number>): void {
  drawn.dispose();
  given?.dispose();
}

/** A token that was asked for, and who has no need of it any more. */
interface Step {
  readonly asked: Promise<AskedToken>;
  isRead: boolean;
  isFollowed: boolean;
}

/** Writes tokens on a sequence, each computed from the one before, in rounds with other texts. */
export class TokenWriter implements TextWriter {
  readonly drafts: DraftCounts = noDrafts;
  readonly #sequence: Sequence;
  readonly #writing: Writing;
  readonly #vocabulary: number;
  readonly #rounds: Rounds;
  readonly #choice: TokenChoice<number>;
  /** Steps that were asked for and not read. */
  readonly #queue: Step[] = [];
  /** Steps whose tokens are needed. */
  readonly #held = new Set<Step>();
  /** The last step that was asked for. */
  #tail: Step | undefined;
  #asked = 0;
  readonly #read: number[] = [];
  #hasEnded = false;

  constructor(sequence: Sequence, writing: Writing, vocabulary: number, rounds: Rounds) {
    this.#sequence = sequence;
    this.#writing = writing;
    this.#vocabulary = vocabulary;
    this.#rounds = rounds;
    this.#choice = choiceOf(writing, vocabulary);
  }

  async begin(): Promise<void> {
    const { prompt, most, check } = this.#writing;
    const { scores, hidden } = await this.#sequence.prompt(prompt, check);
    hidden.dispose();
    if (most > 0) {
      const allowed = this.#allowed();
      const token = this.#sequence.first(scores, { ...this.#choice, allowed });
      allowed?.dispose();
      this.#push(Promise.resolve({ token, read: async () => Number((await token.data())[0]) }));
    }
    if (most > 1) this.#rounds.enter(this.#sequence);
    scores.dispose();
  }

  async next(): Promise<number | undefined> {
    const { most, ahead, constraint } = this.#writing;
    // A constraint has to know a token before it says what may follow.
    const distance = constraint === undefined ? ahead : 0;
    while (this.#asked < most && this.#queue.length <= distance) this.#ask(this.#tail!);
    const step = this.#queue.shift();
    if (step === undefined) return undefined;
    const value = await (await step.asked).read();
    step.isRead = true;
    this.#settle(step);
    this.#read.push(value);
    constraint?.accept(value);
    return value;
  }

  #ask(before: Step): void {
    const following = async (): Promise<AskedToken> => {
      const { token } = await before.asked;
      // Nobody waits for what an ended text would have written.
      if (this.#hasEnded) return new Promise(() => undefined);
      const asked = await this.#rounds.step({
        sequence: this.#sequence,
        token,
        choice: this.#choice,
        allowed: this.#writing.constraint && (() => this.#allowed()),
      });
      before.isFollowed = true;
      this.#settle(before);
      return asked;
    };
    this.#push(following());
  }

  /** Which tokens may come, as the constraint says. */
  #allowed(): Tensor | undefined {
    const mask = this.#writing.constraint?.allowed();
    return mask && tensor(mask, { shape: [this.#vocabulary], dtype: 'bool' });
  }

  #push(asked: Promise<AskedToken>): void {
    // Errors are told where the token is read.
    asked.catch(() => undefined);
    const step = { asked, isRead: false, isFollowed: false };
    this.#tail = step;
    this.#queue.push(step);
    this.#held.add(step);
    this.#asked++;
  }

  /** Gives the memory of a token back when it was read, and the next one is computed from it. */
  #settle(step: Step): void {
    if (step.isRead && step.isFollowed) this.#release(step);
  }

  #release(step: Step): void {
    if (this.#held.delete(step))
      void step.asked.then(
        ({ token }) => token.dispose(),
        () => undefined,
      );
  }

  end(): void {
    const { prompt } = this.#writing;
    this.#hasEnded = true;
    this.#rounds.leave(this.#sequence);
    this.#read.forEach((token, i) => this.#sequence.know(prompt.length + i, token));
    for (const step of this.#held) this.#release(step);
    disposeChoice(this.#choice);
  }
}

/** How often each token stands in a text. */
function countsOf(tokens: readonly number[], vocabulary: number): Float32Array {
  const counts = new Float32Array(vocabulary);
  for (const token of tokens) counts[token] = (counts[token] ?? 0) + 1;
  return counts;
}
