// A GGUF file's metadata: values by key, and values of the kind that a program needs, which are
// checked. Writers differ in the integers that they choose, so that any that holds a count will do.

import { SinterError, showValue } from '../../errors.ts';
import type { GgufEntry, GgufList, GgufValue } from './types.ts';

/** Metadata by key. The readers of one kind give undefined where the key is missing. */
export class GgufMetadata {
  readonly #entries: ReadonlyMap<string, GgufEntry>;
  readonly #name: string;

  /** `name`: what messages call the file by. */
  constructor(entries: ReadonlyMap<string, GgufEntry>, name: string) {
    this.#entries = entries;
    this.#name = name;
  }

  /** Keys in all. */
  get size(): number {
    return this.#entries.size;
  }

  /** The keys, in the order of the file. */
  keys(): IterableIterator<string> {
    return this.#entries.keys();
  }

  /** The keys with values and their types, as `writeGguf` takes them. */
  entries(): IterableIterator<[string, GgufEntry]> {
    return this.#entries.entries();
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** The value of a key, whatever it is. */
  get(key: string): GgufValue | undefined {
    return this.#entries.get(key)?.value;
  }

  /** A string. Throws E_FORMAT where it is something else. */
  text(key: string): string | undefined {
    return this.#one(key, 'a string', (value) => (typeof value === 'string' ? value : undefined));
  }

  /** A number of any type. Throws E_FORMAT where it is something else. */
  number(key: string): number | undefined {
    return this.#one(key, 'a number', (value) => (typeof value === 'number' ? value : undefined));
  }

  /** A whole number of at least 0, of any type of integers. Throws E_FORMAT where it is something else. */
  count(key: string): number | undefined {
    return this.#one(key, 'a count', (value) =>
      typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined,
    );
  }

  /** True or false. Throws E_FORMAT where it is something else. */
  flag(key: string): boolean | undefined {
    return this.#one(key, 'true or false', (value) => (typeof value === 'boolean' ? value : undefined));
  }

  /** A list of strings. Throws E_FORMAT where it is something else. */
  texts(key: string): readonly string[] | undefined {
    return this.#one(key, 'a list of strings', (value) =>
      Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : undefined,
    );
  }

  /** A list of numbers of any type. Throws E_FORMAT where it is something else. */
  numbers(key: string): ArrayLike<number> | undefined {
    return this.#one(key, 'a list of numbers', (value) => {
      if (typeof value !== 'object' || !ArrayBuffer.isView(value)) return undefined;
      return value instanceof BigInt64Array || value instanceof BigUint64Array
        ? Float64Array.from(value as BigInt64Array, Number)
        : (value as Float64Array);
    });
  }

  #one<T>(key: string, expected: string, pick: (value: GgufValue) => T | undefined): T | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const found = pick(entry.value);
    if (found !== undefined) return found;
    throw new SinterError(
      'E_FORMAT',
      `gguf: ${this.#name}: ${key} must be ${expected}, is ${entry.type} ${shown(entry.value)}`,
    );
  }
}

function shown(value: GgufValue): string {
  if (typeof value !== 'object') return showValue(value);
  const list: GgufList = value;
  return `of ${list.length} items`;
}
