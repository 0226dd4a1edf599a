// The data in a pickle, without running anything: numbers, strings, tuples, lists, dictionaries, and
// calls of the few functions that the caller knows. Pickle is a program of a stack machine that may
// name any function of Python; every name that is not known is refused before it means anything.
// Protocols 2 to 5 (https://docs.python.org/3/library/pickletools.html).

import { ParseError } from '../errors.ts';
import type { Allowance } from './allowance.ts';

/** A function or class that the pickle names. */
export interface Global {
  readonly module: string;
  readonly name: string;
}

/** What a pickle holds. Dictionaries keep their order; their keys are strings or numbers. */
export type Pickled =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | Pickled[]
  | Map<Pickled, Pickled>
  | PickledGlobal
  | Opaque;

/** A global as a value. */
export class PickledGlobal {
  readonly module: string;
  readonly name: string;
  constructor(module: string, name: string) {
    this.module = module;
    this.name = name;
  }
}

/** A value that a handler made, which the pickle only passes on. */
export class Opaque {
  readonly value: unknown;
  constructor(value: unknown) {
    this.value = value;
  }
}

/** What a reader of pickles knows. */
export interface Handlers {
  /** Whether the pickle may name it. */
  knows(global: Global): boolean;
  /** The result of calling a known function. */
  call(global: Global, args: readonly Pickled[]): Pickled;
  /** A value that lies outside of the pickle. */
  persistent(id: Pickled): Pickled;
}

const utf8 = new TextDecoder();
const mark = Symbol('mark');
type Slot = Pickled | typeof mark;

/** Bytes of an empty list, dictionary or piece of text, about. */
const perValue = 48;

/** Reads a pickle, whose values are counted. Throws ParseError E_FORMAT naming `format`. */
export function readPickle(
  bytes: Uint8Array,
  handlers: Handlers,
  format: string,
  allowance: Allowance,
): Pickled {
  return new Machine(bytes, handlers, format, allowance).run();
}

class Machine {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #handlers: Handlers;
  readonly #format: string;
  readonly #allowance: Allowance;
  readonly #stack: Slot[] = [];
  readonly #memo = new Map<number, Pickled>();
  #at = 0;

  constructor(bytes: Uint8Array, handlers: Handlers, format: string, allowance: Allowance) {
    this.#allowance = allowance;
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#handlers = handlers;
    this.#format = format;
  }

  run(): Pickled {
    for (;;) {
      const at = this.#at;
      const code = this.#take(1)[0]!;
      if (code === 0x2e) return this.#pop();
      if (!this.#step(code))
        throw this.#broken(`byte ${at}: the instruction 0x${code.toString(16)} is not known`);
    }
  }

  /** One instruction; false where there is none of this code. */
  #step(code: number): boolean {
    const literal = this.#literal(code);
    if (literal !== undefined) {
      if (literal !== null && typeof literal !== 'boolean' && typeof literal !== 'number')
        this.#allowance.spend(perValue, 'its pickle');
      this.#stack.push(literal);
      return true;
    }
    switch (String.fromCharCode(code)) {
      case '\x80':
        this.#take(1);
        return true;
      case '\x95':
        this.#take(8);
        return true;
      case '(':
        this.#stack.push(mark);
        return true;
      case '0':
        this.#pop();
        return true;
      case '2':
        this.#stack.push(this.#top());
        return true;
      case 't':
        this.#stack.push(this.#toMark());
        return true;
      case '\x85':
      case '\x86':
      case '\x87':
        this.#stack.push(this.#popMany(code - 0x84));
        return true;
      case 'l':
        this.#stack.push(this.#toMark());
        return true;
      case 'd':
        this.#stack.push(this.#filled(new Map(), this.#toMark()));
        return true;
      case 'a': {
        const item = this.#pop();
        this.#list().push(item);
        return true;
      }
      case 'e': {
        const items = this.#toMark();
        const list = this.#list();
        for (const item of items) list.push(item);
        return true;
      }
      case 's': {
        const pair = this.#popMany(2);
        this.#filled(this.#dictionary(), pair);
        return true;
      }
      case 'u': {
        const items = this.#toMark();
        this.#filled(this.#dictionary(), items);
        return true;
      }
      case 'q':
        this.#memo.set(this.#take(1)[0]!, this.#top());
        return true;
      case 'r':
        this.#memo.set(this.#uint32(), this.#top());
        return true;
      case '\x94':
        this.#memo.set(this.#memo.size, this.#top());
        return true;
      case 'h':
        this.#stack.push(this.#remembered(this.#take(1)[0]!));
        return true;
      case 'j':
        this.#stack.push(this.#remembered(this.#uint32()));
        return true;
      case 'c':
        this.#stack.push(this.#global(this.#line(), this.#line()));
        return true;
      case '\x93': {
        const [module, name] = this.#popMany(2);
        if (typeof module !== 'string' || typeof name !== 'string')
          throw this.#broken('a global is named by no strings');
        this.#stack.push(this.#global(module, name));
        return true;
      }
      case 'R': {
        const [callee, args] = this.#popMany(2);
        if (!(callee instanceof PickledGlobal) || !Array.isArray(args))
          throw this.#broken('something that is no known function is called');
        this.#stack.push(this.#handlers.call(callee, args));
        return true;
      }
      case 'Q':
        this.#stack.push(this.#handlers.persistent(this.#pop()));
        return true;
      case 'b': {
        // Attributes of a dictionary, such as the versions of modules, are no data of it.
        this.#pop();
        this.#dictionary();
        return true;
      }
      default:
        return false;
    }
  }

