// The properties of layers that one trace has read, each with the value that it had: the trace
// holds while they have these values, and objects among them hold what they held.

import { areUnchanged, contentsOf, type Contents } from '../layer/contents.ts';
import { targetOf } from '../layer/watch.ts';

/** A property that a trace depends on, and the value that it had. */
export interface Reading {
  readonly holder: object;
  readonly key: PropertyKey;
  readonly value: unknown;
}

/** The properties that one trace has read. */
export class Readings {
  readonly list: Reading[] = [];
  readonly #known = new Map<object, Set<PropertyKey>>();
  readonly #keys = new Map<object, readonly PropertyKey[]>();
  /** Of objects that are neither lists nor plain. */
  readonly #contents = new Map<object, Contents | undefined>();

  /**
   * Notes what a property was when it was read first; lists and plain objects with what is in them.
   */
  note(holder: object, key: PropertyKey, value: unknown): void {
    let known = this.#known.get(holder);
    if (known === undefined) this.#known.set(holder, (known = new Set()));
    if (known.has(key)) return;
    known.add(key);
    this.list.push({ holder, key, value });
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) {
      this.note(value, 'length', value.length);
      value.forEach((item: unknown, i) => this.note(value, i, item));
    } else if (isPlain(value)) {
      this.noteKeys(value);
      for (const [name, item] of Object.entries(value)) this.note(value, name, item);
    } else if (!this.#contents.has(value)) this.#contents.set(value, contentsOf(value, isWatched));
  }

  /** Notes which properties an object has. */
  noteKeys(holder: object): void {
    if (!this.#keys.has(holder)) this.#keys.set(holder, Reflect.ownKeys(holder));
  }

  /** Whether everything that was read is as it was. */
  hold(): boolean {
    for (const { holder, key, value } of this.list) {
      if (!Object.is((holder as Readonly<Record<PropertyKey, unknown>>)[key], value)) return false;
    }
    for (const [holder, keys] of this.#keys) {
      const now = Reflect.ownKeys(holder);
      if (now.length !== keys.length || now.some((key, i) => key !== keys[i])) return false;
    }
    for (const contents of this.#contents.values()) if (!areUnchanged(contents)) return false;
    return true;
  }

  /** The first property that is not as it was; undefined when all are. */
  changed(): Reading | undefined {
    return this.list.find(
      ({ holder, key, value }) => !Object.is((holder as Readonly<Record<PropertyKey, unknown>>)[key], value),
    );
  }
}

/** What is read of layers is noted by itself. */
const isWatched = (object: object): boolean => targetOf(object) !== undefined;

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
