// Python literals as they stand in npy headers: dicts, tuples, lists, strings, integers, True,
// False and None. Recursive descent over one line of text, with a bound on nesting.

/** A parsed literal; tuples and lists are both arrays. */
export type Literal = string | number | boolean | null | readonly Literal[] | ReadonlyMap<string, Literal>;

const maxDepth = 8;

/**
 * Parses all of `text`. On a mistake calls `fail` with the place (0-based) and what is wrong;
 * `fail` must throw.
 */
export function parseLiteral(text: string, fail: (at: number, problem: string) => Error): Literal {
  let at = 0;

  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    at += found?.length ?? 0;
    return found;
  };
  const skip = (): void => void match(/[ \t\n\r]*/y);
  const take = (char: string): boolean => {
    skip();
    if (text[at] !== char) return false;
    at++;
    return true;
  };
  const wrong = (expected: string): Error => {
    const found = at < text.length ? JSON.stringify(text[at]) : 'the end';
    return fail(at, `expected ${expected}, found ${found}`);
  };

  /** Items up to `close`, separated by commas; one may trail. */
  const items = (close: string, item: () => void): number => {
    let commas = 0;
    while (!take(close)) {
      item();
      if (take(',')) commas++;
      else if (take(close)) break;
      else throw wrong(`"," or "${close}"`);
    }
    return commas;
  };

  const value = (depth: number): Literal => {
    if (depth > maxDepth) throw fail(at, 'nested too deeply');
    if (take('{')) return dict(depth);
    if (take('[')) return sequence(depth, ']');
    if (take('(')) return sequence(depth, ')');
    if (text[at] === "'" || text[at] === '"') return string();
    const word = match(/-?\d+L?|[A-Za-z]+/y);
    if (word === 'True') return true;
    if (word === 'False') return false;
    if (word === 'None') return null;
    if (word !== undefined && /\d/.test(word)) return Number(word.replace('L', ''));
    at -= word?.length ?? 0;
    throw wrong('a value');
  };

  const sequence = (depth: number, close: ')' | ']'): Literal => {
    const list: Literal[] = [];
    const commas = items(close, () => list.push(value(depth + 1)));
    // (3) is the number 3, (3,) a tuple.
    return close === ')' && list.length === 1 && commas === 0 ? list[0]! : list;
  };

  const dict = (depth: number): Literal => {
    const entries = new Map<string, Literal>();
    items('}', () => {
      const key = value(depth + 1);
      if (typeof key !== 'string') throw fail(at, 'a key is not a string');
      if (entries.has(key)) throw fail(at, `the key ${key} is given twice`);
      if (!take(':')) throw wrong('":"');
      entries.set(key, value(depth + 1));
    });
    return entries;
  };

  const string = (): string => {
    const start = at;
    const quote = text[at++];
    while (at < text.length && text[at] !== quote) at += text[at] === '\\' ? 2 : 1;
    if (at >= text.length) throw fail(start, 'a string does not end');
    return text.slice(start + 1, at++).replace(/\\(.)/gs, '$1');
  };

  const result = value(0);
  skip();
  if (at < text.length) throw wrong('nothing more');
  return result;
}
