// Elements of text. No target has strings: they are i32 positions in a list of distinct words in order, which
// the host keeps. So operators that only move elements need no second implementation, equal positions are
// equal strings, and the order of positions is the order of strings.

import { SinterError } from '../errors.ts';
import type { HostArray } from '../ir/value.ts';
import { indexSelect } from '../tensor/ops/shape/gather.ts';
import { reshape } from '../tensor/ops/shape/view.ts';
import { fromHost } from '../tensor/record.ts';
import { Value } from './value.ts';

/** The order of strings by code points, which is that of their bytes in UTF-8. */
export function byCodePoint(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const [p, q] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (p !== q) return lifted(p) - lifted(q);
  }
  return a.length - b.length;
}

/** A unit of UTF-16 such that surrogates, which stand for the highest code points, come last. */
function lifted(unit: number): number {
  return unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit;
}

/** The distinct strings in order. */
export function wordsOf(strings: Iterable<string>): string[] {
  return [...new Set(strings)].sort(byCodePoint);
}

/** Where each word stands in a list. */
export function placesIn(words: readonly string[]): ReadonlyMap<string, number> {
  return new Map(words.map((word, i) => [word, i]));
}

/** Strings as places in their words. */
export function carried(strings: readonly string[]): { places: Int32Array; words: readonly string[] } {
  const words = wordsOf(strings);
  const at = placesIn(words);
  return { places: Int32Array.from(strings, (text) => at.get(text)!), words };
}

/** Known elements of text. */
export function knownStrings(strings: readonly string[], shape: readonly number[]): Value {
  const { places, words } = carried(strings);
  return Value.known('string', { dtype: 'i32', shape, data: places }, words);
}

/** The strings that elements stand for. Throws E_DTYPE where they are none. */
export function stringsOf(words: readonly string[] | undefined, array: HostArray): string[] {
  if (words === undefined) throw new SinterError('E_DTYPE', 'expected strings');
  return Array.from(array.data as ArrayLike<number>, (place) => words[place] ?? '');
}

/** The values with one list of words for all of them; what is no text stays as it is. */
export function unified(values: readonly (Value | undefined)[]): (Value | undefined)[] {
  const lists = new Set(values.flatMap((value) => (value === undefined ? [] : listsOf(value))));
  if (lists.size < 2) return [...values];
  const words = wordsOf([...lists].flat());
  const at = placesIn(words);
  return values.map((value) => value && moved(value, words, at));
}

/** The lists of words of a value and of what it is made of. */
function listsOf({ words, items }: Value): (readonly string[])[] {
  if (items !== undefined) return items.flatMap(listsOf);
  return words === undefined ? [] : [words];
}

/** The words that all of some values have, unified before; undefined where none is of text. */
export function commonWords(values: readonly (Value | undefined)[]): readonly string[] | undefined {
  for (const value of values) {
    const [words] = value === undefined ? [] : listsOf(value);
    if (words !== undefined) return words;
  }
  return undefined;
}

function moved(value: Value, words: readonly string[], at: ReadonlyMap<string, number>): Value {
  const { items, words: own, type } = value;
  if (items !== undefined)
    return Value.sequence(
      items.map((item) => moved(item, words, at)),
      type,
    );
  if (own === undefined || own === words) return value;
  const places = Int32Array.from(own, (word) => at.get(word)!);
  const array = value.host();
  if (array !== undefined) {
    const data = Int32Array.from(array.data as ArrayLike<number>, (place) => places[place]!);
    return Value.known(type, { ...array, data }, words);
  }
  const { tensor } = value;
  const table = fromHost(places, [places.length], 'i32');
  const found = reshape(indexSelect(table, 0, reshape(tensor, [tensor.size])), tensor.shape);
  return Value.of(found, type, undefined, words);
}
