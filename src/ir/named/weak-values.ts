// WeakValues: values by key, each for as long as something else holds it.

export class WeakValues<K, V extends object> {
  readonly #refs = new Map<K, WeakRef<V>>();
  readonly #collected = new FinalizationRegistry<K>((key) => {
    // Another value may have taken the key meanwhile.
    if (this.#refs.get(key)?.deref() === undefined) this.#refs.delete(key);
  });

  get(key: K): V | undefined {
    return this.#refs.get(key)?.deref();
  }

  set(key: K, value: V): void {
    this.#refs.set(key, new WeakRef(value));
    this.#collected.register(value, key);
  }

  /** The value of a key, made where there is none. */
  getOrMake(key: K, make: () => V): V {
    const known = this.get(key);
    if (known !== undefined) return known;
    const made = make();
    this.set(key, made);
    return made;
  }

  /** How many keys have a value. */
  get size(): number {
    return this.#refs.size;
  }
}
