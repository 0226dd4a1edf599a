// What inputs and outputs of a bundle's entries are called: as the function calls them, where it does.

import type { Flat, Structure } from '../tensor/tree.ts';

/** The parameters of a function by name; undefined for those that have none of their own. */
function parameterNames(fn: (...args: never[]) => unknown): readonly (string | undefined)[] {
  const text = fn.toString();
  const list = /^(?:async\s+)?(?:function\b[^(]*|[A-Za-z_$][\w$]*\s*)?\(([^]*)$/.exec(text)?.[1];
  if (list === undefined) {
    const alone = /^(?:async\s+)?([A-Za-z_$][\w$]*)\s*=>/.exec(text)?.[1];
    return alone === undefined ? [] : [alone];
  }
  return topLevel(list).map((parameter) => /^[A-Za-z_$][\w$]*/.exec(parameter.trim())?.[0]);
}

/** What stands between the commas up to the bracket that ends the list. */
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

/** Where the leaves of a tree lie, e.g. `.layers[0].w`. */
export function pathsOf(structure: Structure, path = ''): string[] {
  switch (structure.kind) {
    case 'leaf':
      return [path];
    case 'array':
      return structure.items.flatMap((item, i) => pathsOf(item, `${path}[${i}]`));
    case 'object':
      return structure.items.flatMap((item, i) => pathsOf(item, `${path}.${structure.keys[i]}`));
    case 'setting':
      return [];
    default:
      return structure satisfies never;
  }
}

/** The name of a result by its path: `.loss` is `loss`, a result without a name `output`. */
export function outputName(path: string): string {
  if (path === '') return 'output';
  return path.startsWith('.') ? path.slice(1) : `output${path.replace(/^\[(\d+)\]/, '$1')}`;
}

/** Names of the leaves of arguments: the function's own names for them, and where they lie in them. */
export function argumentNames(
  fn: (...args: never[]) => unknown,
  { paths }: Flat,
  hasState: boolean,
): string[] {
  const parameters = parameterNames(fn);
  return paths.map((path) => {
    const [, place = '0', rest = ''] = /^\[(\d+)\](.*)$/.exec(path) ?? [];
    const index = Number(place);
    const name =
      parameters[index] ??
      (index - (hasState ? 1 : 0) === 0 ? 'input' : `input${index - (hasState ? 1 : 0)}`);
    // Of an argument that is taken apart where it is declared, only the parts have names.
    return parameters[index] === undefined && rest.startsWith('.') ? rest.slice(1) : `${name}${rest}`;
  });
}
