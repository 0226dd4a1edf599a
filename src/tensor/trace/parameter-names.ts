// What the parameters of a function are called, from its source text, for people to read.

import { methodOf } from '../layer/watch.ts';

/** The parameters of a function by name; undefined for those that have none of their own. */
export function parameterNames(fn: (...args: never[]) => unknown): readonly (string | undefined)[] {
  const text = methodOf(fn).toString();
  const list = /^(?:async\s+)?(?:function\b[^(]*|[A-Za-z_$][\w$]*\s*)?\(([^]*)$/.exec(text)?.[1];
  if (list === undefined) {
    const alone = /^(?:async\s+)?([A-Za-z_$][\w$]*)\s*=>/.exec(text)?.[1];
    return alone === undefined ? [] : [alone];
  }
  return topLevel(list).map((parameter) => /^[A-Za-z_$][\w$]*/.exec(parameter.trim())?.[0]);
}

/** The text between the commas, up to the bracket that ends the list. */
function topLevel(list: string): string[] {
  const parts = [''];
  let depth = 0;
  for (const letter of list) {
    if (')]}'.includes(letter)) depth -= 1;
    if (depth < 0) break;
    if ('([{'.includes(letter)) depth += 1;
    if (letter === ',' && depth === 0) parts.push('');
    else parts[parts.length - 1] += letter;
  }
  return parts.length === 1 && parts[0]!.trim() === '' ? [] : parts;
}