  /** The value that an instruction holds; undefined where it is none of these. */
  #literal(code: number): Pickled | undefined {
    switch (String.fromCharCode(code)) {
      case 'N':
        return null;
      case '\x88':
        return true;
      case '\x89':
        return false;
      case ']':
      case ')':
        return [];
      case '}':
        return new Map();
      case 'K':
        return this.#take(1)[0]!;
      case 'M':
        return this.#number(2, (at) => this.#view.getUint16(at, true));
      case 'J':
        return this.#number(4, (at) => this.#view.getInt32(at, true));
      case 'G':
        return this.#number(8, (at) => this.#view.getFloat64(at, false));
      case '\x8a':
        return wide(this.#take(this.#take(1)[0]!));
      case 'X':
        return this.#text(this.#uint32());
      case '\x8c':
        return this.#text(this.#take(1)[0]!);
      case '\x8d':
        return this.#text(this.#uint64());
      case 'C':
        return this.#take(this.#take(1)[0]!).slice();
      case 'B':
        return this.#take(this.#uint32()).slice();
      default:
        return undefined;
    }
  }

  #broken(problem: string): ParseError {
    return new ParseError('E_FORMAT', this.#format, problem);
  }

  #take(count: number): Uint8Array {
    if (this.#at + count > this.#bytes.length) throw this.#broken('the pickle ends in an instruction');
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  #number(count: number, read: (at: number) => number): number {
    this.#take(count);
    return read(this.#at - count);
  }

  #uint32(): number {
    return this.#number(4, (at) => this.#view.getUint32(at, true));
  }

  #uint64(): number {
    const [low, high] = [this.#uint32(), this.#uint32()];
    return high * 2 ** 32 + low;
  }

  #text(length: number): string {
    return utf8.decode(this.#take(length).slice());
  }

  #line(): string {
    const end = this.#bytes.indexOf(0x0a, this.#at);
    if (end < 0) throw this.#broken('a line does not end');
    const text = this.#text(end - this.#at);
    this.#at = end + 1;
    return text;
  }

  #pop(): Pickled {
    const value = this.#stack.pop();
    if (value === undefined || value === mark) throw this.#broken('the stack is empty');
    return value;
  }

  #top(): Pickled {
    const value = this.#stack.at(-1);
    if (value === undefined || value === mark) throw this.#broken('the stack is empty');
    return value;
  }

  #popMany(count: number): Pickled[] {
    return Array.from({ length: count }, () => this.#pop()).toReversed();
  }

  #toMark(): Pickled[] {
    const from = this.#stack.lastIndexOf(mark);
    if (from < 0) throw this.#broken('there is no mark on the stack');
    const items = this.#stack.slice(from + 1) as Pickled[];
    this.#stack.length = from;
    return items;
  }

  #list(): Pickled[] {
    const list = this.#top();
    if (!Array.isArray(list)) throw this.#broken('something is appended to what is no list');
    return list;
  }

  #dictionary(): Map<Pickled, Pickled> {
    const map = this.#top();
    if (!(map instanceof Map)) throw this.#broken('entries or attributes of what is no dictionary');
    return map;
  }

  #filled(map: Map<Pickled, Pickled>, items: readonly Pickled[]): Map<Pickled, Pickled> {
    if (items.length % 2 !== 0) throw this.#broken('a key has no value');
    for (let i = 0; i < items.length; i += 2) map.set(items[i]!, items[i + 1]!);
    return map;
  }

  #remembered(place: number): Pickled {
    const value = this.#memo.get(place);
    if (value === undefined) throw this.#broken(`place ${place} of the memo is empty`);
    return value;
  }

  #global(module: string, name: string): PickledGlobal {
    const global = new PickledGlobal(module, name);
    if (this.#handlers.knows(global)) return global;
    const problem = `it names ${module}.${name}, which is neither a tensor nor plain data: nothing of a pickle is run`;
    throw new ParseError(
      'E_FORMAT',
      this.#format,
      `${problem} (save tensors, numbers, lists and dictionaries)`,
    );
  }
}

/** Two's complement of any length, least byte first. */
function wide(bytes: Uint8Array): number | bigint {
  let value = 0n;
  for (const [i, byte] of bytes.entries()) value |= BigInt(byte) << BigInt(8 * i);
  if (bytes.length > 0 && bytes.at(-1)! > 127) value -= 1n << BigInt(8 * bytes.length);
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
}
