// Weights on their way into a machine's memory: what comes is written at once, in whole words, so that no file is ever held whole.

import type { WeightFile, WeightPart } from './manifest.ts';

/** Takes a file's bytes as they come, in order; says what belongs where. */
export class WeightWriter {
  readonly #parts: readonly WeightPart[];
  readonly #write: (weight: number, offset: number, bytes: Uint8Array) => void;
  /** Bytes of a weight that do not yet make a word. */
  readonly #rest = new Uint8Array(4);
  #held = 0;
  #at = 0;
  #part = 0;

  constructor({ parts }: WeightFile, write: (weight: number, offset: number, bytes: Uint8Array) => void) {
    this.#parts = parts;
    this.#write = write;
  }

  take(piece: Uint8Array): void {
    const end = this.#at + piece.length;
    for (; this.#part < this.#parts.length; this.#part += 1) {
      const { weight, start, bytes } = this.#parts[this.#part]!;
      const [from, to] = [Math.max(start, this.#at), Math.min(start + bytes, end)];
      if (from < to) this.#put(weight, from - start, piece.subarray(from - this.#at, to - this.#at));
      if (start + bytes > end) break;
      this.#finish(weight, bytes);
    }
    this.#at = end;
  }

  #put(weight: number, offset: number, bytes: Uint8Array): void {
    let taken = 0;
    while (this.#held % 4 !== 0 && taken < bytes.length) this.#rest[this.#held++] = bytes[taken++]!;
    if (this.#held === 4) {
      this.#write(weight, offset + taken - 4, this.#rest);
      this.#held = 0;
    }
    if (this.#held > 0) return;
    const whole = (bytes.length - taken) & ~3;
    if (whole > 0) this.#write(weight, offset + taken, bytes.subarray(taken, taken + whole));
    for (taken += whole; taken < bytes.length;) this.#rest[this.#held++] = bytes[taken++]!;
  }

  /** The last bytes of a weight, with zeros behind them. */
  #finish(weight: number, bytes: number): void {
    if (this.#held === 0) return;
    this.#rest.fill(0, this.#held);
    this.#write(weight, bytes - this.#held, this.#rest);
    this.#held = 0;
  }
}
