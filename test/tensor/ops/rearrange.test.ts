// rearrange, reduce and repeat: a pattern and its reverse are inverse, and each is what the walk over named positions says.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { ParseError } from '../../../src/errors.ts';
import * as sn from '../../../src/operations/index.ts';
import { setDevice } from '../../../src/tensor/device.ts';
import { build, element, holds, plain, ramp, read, toTensor } from './support.ts';

beforeAll(() => setDevice('interpreter'));

/** The names cut into groups, `a (b c) d`. */
function grouping(names: readonly string[]): fc.Arbitrary<string[][]> {
  return fc.array(fc.boolean(), { minLength: names.length, maxLength: names.length }).map((joins) => {
    const groups: string[][] = [];
    names.forEach((name, i) => {
      if (i > 0 && joins[i] === true) groups.at(-1)!.push(name);
      else groups.push([name]);
    });
    return groups;
  });
}

const side = (groups: readonly string[][]): string =>
  groups.map((group) => (group.length === 1 ? group[0]! : `(${group.join(' ')})`)).join(' ');

const pattern = fc.shuffledSubarray(['a', 'b', 'c', 'd'], { minLength: 1 }).chain((left) =>
  fc.shuffledSubarray(left, { minLength: left.length, maxLength: left.length }).chain((right) =>
    fc.record({
      leftGroups: grouping(left),
      rightGroups: grouping(right),
      sizes: fc
        .tuple(...left.map(() => fc.integer({ min: 1, max: 3 })))
        .map((list) => new Map(left.map((name, i) => [name, list[i]!]))),
    }),
  ),
);

describe('rearrange', () => {
  test('moves the element at each named position', async () => {
    await holds(200, pattern, async ({ leftGroups, rightGroups, sizes }) => {
      const product = (group: readonly string[]): number =>
        group.reduce((n, name) => n * sizes.get(name)!, 1);
      const x = ramp(leftGroups.map(product));
      const given = Object.fromEntries(sizes);
      const there = sn.rearrange(toTensor(x), `${side(leftGroups)} -> ${side(rightGroups)}`, given);
      /** Positions of the names, from the position in a grouped shape. */
      const expected = build(rightGroups.map(product), (position) => {
        const at = new Map<string, number>();
        rightGroups.forEach((group, axis) => {
          let rest = position[axis]!;
          for (const name of group.toReversed()) {
            at.set(name, rest % sizes.get(name)!);
            rest = Math.floor(rest / sizes.get(name)!);
          }
        });
        return element(
          x,
          leftGroups.map((group) => group.reduce((flat, name) => flat * sizes.get(name)! + at.get(name)!, 0)),
        );
      });
      expect(await plain(there)).toEqual(expected);
      const back = sn.rearrange(there, `${side(rightGroups)} -> ${side(leftGroups)}`, given);
      expect(await plain(back)).toEqual(x);
    });
  });

  test('infers one size of a split, and keeps what ... stands for', () => {
    expect(sn.rearrange(sn.ones([2, 12, 5]), 'b (h d) t -> b h t d', { h: 4 }).shape).toEqual([2, 4, 5, 3]);
    expect(sn.rearrange(sn.ones([2, 3, 4, 5]), '... a b -> ... (b a)').shape).toEqual([2, 3, 20]);
    expect(sn.rearrange(sn.ones([2, 3, 4]), '... c -> (...) c').shape).toEqual([6, 4]);
    expect(sn.rearrange(sn.ones([2, 1, 3]), 'a 1 b -> 1 b a 1').shape).toEqual([1, 3, 2, 1]);
  });
});

describe('reduce by name', () => {
  const x = ramp([4, 6]);

  test('folds the names that are only on the left', async () => {
    const pooled = sn.reduce(toTensor(x), '(a p) (b q) -> a b', 'max', { p: 2, q: 3 });
    expect(await plain(pooled)).toEqual(build([2, 2], ([i, j]) => element(x, [2 * i! + 1, 3 * j! + 2])));
    expect(await read(sn.reduce(toTensor(x), 'a b ->', 'sum'))).toEqual([276]);
    expect(await read(sn.reduce(toTensor(x), 'a b -> b', 'mean'))).toEqual([9, 10, 11, 12, 13, 14]);
    expect(await read(sn.reduce(toTensor(x), 'a b -> a', 'min'))).toEqual([0, 6, 12, 18]);
    expect(await read(sn.reduce(toTensor(ramp([2, 2])), 'a b -> b', 'prod'))).toEqual([0, 3]);
  });

  test('counts bool in i32', async () => {
    const counted = sn.reduce(
      sn.tensor([
        [true, true],
        [false, true],
      ]),
      'a b -> a',
      'sum',
    );
    expect(counted.dtype).toBe('i32');
    expect(await read(counted)).toEqual([2, 1]);
  });
});

describe('repeat by name', () => {
  test('repeats along the names that are only on the right', async () => {
    const x = ramp([2, 3]);
    const spread = sn.repeat(toTensor(x), 'h w -> h w c', { c: 2 });
    expect(await plain(spread)).toEqual(build([2, 3, 2], ([i, j]) => element(x, [i!, j!])));
    const stretched = sn.repeat(toTensor(x), 'h w -> (h r) w', { r: 2 });
    expect(await plain(stretched)).toEqual(build([4, 3], ([i, j]) => element(x, [Math.floor(i! / 2), j!])));
  });
});

describe('pattern errors', () => {
  test.each([
    ['a b c', 6, "expected '->'"],
    ['a (b -> a b', 6, 'never closed'],
    ['a b) -> a b', 4, "a ')' without '('"],
    ['a (b (c)) -> a b c', 6, "a '(' inside"],
    ['a a -> a', 3, "'a' appears twice"],
    ['a b -> a $', 10, "unexpected '$'"],
    ['a b -> a ...', 10, "'...' must be on the left too"],
    ['(... a) b -> b', 2, "'...' cannot be split"],
  ])('%s points at the fault', (text, column, problem) => {
    try {
      sn.rearrange(sn.ones([2, 3]), text);
    } catch (error) {
      expect(error).toBeInstanceOf(ParseError);
      expect((error as ParseError).column).toBe(column);
      expect((error as ParseError).message).toContain(problem);
      return;
    }
    throw new Error('did not throw');
  });

  test.each([
    ['a b -> a', {}, /rearrange: 'a b -> a': b is missing on the right/],
    ['a b -> a b c', {}, /rearrange: 'a b -> a b c': c is missing on the left/],
    ['a (b c) -> a b c', {}, /leaves the sizes of b and c open/],
    ['a (b c) -> a b c', { b: 5 }, /axis 1 of f32\[2,3\] does not split into \(b c\)/],
    ['a b c -> a b c', {}, /names 3 axes: f32\[2,3\]/],
    ['a b -> b a', { q: 3 }, /has no axis q/],
    ['a b -> b a', { a: -1 }, /the size of a must be an integer of at least 0: -1/],
  ])('%s is refused', (text, sizes, message) => {
    expect(() => sn.rearrange(sn.ones([2, 3]), text, sizes)).toThrow(message);
  });
});
