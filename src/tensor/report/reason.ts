// Why something is compiled once more, in words: what is new beside what was compiled before. Pure
// functions: take what programs were compiled for, and give a phrase such as
// `third size of axis 0 of x: 64 after 32, 16`.

import type { DType } from '../../ir/dtype.ts';
import { sameShape, showShape, type FixedShape } from '../../ir/shape.ts';

/** What a program was compiled for: one entry an input. */
export type KnownInput =
  | { readonly kind: 'tensor'; readonly dtype: DType; readonly shape: FixedShape }
  | { readonly kind: 'number' }
  | { readonly kind: 'static'; readonly value: unknown };

/**
 * What sets `now` apart from all of `before`, the nearest of which it is compared with; undefined
 * where that is nothing that inputs show. `nameOf` says what an input is called.
 */
export function differenceOf(
  now: readonly KnownInput[],
  before: readonly (readonly KnownInput[])[],
  nameOf: (input: number) => string,
): string | undefined {
  const alike = before.filter((known) => known.length === now.length);
  if (alike.length === 0) return before.length === 0 ? 'first call' : 'another structure of its arguments';
  const differing = (known: readonly KnownInput[]): number[] =>
    now.flatMap((input, i) => (isSame(input, known[i]!) ? [] : [i]));
  const nearest = alike.reduce((a, b) => (differing(b).length < differing(a).length ? b : a));
  const [first, ...others] = differing(nearest);
  if (first === undefined) return undefined;
  const histories = alike.map((known) => known[first]!);
  const more =
    others.length === 0 ? '' : `, and ${others.length} more input${others.length === 1 ? '' : 's'}`;
  return `${phrase(now[first]!, nearest[first]!, histories, nameOf(first))}${more}`;
}

/** How one input differs from what it was. */
function phrase(now: KnownInput, was: KnownInput, before: readonly KnownInput[], name: string): string {
  if (now.kind !== was.kind) return `${name} is ${show(now)}, was ${show(was)}`;
  if (now.kind === 'static') {
    const values = new Set(before.map(show));
    return `${ordinal(values.size + 1)} value of ${name}: ${show(now)} after ${listed([...values])}`;
  }
  if (now.kind === 'number' || was.kind !== 'tensor') return `${name} is a number`;
  if (now.dtype !== was.dtype) return `dtype of ${name}: ${now.dtype} after ${was.dtype}`;
  if (now.shape.length !== was.shape.length)
    return `rank of ${name}: ${showShape(now.shape, now.dtype)} after ${showShape(was.shape, was.dtype)}`;
  const axis = now.shape.findIndex((size, a) => size !== was.shape[a]);
  // Of those with the same rank; the newest come first.
  const sizes = new Set(
    before.flatMap((one) =>
      one.kind === 'tensor' && one.shape.length === now.shape.length ? [one.shape[axis]!] : [],
    ),
  );
  sizes.delete(now.shape[axis]!);
  return `${ordinal(sizes.size + 1)} size of axis ${axis} of ${name}: ${now.shape[axis]} after ${listed([...sizes])}`;
}

function listed(values: readonly unknown[]): string {
  return values.slice(0, mostShown).join(', ') + (values.length > mostShown ? ', …' : '');
}

const mostShown = 4;

export function isSame(a: KnownInput, b: KnownInput): boolean {
  if (a.kind === 'tensor' && b.kind === 'tensor') return a.dtype === b.dtype && sameShape(a.shape, b.shape);
  if (a.kind === 'static' && b.kind === 'static') return Object.is(a.value, b.value);
  return a.kind === b.kind;
}

function show(known: KnownInput): string {
  switch (known.kind) {
    case 'tensor':
      return showShape(known.shape, known.dtype);
    case 'number':
      return 'a number';
    case 'static':
      return typeof known.value === 'string' ? `'${known.value}'` : String(known.value);
    default:
      return known satisfies never;
  }
}

const words = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh', 'eighth', 'ninth', 'tenth'];

/** `third`, `11th`, `22nd`. */
export function ordinal(n: number): string {
  const teen = n % 100 > 10 && n % 100 < 14;
  return words[n - 1] ?? `${n}${teen ? 'th' : (['th', 'st', 'nd', 'rd'][n % 10] ?? 'th')}`;
}
