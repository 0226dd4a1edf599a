// Sequences that generations share, as many as memory allows. Each keeps what it has computed, so a text that
// begins like an earlier one continues from there.

import { SinterError } from '../../errors.ts';
import { Rounds } from './rounds.ts';
import { Sequence, type Runner } from './sequence.ts';

interface Waiting {
  readonly prompt: readonly number[];
  readonly take: (sequence: Sequence) => void;
  readonly fail: (error: Error) => void;
}

/** Sequences of one model. */
export class SequencePool {
  readonly #runner: Runner;
  readonly #most: number;
  readonly #idle: Sequence[] = [];
  #busy = new Set<Sequence>();
  #waiting: Waiting[] = [];
  #isClosed = false;
  /** What the texts of these sequences take their steps in. */
  readonly rounds: Rounds;

  /** `rowCost`: what a further token beside one costs, as a share of what that costs. */
  constructor(runner: Runner, most: number, rowCost: number) {
    this.#runner = runner;
    this.#most = most;
    const spare = (taken: ReadonlySet<Sequence>, count: number): readonly Sequence[] =>
      this.#spare(taken, count);
    this.rounds = new Rounds({ spare, giveUp: (sequence) => this.#giveUp(sequence) }, rowCost, most);
  }

  /** Generations that wait for a sequence. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** A sequence for a prompt, the one that has most of it; waits until one is free. */
  async acquire(prompt: readonly number[], signal: AbortSignal | undefined): Promise<Sequence> {
    signal?.throwIfAborted();
    this.#mustBeOpen();
    const free = this.#free(prompt);
    if (free !== undefined) return free;
    let entry: Waiting | undefined;
    const leave = (): void => {
      this.#waiting = this.#waiting.filter((one) => one !== entry);
      entry?.fail(signal?.reason as Error);
    };
    try {
      return await new Promise<Sequence>((take, fail) => {
        entry = { prompt, take, fail };
        this.#waiting.push(entry);
        signal?.addEventListener('abort', leave, { once: true });
      });
    } finally {
      signal?.removeEventListener('abort', leave);
    }
  }

  /** A sequence for a prompt if one is free, now; undefined where none is, or the model was disposed of. */
  takeFree(prompt: readonly number[]): Sequence | undefined {
    return this.#isClosed ? undefined : this.#free(prompt);
  }

  #free(prompt: readonly number[]): Sequence | undefined {
    const shared = this.#idle.map((one) => one.sharedWith(prompt));
    const most = Math.max(0, ...shared);
    const isNew = most === 0 && this.#idle.length + this.#busy.size < this.#most;
    const found = isNew ? this.#made() : this.#idle[shared.indexOf(most)];
    if (found === undefined) return undefined;
    const at = this.#idle.indexOf(found);
    if (at >= 0) this.#idle.splice(at, 1);
    this.#busy.add(found);
    return found;
  }

  #made(): Sequence {
    return new Sequence(this.#runner, (run) => this.rounds.block(run));
  }

  /** Sequences that are not among `taken`, first those that no text has. */
  #spare(taken: ReadonlySet<Sequence>, count: number): readonly Sequence[] {
    const others = [...this.#idle, ...this.#busy].filter((one) => !taken.has(one));
    while (others.length < count) {
      const made = this.#made();
      this.#idle.push(made);
      others.push(made);
    }
    return others.slice(0, count);
  }

  #giveUp(sequence: Sequence): void {
    const at = this.#idle.indexOf(sequence);
    if (at >= 0) this.#idle.splice(at, 1);
    sequence.dispose();
  }

  /** Takes a sequence back; one that has `failed` is given up. */
  release(sequence: Sequence, failed: boolean): void {
    if (!this.#busy.delete(sequence)) return;
    if (failed || this.#isClosed) sequence.dispose();
    else {
      sequence.rest();
      this.#idle.push(sequence);
    }
    const next = this.#waiting[0];
    if (next === undefined || this.#isClosed) return;
    const free = this.#free(next.prompt);
    if (free === undefined) return;
    this.#waiting.shift();
    next.take(free);
  }

  /** Gives back the memory of all that is idle now, and of the rest when it is released. */
  close(): void {
    this.#isClosed = true;
    for (const sequence of this.#idle.splice(0)) sequence.dispose();
    for (const { fail } of this.#waiting.splice(0)) fail(closed());
  }

  /** Why a text failed: the model was disposed of while it was written, or the error that it came to. */
  reasonOf(error: unknown): unknown {
    return this.#isClosed ? closed(error) : error;
  }

  #mustBeOpen(): void {
    if (this.#isClosed) throw closed();
  }
}

function closed(cause?: unknown): SinterError {
  return new SinterError('E_STATE', 'model: it has been disposed of', cause === undefined ? {} : { cause });
}
