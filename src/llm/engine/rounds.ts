// Rounds: texts that are written at the same time take their steps together, in one program that reads the weights
// once (continuous batching: Yu et al., Orca, 2022). This is the one place that decides who takes a step with whom, and
// when blocks of prompts are computed in between.

import { nextTask } from '../../tensor/device.ts';
import type { Tensor } from '../../tensor/tensor.ts';
import type { TokenChoice } from './programs.ts';
import { Sequence, type SteppingText } from './sequence.ts';

/** A step of a text: the token behind its last one. */
export interface StepRequest {
  readonly sequence: Sequence;
  /** The last token of the text, i32 [1]. */
  readonly token: Tensor;
  readonly choice: TokenChoice<number>;
  /**
   * Which tokens may come, bool [vocabulary]; undefined: all. It is asked while the device computes the scores. If it
   * throws, the text fails alone.
   */
  readonly allowed: (() => Tensor | undefined) | undefined;
}

/** A token that was asked for. */
export interface AskedToken {
  /** i32 [1]. */
  readonly token: Tensor;
  /** Its value, when the device has it. */
  readonly read: () => Promise<number>;
}

/** Sequences that fill up a program. */
export interface SpareSequences {
  /** Some that are not among `taken`; what is in them stays as it is. */
  readonly spare: (taken: ReadonlySet<Sequence>, count: number) => readonly Sequence[];
  /** A program that had this sequence has failed. */
  readonly giveUp: (sequence: Sequence) => void;
}

/** Texts of one program at most: it has kernels of its own for the attention of each. */
const mostTexts = 8;

/**
 * The sizes of the programs in which `count` texts take a step, those that together cost least; a program may have rows
 * that nobody needs. `rowCost` is what a further row costs, as a share of what a step of one text costs; `most` is how
 * many sequences there are. Sizes are powers of two, so that few programs are compiled.
 */
export function roundSizes(count: number, rowCost: number, most: number): readonly number[] {
  const largest = Math.min(most, mostTexts);
  const sizes = [1, 2, 4, 8].filter((size) => size < largest);
  sizes.push(largest);
  // The best for each smaller count first.
  const best: { cost: number; sizes: readonly number[] }[] = [{ cost: 0, sizes: [] }];
  for (let left = 1; left <= count; left++) {
    let found = { cost: Infinity, sizes: [] as readonly number[] };
    for (const size of sizes) {
      const rest = best[Math.max(0, left - size)]!;
      const cost = 1 + (size - 1) * rowCost + rest.cost;
      if (cost < found.cost) found = { cost, sizes: [size, ...rest.sizes] };
    }
    best.push(found);
  }
  return best[count]!.sizes;
}

/** A request that waits for its round. */
interface Entry {
  readonly request: StepRequest;
  readonly take: (asked: AskedToken) => void;
  readonly fail: (error: unknown) => void;
}

/** The rounds of a model. */
export class Rounds {
  readonly #spares: SpareSequences;
  readonly #rowCost: number;
  readonly #most: number;
  /** Texts whose prompts are read, and that are not finished. */
  readonly #texts = new Set<Sequence>();
  #asking: Entry[] = [];
  /** Texts of the last round that have not asked for their next step. */
  #expected = new Set<Sequence>();
  /** Rounds whose tokens are not read yet. */
  #unread = 0;
  #isScheduled = false;
  /** Resolves when the tokens of the last steps are read. */
  #reading: Promise<unknown> = Promise.resolve();
  /** Blocks of prompts that wait or run, and the end of the last of them. */
  #blocks = 0;
  #lastBlock: Promise<unknown> = Promise.resolve();

  /** `rowCost` and `most`: see `roundSizes`. */
  constructor(spares: SpareSequences, rowCost: number, most: number) {
    this.#spares = spares;
    this.#rowCost = rowCost;
    this.#most = most;
  }

  /** A text will ask for steps. */
  enter(sequence: Sequence): void {
    this.#texts.add(sequence);
  }

  /** A text is finished: what it asked for and did not get is dropped. */
  leave(sequence: Sequence): void {
    this.#texts.delete(sequence);
    this.#expected.delete(sequence);
    this.#asking = this.#asking.filter(({ request }) => request.sequence !== sequence);
    this.#schedule();
  }

