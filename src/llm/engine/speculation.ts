// Speculative decoding: drafts of the next tokens are tried in one run of the model. Each token is chosen from the
// model's own scores by the key of its position, whether it was drafted or not, so the text is the one that the
// model writes without drafts, except where rounding decides between tokens that are about equally likely.

import { tensor } from '../../operations/index.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import { DraftBudget, pause, type Drafter } from './drafts.ts';
import type { TokenChoice } from './programs.ts';
import type { Sequence } from './sequence.ts';
import {
  choiceOf,
  disposeChoice,
  noDrafts,
  type DraftCounts,
  type TextWriter,
  type Writing,
} from './writer.ts';

/** What a text is drafted with. */
export interface Drafting {
  /** Drafts a round. */
  readonly count: number;
  /** What a further token beside one costs the model, as a share of what that costs. */
  readonly rowCost: number;
  /** What guesses; undefined where nothing is free to do so. */
  readonly open: (choice: TokenChoice<number>, check: () => void) => Drafter | undefined;
}

/** What guesses, and what decides whether that pays. */
interface Guessing {
  readonly drafter: Drafter;
  readonly budget: DraftBudget;
}

/** Writes tokens on a sequence, several a run where drafts stand. */
export class SpeculativeWriter implements TextWriter {
  readonly #sequence: Sequence;
  readonly #writing: Writing;
  readonly #choice: TokenChoice<number>;
  readonly #drafting: Drafting;
  /** What guesses, and whether that pays; undefined until something is free to do so. */
  #guessing: Guessing | undefined;
  /** Rounds until it is asked again whether something is free. */
  #untilAsked = 0;
  /** The prompt, and the tokens that were computed. */
  readonly #text: number[];
  /** Tokens that were given to the reader. */
  #given = 0;
  #drafts: DraftCounts = noDrafts;

  constructor(sequence: Sequence, writing: Writing, vocabulary: number, drafting: Drafting) {
    this.#sequence = sequence;
    this.#writing = writing;
    this.#choice = choiceOf(writing, vocabulary);
    this.#drafting = drafting;
    this.#text = [...writing.prompt];
  }

  get drafts(): DraftCounts {
    return this.#drafts;
  }

  async begin(): Promise<void> {
    const { prompt, most, check } = this.#writing;
    const { scores, hidden } = await this.#sequence.prompt(prompt, check);
    hidden.dispose();
    const first = most > 0 ? this.#sequence.first(scores, this.#choice) : undefined;
    scores.dispose();
    if (first !== undefined) this.#text.push(...(await read(first)));
  }

  async next(): Promise<number | undefined> {
    const { prompt, most } = this.#writing;
    if (this.#given === most) return undefined;
    const at = prompt.length + this.#given;
    if (at === this.#text.length) await this.#round();
    this.#given++;
    return this.#text[at];
  }

  /** Computes one token or more behind the text. */
  async #round(): Promise<void> {
    const guessing = this.#found();
    const { count } = this.#drafting;
    const drafts = guessing?.budget.pays() ? await guessing.drafter.propose(this.#text, count) : undefined;
    const last = tensor(Int32Array.of(this.#text.at(-1)!));
    try {
      if (guessing === undefined || drafts === undefined) await this.#plain(last);
      else await this.#tried(last, drafts, guessing);
    } finally {
      last.dispose();
      for (const each of drafts ?? []) each.dispose();
    }
  }

  /** What guesses. One that was busy may be free later, so it is asked for again now and then. */
  #found(): Guessing | undefined {
    if (this.#guessing !== undefined) return this.#guessing;
    if (this.#untilAsked > 0) {
      this.#untilAsked--;
      return undefined;
    }
    this.#untilAsked = pause;
    const { open, count, rowCost } = this.#drafting;
    const drafter = open(this.#choice, this.#writing.check);
    if (drafter === undefined) return undefined;
    this.#guessing = { drafter, budget: new DraftBudget(count, drafter.cost + rowCost) };
    return this.#guessing;
  }

  async #plain(last: Tensor): Promise<void> {
    const { token, scores } = this.#sequence.next(last, this.#choice);
    scores.dispose();
    this.#sequence.know(this.#text.length - 1, this.#text.at(-1)!);
    this.#text.push(...(await read(token)));
  }

  async #tried(last: Tensor, drafts: readonly Tensor[], { drafter, budget }: Guessing): Promise<void> {
    const found = await read(this.#sequence.verify(last, drafts, this.#choice));
    const kept = found.at(-1)!;
    const before = this.#text.length - 1;
    this.#text.push(...found.slice(0, kept));
    this.#sequence.keep(this.#text.slice(before, before + kept));
    drafter.settle(this.#text, kept);
    budget.round(kept);
    const { tried, kept: stood } = this.#drafts;
    this.#drafts = { tried: tried + this.#drafting.count, kept: stood + kept - 1 };
  }

  end(failed: boolean): void {
    this.#guessing?.drafter.end(failed);
    disposeChoice(this.#choice);
  }
}

/** The values of tokens, whose memory is given back. */
async function read(tokens: Tensor): Promise<readonly number[]> {
  const values = Array.from(await tokens.data(), Number);
  tokens.dispose();
  return values;
}
