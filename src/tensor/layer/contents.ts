// What an object holds that may change in place while it stays the same object: the entries of a Map,
// the elements of a typed array, the time of a Date, the properties of an instance. A trace of a
// compiled function that may have read such an object holds only while its contents are what they
// were. They are compared at each call, in which nothing is allocated but what walks a Map or a Set.

import { Tensor } from '../tensor.ts';

/** One object, and what it held. Objects within are further parts, compared by identity here. */
interface Part {
  readonly object: object;
  readonly values: ArrayLike<unknown>;
}

/** An object and all that it leads to, as they were. */
export type Contents = readonly Part[];

type Elements = ArrayLike<unknown> & Iterable<unknown>;

/**
 * What a value holds now; undefined where nothing of it can change. Tensors and layers (what
 * `isWhole` says) are compared by themselves, and functions have nothing that can be read.
 */
export function contentsOf(value: unknown, isWhole: (object: object) => boolean): Contents | undefined {
  const parts: Part[] = [];
  const seen = new Set<object>();
  const queue: unknown[] = [value];
  for (const object of queue) {
    if (typeof object !== 'object' || object === null || seen.has(object)) continue;
    if (object instanceof Tensor || isWhole(object)) continue;
    seen.add(object);
    const elements = elementsOf(object);
    const values = elements === undefined ? [...held(object)] : copyOf(elements);
    parts.push({ object, values });
    if (elements === undefined) queue.push(...(values as unknown[]));
  }
  return parts.length === 0 ? undefined : parts;
}

/** Whether objects hold what they held. */
export function areUnchanged(contents: Contents | undefined): boolean {
  return contents === undefined || contents.every(({ object, values }) => isUnchanged(object, values));
}

/** Whether two records are of the same objects that held the same. */
export function sameContents(a: Contents | undefined, b: Contents | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return (
    a.length === b.length &&
    a.every((part, i) => part.object === b[i]!.object && areEqual(part.values, b[i]!.values))
  );
}

function isUnchanged(object: object, values: ArrayLike<unknown>): boolean {
  const elements = elementsOf(object);
  if (elements !== undefined) return areEqual(elements, values);
  let next = 0;
  for (const value of held(object)) {
    if (next >= values.length || !Object.is(value, values[next])) return false;
    next += 1;
  }
  return next === values.length;
}

function areEqual(a: ArrayLike<unknown>, b: ArrayLike<unknown>): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return false;
  return true;
}

/** The elements of an object that is memory. */
function elementsOf(object: object): Elements | undefined {
  if (object instanceof ArrayBuffer || isShared(object)) return new Uint8Array(object);
  if (!ArrayBuffer.isView(object)) return undefined;
  return object instanceof DataView
    ? new Uint8Array(object.buffer, object.byteOffset, object.byteLength)
    : (object as unknown as Elements);
}

function isShared(object: object): object is SharedArrayBuffer {
  return typeof SharedArrayBuffer !== 'undefined' && object instanceof SharedArrayBuffer;
}

function copyOf(elements: Elements): ArrayLike<unknown> {
  return (elements as Uint8Array).slice();
}

/** Whatever else an object holds, keys and values in turn. */
function* held(object: object): Generator<unknown> {
  if (Array.isArray(object)) {
    yield* object as readonly unknown[];
    return;
  }
  if (object instanceof Date) {
    yield object.getTime();
  } else if (object instanceof RegExp) {
    yield object.lastIndex;
  } else if (object instanceof Map) {
    for (const [key, value] of object) {
      yield key;
      yield value;
    }
  } else if (object instanceof Set) {
    yield* object;
  }
  for (const key of Object.keys(object)) {
    yield key;
    yield (object as Readonly<Record<string, unknown>>)[key];
  }
}
