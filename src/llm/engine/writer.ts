// Tokens behind a prompt, one after the other: each is chosen on the device, where the next one is
// computed from it, and a few are asked for ahead of the one that is read.

import { key } from '../../tensor/ops/creation/keys.ts';
import { tensor } from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { Sampling } from '../sampling/options.ts';
import type { TokenChoice } from './programs.ts';
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

/** Writes tokens on a sequence, each computed from the one before. */
export class TokenWriter implements TextWriter {
  readonly drafts: DraftCounts = noDrafts;
  readonly #sequence: Sequence;
  readonly #writing: Writing;
  readonly #vocabulary: number;
  readonly #choice: TokenChoice<number>;
  /** Tokens that were asked for and not read, and the last one that was asked for. */
  readonly #queue: Tensor[] = [];
  #tail: Tensor | undefined;
  #asked = 0;
  readonly #read: number[] = [];

  constructor(sequence: Sequence, writing: Writing, vocabulary: number) {
    this.#sequence = sequence;
    this.#writing = writing;
    this.#vocabulary = vocabulary;
    this.#choice = choiceOf(writing, vocabulary);
  }

  async begin(): Promise<void> {
    const { prompt, most, check } = this.#writing;
    const { scores, hidden } = await this.#sequence.prompt(prompt, check);
    hidden.dispose();
    if (most > 0) this.#push(this.#allowing((choice) => this.#sequence.first(scores, choice)));
    scores.dispose();
  }

  async next(): Promise<number | undefined> {
    const { most, ahead, constraint } = this.#writing;
    // A constraint has to know a token before it says what may follow.
    const distance = constraint === undefined ? ahead : 0;
    while (this.#asked < most && this.#queue.length <= distance) this.#ask();
    const token = this.#queue.shift();
    if (token === undefined) return undefined;
    const [value] = await token.data();
    if (token !== this.#tail) token.dispose();
    this.#read.push(Number(value));
    constraint?.accept(Number(value));
    return Number(value);
  }

  #ask(): void {
    const tail = this.#tail!;
    if (this.#writing.constraint === undefined) {
      const { token, scores } = this.#sequence.next(tail, this.#choice);
      scores.dispose();
      this.#push(token);
      return;
    }
    // While the device works on the scores, the host finds what may come.
    const { token, scores } = this.#sequence.next(tail, this.#choice);
    token.dispose();
    this.#push(this.#allowing((choice) => this.#sequence.choose(scores, choice)));
    scores.dispose();
  }

  #allowing<T>(choose: (choice: TokenChoice<number>) => T): T {
    const mask = this.#writing.constraint?.allowed();
    if (mask === undefined) return choose(this.#choice);
    const allowed = tensor(mask, { shape: [this.#vocabulary], dtype: 'bool' });
    const result = choose({ ...this.#choice, allowed });
    allowed.dispose();
    return result;
  }

  #push(token: Tensor): void {
    const before = this.#tail;
    if (before !== undefined && !this.#queue.includes(before)) before.dispose();
    this.#tail = token;
    this.#queue.push(token);
    this.#asked++;
  }

  end(): void {
    const { prompt } = this.#writing;
    this.#read.forEach((token, i) => this.#sequence.know(prompt.length + i, token));
    for (const each of this.#queue) each.dispose();
    if (this.#tail !== undefined && !this.#queue.includes(this.#tail)) this.#tail.dispose();
    disposeChoice(this.#choice);
  }
}

/** How often each token stands in a text. */
function countsOf(tokens: readonly number[], vocabulary: number): Float32Array {
  const counts = new Float32Array(vocabulary);
  for (const token of tokens) counts[token] = (counts[token] ?? 0) + 1;
  return counts;
}
