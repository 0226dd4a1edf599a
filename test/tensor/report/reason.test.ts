// Why something is compiled once more, in words: the nearest of what was compiled before, and what is new beside it.

import { describe, expect, test } from 'vitest';
import { differenceOf, ordinal, type KnownInput } from '../../../src/tensor/report/reason.ts';

const f32 = (...shape: number[]): KnownInput => ({ kind: 'tensor', dtype: 'f32', shape });
const f16 = (...shape: number[]): KnownInput => ({ kind: 'tensor', dtype: 'f16', shape });
const text = (value: string): KnownInput => ({ kind: 'static', value });
const number: KnownInput = { kind: 'number' };
const names = (i: number): string => ['x', 'y', 'z'][i]!;
const why = (now: KnownInput[], ...before: KnownInput[][]): string | undefined =>
  differenceOf(now, before, names);

describe('the difference', () => {
  test('of the first is that it is the first', () => {
    expect(why([f32(2)])).toBe('first call');
  });

  test('of sizes counts them, and says which there were', () => {
    expect(why([f32(64, 8)], [f32(32, 8)])).toBe('second size of axis 0 of x: 64 after 32');
    expect(why([f32(64, 8)], [f32(32, 8)], [f32(16, 8)])).toBe('third size of axis 0 of x: 64 after 32, 16');
    // Another axis that differed once does not count, and one size counts once.
    expect(why([f32(64, 8)], [f32(32, 8)], [f32(32, 9)])).toBe('second size of axis 0 of x: 64 after 32');
  });

  test('is to the nearest', () => {
    expect(why([f32(2), f32(3), f32(5)], [f32(1), f32(1), f32(1)], [f32(2), f32(3), f32(4)])).toBe(
      'third size of axis 0 of z: 5 after 1, 4',
    );
    expect(why([f32(2), f32(3)], [f32(1), f32(1)])).toBe(
      'second size of axis 0 of x: 2 after 1, and 1 more input',
    );
  });

  test('may be a dtype, a rank, a value, or a kind', () => {
    expect(why([f16(2)], [f32(2)])).toBe('dtype of x: f16 after f32');
    expect(why([f32(2, 1)], [f32(2)])).toBe('rank of x: f32[2,1] after f32[2]');
    expect(why([text('b')], [text('a')], [text('a')])).toBe("second value of x: 'b' after 'a'");
    expect(why([number], [f32()])).toBe('x is a number, was f32[]');
    expect(why([number, f32(2)], [number])).toBe('another structure of its arguments');
  });

  test('is none that inputs show where they are the same', () => {
    expect(why([f32(2), number], [f32(2), number])).toBe(undefined);
  });
});

test('counting words go on', () => {
  expect([1, 2, 3, 10, 11, 12, 13, 21, 22, 23, 101, 111].map(ordinal)).toEqual([
    'first',
    'second',
    'third',
    'tenth',
    '11th',
    '12th',
    '13th',
    '21st',
    '22nd',
    '23rd',
    '101st',
    '111th',
  ]);
});
