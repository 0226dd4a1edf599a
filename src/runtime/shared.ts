// Kernels that the programs of one device share. In: a key and how to make the value; out: one
// value for equal keys, with a count of its users. A bounded number of values without users are
// kept for later programs; the one that lost its last user longest ago is evicted first (least
// recently used).

/** Values without users that are kept at most. */
export const mostIdle = 128;

interface Entry<Value> {
  readonly key: string;
  readonly value: Value;
  users: number;
}

export class SharedEntries<Value extends object> {
  readonly #entries = new Map<string, Entry<Value>>();
  readonly #entryOf = new Map<Value, Entry<Value>>();
  /** Values without users, least recently used first. */
  readonly #idle = new Set<Entry<Value>>();
  readonly #drop: (value: Value) => void;

  /** `drop` is called with each evicted value. */
  constructor(drop: (value: Value) => void = () => undefined) {
    this.#drop = drop;
  }

  /**
   * The value of this key for one more user, made unless it is there; what `make` throws leaves
   * nothing behind.
   */
  take(key: string, make: () => Value): Value {
    const known = this.#entries.get(key);
    if (known !== undefined) {
      known.users += 1;
      this.#idle.delete(known);
      return known.value;
    }
    const entry = { key, value: make(), users: 1 };
    this.#entries.set(key, entry);
    this.#entryOf.set(entry.value, entry);
    return entry.value;
  }

  /** Ends one use. */
  release(value: Value): void {
    const entry = this.#entryOf.get(value);
    // The value was removed by `clear`.
    if (entry === undefined) return;
    entry.users -= 1;
    if (entry.users > 0) return;
    this.#idle.add(entry);
    for (const oldest of this.#idle) {
      if (this.#idle.size <= mostIdle) return;
      this.#idle.delete(oldest);
      this.#entries.delete(oldest.key);
      this.#entryOf.delete(oldest.value);
      this.#drop(oldest.value);
    }
  }

  /** How many values there are, those without users included. */
  get count(): number {
    return this.#entries.size;
  }

  has(value: Value): boolean {
    return this.#entryOf.has(value);
  }

  values(): Iterable<Value> {
    return this.#entryOf.keys();
  }

  /** Removes everything, without calling `drop`. */
  clear(): void {
    this.#entries.clear();
    this.#entryOf.clear();
    this.#idle.clear();
  }
}
