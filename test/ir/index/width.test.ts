// Kernels compute indices in 32 bits: no law of the algebra may take a view's index out of them, however large the tensor is that is
// viewed, and however often. Sizes here go up to what 32 bits count; nothing is allocated.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  axisIndex,
  constantIndex,
  delinearize,
  divIndex,
  linearize,
  modIndex,
  offsetIndex,
  scaleIndex,
  subIndex,
  type IndexExpr,
  type Leaf,
} from '../../../src/ir/index-algebra/expr.ts';
import { sizeOf, stridesOf } from '../../../src/ir/shape.ts';
import { checkLaw } from '../../support/property.ts';

/** The value as a kernel computes it: every product, every sum of some of the terms, every operand must be an i32. */
function evaluateWord(e: IndexExpr, env: (leaf: Leaf) => number): number {
  const word = (value: number): number => {
    if (value !== (value | 0)) throw new Error(`${value} is no i32`);
    return value;
  };
  switch (e.kind) {
    case 'const':
      return word(e.value);
    case 'axis':
    case 'dynamic':
      return word(env(e));
    case 'div':
      return Math.floor(evaluateWord(e.of, env) / word(e.by));
    case 'mod': {
      const of = evaluateWord(e.of, env);
      return of - e.by * Math.floor(of / word(e.by));
    }
    case 'sum': {
      const terms = e.terms.map(({ factor, atom }) => word(word(factor) * evaluateWord(atom, env)));
      // Both ends that an order of adding up can reach.
      [...terms, e.offset].filter((term) => term > 0).reduce((sum, term) => word(sum + term), 0);
      [...terms, e.offset].filter((term) => term < 0).reduce((sum, term) => word(sum + term), 0);
      return word(terms.reduce((sum, term) => sum + term, e.offset));
    }
    default:
      return e satisfies never;
  }
}

type View =
  | { readonly kind: 'reshape'; readonly shape: readonly number[] }
  | { readonly kind: 'permute'; readonly order: readonly number[] }
  | { readonly kind: 'flip'; readonly axis: number };

/** A shape, and views of it one after another. */
interface Chain {
  readonly shape: readonly number[];
  readonly views: readonly View[];
}

const primes = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 97, 257, 1009, 4999, 46337];

const chain: fc.Arbitrary<Chain> = fc
  .record({
    factors: fc.array(fc.constantFrom(...primes), { minLength: 3, maxLength: 9 }),
    dice: fc.array(fc.nat({ max: 10_000 }), { minLength: 40, maxLength: 40 }),
    length: fc.integer({ min: 1, max: 5 }),
  })
  .map(({ factors, dice, length }) => {
    const roll = [...dice];
    const next = (sides: number): number => (roll.pop() ?? 0) % sides;
    const kept: number[] = [];
    for (const factor of factors) if (sizeOf([...kept, factor]) <= 2147483647) kept.push(factor);
    /** The factors, in another order and in other groups. */
    const grouped = (): number[] => {
      const left = [...kept];
      const sizes: number[] = [];
      while (left.length > 0) {
        const taken = Array.from(
          { length: 1 + next(3) },
          () => left.splice(next(left.length || 1), 1)[0] ?? 1,
        );
        sizes.push(sizeOf(taken));
      }
      return sizes;
    };
    const shape = grouped();
    const views: View[] = [];
    let rank = shape.length;
    for (let i = 0; i < length; i++) {
      const from = grouped();
      rank = from.length;
      views.push({ kind: 'reshape', shape: from });
      const order = Array.from({ length: rank }, (_, axis) => axis).sort(() => next(3) - 1);
      views.push({ kind: 'permute', order });
      if (next(3) === 0) views.push({ kind: 'flip', axis: next(rank) });
    }
    return { shape, views };
  });

/** Every shape of the chain, from the tensor itself to the last view. */
function shapesOf({ shape, views }: Chain): readonly (readonly number[])[] {
  const shapes = [shape];
  for (const view of views) {
    const last = shapes.at(-1)!;
    if (view.kind === 'reshape') shapes.push(view.shape);
    else if (view.kind === 'permute') shapes.push(view.order.map((axis) => last[axis]!));
    else shapes.push(last);
  }
  return shapes;
}

/** Where each view reads, from the last to the tensor; `reshape` finds the place of a flat one. */
function through<T>(
  chain: Chain,
  at: readonly T[],
  reshape: (at: readonly T[], from: readonly number[], to: readonly number[]) => T[],
  flip: (index: T, size: number) => T,
): readonly T[] {
  const shapes = shapesOf(chain);
  let here = at;
  for (let i = chain.views.length - 1; i >= 0; i--) {
    const view = chain.views[i]!;
    const [inner, outer] = [shapes[i]!, shapes[i + 1]!];
    const before = here;
    if (view.kind === 'reshape') here = reshape(before, outer, inner);
    else if (view.kind === 'permute') here = inner.map((_, axis) => before[view.order.indexOf(axis)]!);
    else here = before.map((index, axis) => (axis === view.axis ? flip(index, outer[axis]!) : index));
  }
  return here;
}

test('composed views are found without leaving 32 bits, and where they are', () => {
  checkLaw(400, fc.tuple(chain, fc.array(fc.nat(), { minLength: 12, maxLength: 12 })), ([given, dice]) => {
    const last = shapesOf(given).at(-1)!;
    const total = sizeOf(last);
    const flat = axisIndex('i', Math.max(2, total));
    const composed = linearize(
      through(
        given,
        delinearize(flat, last),
        (at, from, to) => delinearize(linearize(at, from), to),
        (index, size) => subIndex(constantIndex(size - 1), index),
      ),
      given.shape,
    );
    expect(composed.fits).toBe(true);
    for (const place of [0, total - 1, ...dice.map((value) => value % total)]) {
      const unravel = (at: number, shape: readonly number[]): number[] =>
        stridesOf(shape).map((stride, axis) => Math.floor(at / stride) % shape[axis]!);
      const ravel = (at: readonly number[], shape: readonly number[]): number =>
        stridesOf(shape).reduce((sum, stride, axis) => sum + stride * at[axis]!, 0);
      const wanted = ravel(
        through(
          given,
          unravel(place, last),
          (at, from, to) => unravel(ravel(at, from), to),
          (index, size) => size - 1 - index,
        ),
        given.shape,
      );
      expect(evaluateWord(composed, () => place)).toBe(wanted);
    }
  });
});

test('an index fits where all on the way to it does', () => {
  const i = axisIndex('i', 65_536);
  const j = axisIndex('j', 65_536);
  const far = linearize([i, j], [65_536, 65_536]);
  expect(far.fits).toBe(false);
  // A quotient of it is small, but computed from it; one that divides its factors is not.
  expect(divIndex(far, 2 ** 32 - 5).fits).toBe(false);
  expect(divIndex(far, 7).fits).toBe(true);
  // What simplifies to an axis is computed from nothing else.
  expect(divIndex(far, 65_536)).toBe(i);
  expect(modIndex(far, 65_536)).toBe(j);
  // The sum is small whatever the axes are, the terms are not.
  expect(subIndex(scaleIndex(i, 65_536), scaleIndex(axisIndex('l', 65_536), 65_535)).fits).toBe(false);
  expect(offsetIndex(i, 2147418112).fits).toBe(true);
  expect(offsetIndex(i, 2147418113).fits).toBe(false);
});
