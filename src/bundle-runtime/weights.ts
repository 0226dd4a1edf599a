// Weights on their way into a machine's memory: what comes is written at once, in whole words, so
// that no file is ever held whole.

import type { WeightFile, WeightPart } from './manifest.ts';

/**
 * Takes the bytes of a file in order, in pieces of any size, and writes each weight's part to its
 * place.
 */
export class WeightWriter {
  readonly #parts: readonly WeightPart[];
  readonly #write: (weight: number, offset: number, bytes: Uint8Array) => void;
  /** Bytes that do not yet make a word, and where they are in the file. */
  #rest = new Uint8Array();
  #at = 0;

  constructor({ parts }: WeightFile, write: (weight: number, offset: number, bytes: Uint8Array) => void) {
    this.#parts = parts;
    this.#write = write;
  }

  take(piece: Uint8Array): void {
    const data = new Uint8Array(this.#rest.length + piece.length);
    data.set(this.#rest);
    data.set(piece, this.#rest.length);
    const at = this.#at;
    const end = at + (data.length & ~3);
    for (const { weight, start, bytes } of this.#parts) {
      // The last word of a weight is whole in the file too.
      const [from, to] = [Math.max(start, at), Math.min(start + 4 * Math.ceil(bytes / 4), end)];
      if (from < to) this.#write(weight, from - start, data.subarray(from - at, to - at));
    }
    this.#rest = data.subarray(end - at);
    this.#at = end;
  }
}
