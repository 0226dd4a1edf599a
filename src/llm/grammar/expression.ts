// What grammars are made of: expressions over bytes. Tokens are bytes and may end within a
// character, so that a character of a grammar is the bytes of its UTF-8.

/** A part of a grammar. */
export type Expression =
  /** One byte of a range. */
  | { readonly kind: 'bytes'; readonly low: number; readonly high: number }
  | { readonly kind: 'sequence'; readonly items: readonly Expression[] }
  | { readonly kind: 'choice'; readonly items: readonly Expression[] }
  /** So many times in a row; without `max` any number of times. */
  | {
      readonly kind: 'repeat';
      readonly item: Expression;
      readonly min: number;
      readonly max?: number | undefined;
    }
  | { readonly kind: 'rule'; readonly name: string };

/** Expressions by name; what is written is the one called `root`. */
export type Rules = ReadonlyMap<string, Expression>;

export function sequence(...items: readonly Expression[]): Expression {
  return { kind: 'sequence', items };
}

export function choice(...items: readonly Expression[]): Expression {
  const [only] = items;
  return items.length === 1 && only !== undefined ? only : { kind: 'choice', items };
}

export function repeat(item: Expression, min: number, max?: number): Expression {
  return { kind: 'repeat', item, min, max };
}

export function rule(name: string): Expression {
  return { kind: 'rule', name };
}

const encoder = new TextEncoder();

/** Exactly this text. */
export function literal(text: string): Expression {
  return sequence(
    ...Array.from(encoder.encode(text), (byte): Expression => ({ kind: 'bytes', low: byte, high: byte })),
  );
}

/** Code points from `low` to `high`. */
export type CodeRange = readonly [low: number, high: number];

const last = 0x10ffff;
/** Where UTF-8 takes a byte more; and the surrogates, which it has none for. */
const borders: readonly CodeRange[] = [
  [0, 0x7f],
  [0x80, 0x7ff],
  [0x800, 0xd7ff],
  [0xe000, 0xffff],
  [0x10000, last],
];

/** One character of these ranges. */
export function characters(ranges: readonly CodeRange[]): Expression {
  const parts = ranges.flatMap(([low, high]) =>
    borders.flatMap(([from, to]) => {
      const [a, b] = [Math.max(low, from), Math.min(high, to)];
      return a > b ? [] : spelled(bytesOf(a), bytesOf(b));
    }),
  );
  return choice(...parts);
}

/** The code points that are in none of these ranges. */
export function without(ranges: readonly CodeRange[]): CodeRange[] {
  const out: CodeRange[] = [];
  let from = 0;
  for (const [low, high] of ranges.toSorted((a, b) => a[0] - b[0])) {
    if (low > from) out.push([from, low - 1]);
    from = Math.max(from, high + 1);
  }
  if (from <= last) out.push([from, last]);
  return out;
}

function bytesOf(code: number): readonly number[] {
  return [...encoder.encode(String.fromCodePoint(code))];
}

/** Runs of as many bytes that lie between two, as sequences of ranges of bytes. */
function spelled(low: readonly number[], high: readonly number[]): Expression[] {
  const [a, b] = [low[0] ?? 0, high[0] ?? 0];
  if (low.length === 1) return [{ kind: 'bytes', low: a, high: b }];
  const [lowRest, highRest] = [low.slice(1), high.slice(1)];
  const least = lowRest.map(() => 0x80);
  const most = lowRest.map(() => 0xbf);
  const behind = (from: number, to: number, rest: readonly Expression[]): Expression =>
    sequence({ kind: 'bytes', low: from, high: to }, choice(...rest));
  if (a === b) return [behind(a, a, spelled(lowRest, highRest))];
  const out: Expression[] = [];
  const wholeLow = lowRest.every((byte) => byte === 0x80);
  const wholeHigh = highRest.every((byte) => byte === 0xbf);
  if (!wholeLow) out.push(behind(a, a, spelled(lowRest, most)));
  const [from, to] = [wholeLow ? a : a + 1, wholeHigh ? b : b - 1];
  if (from <= to) out.push(behind(from, to, spelled(least, most)));
  if (!wholeHigh) out.push(behind(b, b, spelled(least, highRest)));
  return out;
}
