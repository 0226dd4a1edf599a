// Reads the header of a GGUF file from the bytes that have been loaded. It throws `Short` to ask for more
// bytes; a position after the end of the file is an error. Nothing is allocated for a count before the bytes
// that it needs are known to exist.

import { malformed } from '../source/source.ts';
import {
  numberTypes,
  valueTypes,
  type GgufEntry,
  type GgufList,
  type GgufNumberType,
  type GgufValueType,
} from './types.ts';

/** Thrown where the loaded part ends: so many bytes are needed from the beginning on. */
export class Short extends Error {
  readonly needed: number;
  constructor(needed: number) {
    super('more of the file is needed');
    this.needed = needed;
  }
}

/** Lists of lists of lists are none that programs write. */
const deepest = 4;
const decoder: TextDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** A place in a file whose first bytes are loaded. */
export class Cursor {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #size: number;
  readonly #name: string;
  at = 0;

  /** `size`: bytes of the whole file. */
  constructor(bytes: Uint8Array, size: number, name: string) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#size = size;
    this.#name = name;
  }

  /** What is wrong with the file. */
  broken(problem: string): Error {
    return malformed('gguf', this.#name, problem);
  }

  /** The place of the next `count` bytes, behind which the cursor then stands. */
  #take(count: number, what: string): number {
    const { at } = this;
    if (count > this.#size - at) {
      throw this.broken(`${what} at byte ${at} takes ${count} bytes of the ${this.#size - at} left`);
    }
    if (at + count > this.#bytes.length) throw new Short(at + count);
    this.at = at + count;
    return at;
  }

  u32(what: string): number {
    return this.#view.getUint32(this.#take(4, what), true);
  }

  /** A 64-bit count of things that take at least `least` bytes each, so many of which the file can hold. */
  count(what: string, least: number): number {
    const count = this.#view.getBigUint64(this.#take(8, what), true);
    const most = Math.floor((this.#size - this.at) / least);
    if (count > BigInt(most)) {
      throw this.broken(
        `${what} is ${count}, of which the ${this.#size - this.at} bytes left hold ${most} at most`,
      );
    }
    return Number(count);
  }

  /** A 64-bit number that a double holds exactly. */
  whole(what: string): number {
    const value = this.#view.getBigUint64(this.#take(8, what), true);
    if (value > BigInt(Number.MAX_SAFE_INTEGER))
      throw this.broken(`${what} is ${value}, past exact counting`);
    return Number(value);
  }

  string(what: string): string {
    const length = this.count(`the length of ${what}`, 1);
    const at = this.#take(length, what);
    try {
      return decoder.decode(this.#bytes.subarray(at, at + length));
    } catch {
      throw this.broken(`${what} at byte ${at} is not UTF-8`);
    }
  }

  #type(what: string): GgufValueType {
    const id = this.u32(`the type of ${what}`);
    const type = valueTypes[id];
    if (type === undefined)
      throw this.broken(`${what} has the type ${id}; there are 0 to ${valueTypes.length - 1}`);
    return type;
  }

  #flag(what: string): boolean {
    const byte = this.#bytes[this.#take(1, what)] ?? 0;
    if (byte > 1) throw this.broken(`${what} is a bool of ${byte}`);
    return byte === 1;
  }

  /** A value behind its type. */
  entry(what: string): GgufEntry {
    const type = this.#type(what);
    if (type === 'array') {
      const items = this.#type(`the items of ${what}`);
      return { type, items, value: this.#list(items, what, 1) };
    }
    if (type === 'string') return { type, value: this.string(what) };
    if (type === 'bool') return { type, value: this.#flag(what) };
    const { bytes, read } = numberTypes[type];
    return { type, value: read(this.#view, this.#take(bytes, what)) };
  }

  #list(items: GgufValueType, what: string, depth: number): GgufList {
    const length = `the length of ${what}`;
    if (items === 'string')
      return this.#items(this.count(length, 8), () => this.string(`an item of ${what}`));
    if (items === 'bool') return this.#items(this.count(length, 1), () => this.#flag(`an item of ${what}`));
    if (items === 'array') {
      if (depth === deepest) throw this.broken(`${what} nests lists more than ${deepest} deep`);
      return this.#items(this.count(length, 12), () => this.#list(this.#type(what), what, depth + 1));
    }
    return this.#numbers(items, this.count(length, numberTypes[items].bytes), what);
  }

  #items<T>(count: number, read: () => T): T[] {
    const out: T[] = [];
    for (let i = 0; i < count; i++) out.push(read());
    return out;
  }

  #numbers(type: GgufNumberType, count: number, what: string): GgufList {
    const { bytes, list } = numberTypes[type];
    const at = this.#take(count * bytes, what);
    return new list(this.#bytes.slice(at, at + count * bytes).buffer as ArrayBuffer);
  }
}
