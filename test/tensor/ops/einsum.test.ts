// einsum against a sum over all labels written out in loops, and errors that point into the equation.

import * as fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { ParseError } from '../../../src/errors.ts';
import { nodeOf } from '../../../src/tensor/record.ts';
import { topological } from '../../../src/ir/graph.ts';
import * as sn from '../../../src/operations/index.ts';
import { setDevice } from '../../../src/tensor/device.ts';
import { build, element, holds, plain, positions, toTensor, type Plain } from './support.ts';

beforeAll(() => setDevice('interpreter'));

/** Σ over every assignment of the labels. */
function naive(
  terms: readonly string[],
  output: string,
  operands: readonly Plain[],
  sizes: ReadonlyMap<string, number>,
): Plain {
  const summed = [...sizes.keys()].filter((label) => !output.includes(label));
  return build(
    [...output].map((label) => sizes.get(label)!),
    (position) => {
      let total = 0;
      for (const rest of positions(summed.map((label) => sizes.get(label)!))) {
        const at = (label: string): number =>
          output.includes(label) ? position[output.indexOf(label)]! : rest[summed.indexOf(label)]!;
        total += operands.reduce((product, x, i) => product * element(x, [...terms[i]!].map(at)), 1);
      }
      return total;
    },
  );
}

const letters = 'abcd';
const equation = fc
  .record({
    sizes: fc.tuple(...[...letters].map(() => fc.integer({ min: 1, max: 3 }))),
    terms: fc.array(fc.array(fc.constantFrom(...letters), { maxLength: 3 }), { minLength: 1, maxLength: 3 }),
    order: fc.shuffledSubarray([...letters]),
    seed: fc.integer({ min: 1, max: 1000 }),
  })
  .map(({ sizes, terms, order, seed }) => {
    const used = new Set(terms.flat());
    const output = order.filter((label) => used.has(label)).join('');
    const sizeOf = new Map(
      [...letters].flatMap((label, i) => (used.has(label) ? [[label, sizes[i]!] as const] : [])),
    );
    const operands = terms.map((term, i) => {
      const shape = term.map((label) => sizeOf.get(label)!);
      // Small whole numbers: products and sums are exact.
      return build(shape, (position) => ((position.reduce((h, n) => h * 7 + n + 1, seed + i) * 31) % 11) - 5);
    });
    return { terms: terms.map((term) => term.join('')), output, sizeOf, operands };
  });

describe('einsum', () => {
  test('is the sum over all labels that the result lacks', async () => {
    await holds(300, equation, async ({ terms, output, sizeOf, operands }) => {
      const found = await plain(
        sn.einsum(`${terms.join(',')}->${output}`, ...operands.map((x) => toTensor(x))),
      );
      const expected = naive(terms, output, operands, sizeOf);
      expect(found.shape).toEqual(expected.shape);
      // −0 and 0 are one number here.
      expect(found.data.map((n) => n + 0)).toEqual(expected.data.map((n) => n + 0));
    });
  });

  test('without an arrow gives the labels that appear once, sorted', async () => {
    const x = build([2, 3], ([i, j]) => 10 * i! + j!);
    expect((await plain(sn.einsum('ba', toTensor(x)))).data).toEqual([0, 10, 1, 11, 2, 12]);
    expect(sn.einsum('ij,jk', toTensor(x), sn.ones([3, 4])).shape).toEqual([2, 4]);
  });

  test('a size of 1 stretches', async () => {
    const x = build([2, 1], ([i]) => i! + 1);
    expect((await plain(sn.einsum('ij,ij->ij', toTensor(x), sn.ones([2, 3])))).data).toEqual([
      1, 1, 1, 2, 2, 2,
    ]);
    expect((await plain(sn.einsum('ij,jk->ik', toTensor(x), sn.ones([3, 2])))).data).toEqual([3, 3, 6, 6]);
  });

  test('... broadcasts from the right', async () => {
    const x = sn.ones([5, 1, 2, 3]);
    expect(sn.einsum('...ij,...jk->...ik', x, sn.ones([4, 3, 6])).shape).toEqual([5, 4, 2, 6]);
    expect((await plain(sn.einsum('...i->...', x))).data.every((n) => n === 3)).toBe(true);
  });

  test('contracts by dot, without repeating an operand in memory', () => {
    const attention = sn.einsum('bhqd,bhkd->bhqk', sn.rand([2, 3, 4, 5]), sn.rand([2, 3, 6, 5]));
    const used = topological([nodeOf(attention)]).map((node) => node.op);
    expect(used.filter((op) => op === 'dot')).toHaveLength(1);
    expect(used).not.toContain('reduce');
  });
});

describe('einsum errors', () => {
  const one =
    (text: string, ...shapes: number[][]): (() => unknown) =>
    () =>
      sn.einsum(text, ...shapes.map((shape) => sn.ones(shape)));

  test.each([
    [
      'ij,jk-ik',
      [
        [2, 3],
        [3, 4],
      ],
      6,
      "expected '->'",
    ],
    ['i#j->ij', [[2, 3]], 2, "unexpected '#'"],
    ['ij->iz', [[2, 3]], 6, "'z' is in no operand"],
    ['ij->ii', [[2, 3]], 6, "names 'i' twice"],
    ['i..j->ij', [[2, 3]], 2, "expected '...'"],
    ['ij->i->j', [[2, 3]], 6, "a second '->'"],
    ['ij->i,j', [[2, 3]], 6, "a ',' cannot follow"],
    ['...i...->i', [[2, 3]], 5, "a second '...'"],
  ] as const)('%s points at the fault', (text, shapes, column, problem) => {
    try {
      one(text, ...(shapes as unknown as number[][]))();
    } catch (error) {
      expect(error).toBeInstanceOf(ParseError);
      expect((error as ParseError).column).toBe(column);
      expect((error as ParseError).message).toContain(problem);
      return;
    }
    throw new Error('did not throw');
  });

  test('sizes, ranks and counts that clash are named', () => {
    expect(one('ij,jk->ik', [2, 3], [4, 5])).toThrow(
      /einsum: 'j' of 'ij,jk->ik' is both 3 and 4: f32\[2,3\], f32\[4,5\]/,
    );
    expect(one('ijk->i', [2, 3])).toThrow(/einsum: operand 1 of 'ijk->i' has 3 labels for f32\[2,3\]/);
    expect(one('ij,jk->ik', [2, 3])).toThrow(/takes 2 operand\(s\), got 1/);
    expect(() => sn.einsum('ij->i', sn.ones([2, 2], { dtype: 'bool' }))).toThrow(
      /einsum: bool has no product/,
    );
  });
});
