// What counts as wrong: exact values, roundings, cancellation, and numbers that are none.

import { describe, expect, test } from 'vitest';
import { differenceOf, Nudging, roundingOf } from '../../../src/check/comparison.ts';
import type { ValueDifference } from '../../../src/check/report.ts';
import { hostArray, type HostArray, type Scalar } from '../../../src/ir/value.ts';
import type { DType } from '../../../src/ir/dtype.ts';

const array = (values: readonly Scalar[], dtype: DType = 'f32'): HostArray =>
  hostArray(dtype, [values.length], values);

/** What differs where `of` computes the values from operands. */
function judged(
  got: readonly Scalar[],
  expected: readonly Scalar[],
  dtype: DType = 'f32',
  nudged: readonly (readonly Scalar[])[] = [expected],
): ValueDifference | undefined {
  const rounding = roundingOf([dtype], undefined);
  const others = (): HostArray[] => nudged.map((values) => array(values, dtype));
  return differenceOf(array(got, dtype), array(expected, dtype), rounding, () => true, others);
}

describe('one value', () => {
  test('is right up to rounding, of its own or of its neighbours', () => {
    expect(judged([1, 2, 3], [1, 2 + 1e-5, 3])).toBeUndefined();
    // Beside values of about 1000, a sum may be off by their rounding.
    expect(judged([1e-3, 1000], [2e-3, 1000])).toBeUndefined();
    expect(judged([1, 2, 3], [1, 2.001, 3])).toMatchObject({ wrong: 1, count: 3, at: [1], got: 2 });
    expect(judged([1, 2.01, 3], [1, 2, 3], 'f16')).toBeUndefined();
    expect(judged([1, 2.1, 3], [1, 2, 3], 'f16')).toMatchObject({ at: [1] });
  });

  test('of integers is exact, unless it follows from floats that may be rounded the other way', () => {
    expect(judged([1, 2 ** 30], [1, 2 ** 30 + 1], 'i32')).toMatchObject({ at: [1] });
    expect(judged([1, 4], [1, 5], 'i32', [[1, 4]])).toBeUndefined();
  });

  test('that is none is only itself', () => {
    expect(judged([NaN, Infinity, 1], [NaN, Infinity, 1])).toBeUndefined();
    for (const [got, expected] of [
      [NaN, 1],
      [1, NaN],
      [Infinity, 1],
      [1, Infinity],
      [-Infinity, Infinity],
    ] as const)
      expect(judged([got, 1], [expected, 1]), `${got} ${expected}`).toMatchObject({ wrong: 1, at: [0] });
    // On the edge of overflow both may be.
    expect(judged([Infinity, 1], [3.4e38, 1], 'f32', [[Infinity, 1]])).toBeUndefined();
  });

  test('that cancels may be off by what its operands may be', () => {
    const operands = [1, 2, 3].map((seed) => {
      const nudging = new Nudging(roundingOf(['f32'], undefined), seed);
      const [a, b] = [nudging.of(array([1 + 2 ** -20, 1])), nudging.of(array([1, 0]))];
      return [0, 1].map((i) => Number(a.data[i]) - Number(b.data[i]));
    });
    const exact = [2 ** -20, 1];
    expect(judged([2 ** -20 + 2 ** -23, 1], exact, 'f32', operands)).toBeUndefined();
    expect(judged([0.001, 1], exact, 'f32', operands)).toMatchObject({ at: [0] });
  });
});
