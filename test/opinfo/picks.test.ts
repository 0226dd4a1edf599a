// The rule by which positions among equal values are judged: any of them, but no other value and none twice.

import { expect, test } from 'vitest';
import { tensor } from '../../src/index.ts';
import { picksTheSame } from '../support/opinfo/picks.ts';

const x = tensor([3, 1, 3, 2], { dtype: 'i32' });
const positions = (data: number[]): { dtype: string; shape: number[]; data: number[] } => ({
  dtype: 'i64',
  shape: [data.length],
  data,
});
const agrees = (actual: number[], expected: number[]): Promise<boolean> =>
  picksTheSame({ x, axis: -1, isStable: false }, positions(actual), positions(expected));

test('positions of equal values may be exchanged', async () => {
  expect(await agrees([0, 2, 3, 1], [2, 0, 3, 1])).toBe(true);
});

test.each([
  ['another value', [1, 2], [0, 2]],
  ['one twice', [0, 0], [0, 2]],
  ['one outside', [4, 0], [0, 2]],
  ['too few', [0], [0, 2]],
])('positions must not name %s', async (_, actual, expected) => {
  expect(await agrees(actual, expected)).toBe(false);
});
