// Text as numbers: an alphabet of the characters that a text has, and back.

import { TensorError } from '../../errors.ts';

/** The characters of a text in code order; a character's number is its place. */
export class Alphabet {
  readonly characters: readonly string[];
  readonly #numbers: ReadonlyMap<string, number>;

  constructor(text: string) {
    this.characters = [...new Set(text)].sort();
    this.#numbers = new Map(this.characters.map((character, i) => [character, i]));
  }

  get size(): number {
    return this.characters.length;
  }

  /** The number of each character. Throws E_VALUE at one that the alphabet lacks. */
  encode(text: string): Int32Array {
    return Int32Array.from(text, (character) => {
      const number = this.#numbers.get(character);
      if (number !== undefined) return number;
      throw new TensorError('E_VALUE', 'encode', `the alphabet has no ${JSON.stringify(character)}`);
    });
  }

  /** The text of these numbers. */
  decode(numbers: Iterable<number>): string {
    return Array.from(numbers, (number) => this.characters[number] ?? '\uFFFD').join('');
  }
}
