// A slot holds code that one folder calls and that another one fills in, so that a page downloads the code only if it needs it. Most
// slots are filled by a chunk of the compiler (compile/chunks.ts): a kernel template for sorts, say, is downloaded by the pages that
// sort. In Node all chunks are loaded from the start. The derivative of loops is filled in by the code that records a loop
// (autograd/slots.ts), in Node too.

import { CompilerBug } from './errors.ts';

export class Slot<T> {
  readonly name: string;
  #value: T | undefined = undefined;

  /** `name` says in messages what is missing. */
  constructor(name: string) {
    this.name = name;
  }

  /**
   * What fills the slot. Throws a CompilerBug while nothing does: then what has to fill it was
   * overlooked, by `chunksOf` for a chunk.
   */
  get value(): T {
    if (this.#value === undefined) throw new CompilerBug('chunks', `${this.name} is used and is not loaded`);
    return this.#value;
  }

  /** What fills the slot; undefined while nothing does. */
  get filled(): T | undefined {
    return this.#value;
  }

  /** Fills the slot; with undefined, empties it. */
  fill(value: T | undefined): void {
    this.#value = value;
  }
}

/** Fills slots, each with its value; gives the slots. */
export function fill<T extends readonly unknown[]>(
  ...pairs: { readonly [K in keyof T]: readonly [slot: Slot<T[K]>, value: T[K]] }
): readonly Slot<unknown>[] {
  return (pairs as readonly (readonly [Slot<unknown>, unknown])[]).map(([slot, value]) => {
    slot.fill(value);
    return slot;
  });
}
