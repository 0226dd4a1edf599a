// A text that is being written: what tokens become as text, until the model, a stop or a limit ends it.

import { SinterError } from '../../errors.ts';
import type { TextCodec, TextStream } from '../codec.ts';
import { StopWatch } from '../sampling/stop.ts';
import type { SequencePool } from './pool.ts';
import { SpeculativeWriter, type Drafting } from './speculation.ts';
import { noDrafts, TokenWriter, type DraftCounts, type TextWriter, type Writing } from './writer.ts';

/** Why a text ended: the model or a stop ended it, or there was no more room for it. */
export type Finish = 'stop' | 'length';

/** What a token adds to a text. */
export interface Piece {
  readonly token: number;
  /** Empty where the token is a part of a character, or of what may be a stop. */
  readonly text: string;
}

/** How long a generation took, in milliseconds. */
export interface Timings {
  /** From the beginning to the first token. */
  readonly prompt: number;
  /** From the first token to the last. */
  readonly decode: number;
}

/** What a generation is asked for, read from its options. */
export interface Request extends Omit<Writing, 'check'> {
  readonly stops: readonly string[];
  /** Tokens that end the text. */
  readonly ends: ReadonlySet<number>;
  readonly signal: AbortSignal | undefined;
  /** What guesses the next tokens, where something does. */
  readonly drafting: Drafting | undefined;
}

/** What a generation runs on. */
export interface GenerationSetting {
  readonly pool: SequencePool;
  readonly vocabulary: number;
  readonly codec: TextCodec | undefined;
}

/** A text that is being written: `for await` gives its pieces as they come. It can be read once; a second time is E_STATE. */
export class Generation implements AsyncIterable<string> {
  /** Tokens written so far, the one that ended the text not among them. */
  readonly tokens: number[] = [];
  readonly promptTokens: number;
  #isRead = false;
  #finish: Finish | undefined;
  #timings: Timings = { prompt: 0, decode: 0 };
  #drafts: DraftCounts = noDrafts;
  readonly #request: Request;
  readonly #around: GenerationSetting;

  constructor(request: Request, around: GenerationSetting) {
    this.#request = request;
    this.#around = around;
    this.promptTokens = request.prompt.length;
  }

  /** Why the text ended; undefined while it has not. */
  get finish(): Finish | undefined {
    return this.#finish;
  }

  get timings(): Timings {
    return this.#timings;
  }

  /** How many drafts were tried so far, and how many of them stood; none without `draft`. */
  get drafts(): DraftCounts {
    return this.#drafts;
  }

  /** The whole text. */
  async text(): Promise<string> {
    let text = '';
    for await (const piece of this) text += piece;
    return text;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, undefined> {
    for await (const { text } of this.pieces()) if (text !== '') yield text;
  }

  /** Token by token, with the text that each adds; behind the last one there may be text of token −1. */
  async *pieces(): AsyncGenerator<Piece, void, undefined> {
    if (this.#isRead) {
      const hint = 'another generate for another text, or one loop that collects what you need';
      throw new SinterError('E_STATE', `generate: a text can be read once, and this one was\n  try: ${hint}`);
    }
    this.#isRead = true;
    const { pool, vocabulary } = this.#around;
    const { signal } = this.#request;
    const check = (): void => signal?.throwIfAborted();
    const sequence = await pool.acquire(this.#request.prompt, signal);
    let failed = false;
    let writer: TextWriter | undefined;
    let isParked = false;
    let isFree = false;
    const free = (): void => {
      if (isFree) return;
      isFree = true;
      writer?.end(failed);
      pool.release(sequence, failed);
    };
    // Whoever reads the text may never come back, so an abort does not wait for that.
    const leave = (): void => {
      if (isParked) free();
    };
    signal?.addEventListener('abort', leave);
    try {
      const writing = { ...this.#request, check };
      const { drafting, constraint } = this.#request;
      // A constraint has to know a token before it says what may follow.
      writer =
        drafting === undefined || constraint !== undefined
          ? new TokenWriter(sequence, writing, vocabulary, pool.rounds)
          : new SpeculativeWriter(sequence, writing, vocabulary, drafting);
      for await (const piece of this.#write(writer, check)) {
        isParked = true;
        yield piece;
        isParked = false;
      }
    } catch (error) {
      // What was computed before an abort is sound.
      failed = signal?.aborted !== true;
      throw failed ? pool.reasonOf(error) : error;
    } finally {
      // Also where whoever reads the text has enough of it.
      signal?.removeEventListener('abort', leave);
      free();
    }
  }

  async *#write(writer: TextWriter, check: () => void): AsyncGenerator<Piece, void, undefined> {
    const { stops, ends } = this.#request;
    const stream = this.#around.codec?.stream();
    const watch = new StopWatch(stops);
    const started = performance.now();
    let first: number | undefined;
    await writer.begin();
    for (;;) {
      check();
      const token = await writer.next();
      this.#drafts = writer.drafts;
      check();
      const now = performance.now();
      first ??= now;
      if (token !== undefined) this.#timings = { prompt: first - started, decode: now - first };
      if (token === undefined || ends.has(token)) {
        yield* this.#rest(token === undefined ? 'length' : 'stop', stream, watch);
        return;
      }
      this.tokens.push(token);
      const { text, ended } = watch.push(stream?.push(token) ?? '');
      if (ended) this.#finish = 'stop';
      yield { token, text };
      if (ended) return;
    }
  }

  /** What was held back of the text. */
  *#rest(
    finish: Finish,
    stream: TextStream | undefined,
    watch: StopWatch,
  ): Generator<Piece, void, undefined> {
    const { text, ended } = watch.push(stream?.end() ?? '');
    this.#finish = ended ? 'stop' : finish;
    const rest = text + watch.rest();
    if (rest !== '') yield { token: -1, text: rest };
  }
}