  /**
   * Runs a block of a prompt: one at a time, and not before texts that are being written have got the tokens that they
   * waited for during the last one.
   */
  async block<T>(run: () => Promise<T>): Promise<T> {
    this.#blocks++;
    const mine = this.#lastBlock
      .then(nextTask)
      .then(() => this.#reading)
      .then(run);
    this.#lastBlock = mine.catch(() => undefined);
    try {
      return await mine;
    } finally {
      this.#blocks--;
    }
  }

  /** A step of a text that has entered, with those of all others that ask for one now. */
  step(request: StepRequest): Promise<AskedToken> {
    this.#expected.delete(request.sequence);
    // A text that is alone waits for nobody.
    if (this.#texts.size === 1 && this.#blocks === 0) return Promise.resolve().then(() => stepAlone(request));
    return new Promise((take, fail) => {
      this.#asking.push({ request, take, fail });
      this.#schedule();
    });
  }

  /** Blocks wait for what reads a token. */
  #following<T>(reading: Promise<T>): Promise<T> {
    this.#reading = reading.catch(() => undefined);
    return reading;
  }

  /** Lets all that can ask at this moment do so first. */
  #schedule(): void {
    if (this.#isScheduled || this.#asking.length === 0) return;
    this.#isScheduled = true;
    void nextTask().then(() => {
      this.#isScheduled = false;
      this.#round();
    });
  }

  #round(): void {
    // While the device is busy there is time to wait for those of the last round.
    if (this.#asking.length === 0 || (this.#unread > 0 && this.#expected.size > 0)) return;
    const entries = this.#asking;
    this.#asking = [];
    this.#expected = new Set(entries.map(({ request }) => request.sequence));
    const reads: Promise<unknown>[] = [];
    let from = 0;
    for (const size of roundSizes(entries.length, this.#rowCost, this.#most)) {
      reads.push(...this.#run(entries.slice(from, from + size), size));
      from += size;
    }
    this.#unread++;
    void this.#following(Promise.allSettled(reads)).then(() => {
      this.#unread--;
      this.#schedule();
    });
  }

  /** Runs a program for so many texts. Returns what reads their tokens. */
  #run(entries: readonly Entry[], size: number): Promise<unknown>[] {
    const taken = new Set(entries.map(({ request }) => request.sequence));
    let spares: readonly Sequence[] = [];
    try {
      if (size === 1) {
        const asked = stepAlone(entries[0]!.request);
        const value = asked.read();
        entries[0]!.take({ token: asked.token, read: () => value });
        return [value];
      }
      spares = this.#spares.spare(taken, size - entries.length);
      return stepTogether(entries, spares).map((value) =>
        value.catch(() => spares.forEach((one) => this.#spares.giveUp(one))),
      );
    } catch (error) {
      for (const { fail } of entries) fail(error);
      for (const one of spares) this.#spares.giveUp(one);
      return [];
    }
  }
}

/** A step of a text by itself. */
function stepAlone({ sequence, token, choice, allowed }: StepRequest): AskedToken {
  const stepped = sequence.next(token, choice);
  let next = stepped.token;
  if (allowed !== undefined) {
    next.dispose();
    // While the device works on the scores, the host finds what may come.
    const mask = allowed();
    next = sequence.choose(stepped.scores, { ...choice, allowed: mask });
    mask?.dispose();
  }
  stepped.scores.dispose();
  return { token: next, read: async () => Number((await next.data())[0]) };
}

/** A step of several texts in one program. Returns what reads the tokens of those that are chosen together. */
function stepTogether(entries: readonly Entry[], spares: readonly Sequence[]): Promise<unknown>[] {
  const scores = Sequence.nextEach(
    entries.map(({ request }) => request),
    spares,
  );
  const rows: (SteppingText & { readonly entry: Entry; readonly row: number })[] = [];
  for (const [row, entry] of entries.entries()) {
    const { sequence, token, choice, allowed } = entry.request;
    try {
      rows.push({ entry, row, sequence, token, choice: { ...choice, allowed: allowed?.() } });
    } catch (error) {
      entry.fail(error);
    }
  }
  const reads: Promise<unknown>[] = [];
  for (const group of chosenAlike(rows)) {
    const { all, each } = Sequence.chooseEach(scores, group);
    const values = all.data().finally(() => all.dispose());
    reads.push(values);
    for (const [i, { entry }] of group.entries())
      entry.take({ token: each[i]!, read: async () => Number((await values)[i]) });
  }
  for (const { choice } of rows) choice.allowed?.dispose();
  scores.dispose();
  return reads;
}

/** Texts whose choices have the same parts, in groups whose sizes are powers of two. */
function chosenAlike<T extends SteppingText>(texts: readonly T[]): T[][] {
  const kinds = new Map<string, T[]>();
  for (const text of texts) {
    const { numbers, given, allowed } = text.choice;
    const { draw, filter, penalty } = numbers;
    const kind = [draw, filter, penalty, given, allowed].map((part) => Number(part !== undefined)).join('');
    kinds.set(kind, [...(kinds.get(kind) ?? []), text]);
  }
  return [...kinds.values()].flatMap((alike) => {
    const groups: T[][] = [];
    for (let from = 0; from < alike.length; from += groups.at(-1)!.length)
      groups.push(alike.slice(from, from + 2 ** Math.floor(Math.log2(alike.length - from))));
    return groups;
  });
}
