// Numbers that a recording does not know. A JavaScript number that is an argument of a recorded function is
// a tensor of rank 0 and f32 inside it, with another value at each call. Next to integers, doubles or half
// floats it is what the number itself would be. Some recordings depend on which number it is (an integer
// next to integers, or a fraction). They ask here, and hold only for numbers with the same answers. Also here:
// integers that must lie in a range, which each call checks.

import { type DType, integerRange, isInexact } from '../../ir/dtype.ts';

/** Whether it is a whole number, is 0, is this very one, or is a value of a dtype of integers. */
export type Question = 'whole' | 'zero' | { readonly equals: number } | { readonly holds: DType };

/** The answer for a number. */
export function answerOf(value: number, question: Question): boolean {
  if (question === 'whole') return Number.isInteger(value);
  if (question === 'zero') return value === 0;
  if ('equals' in question) return Object.is(value, question.equals);
  return isHeld(value, question.holds);
}

/** Whether a dtype has this value, as near as floats have any. */
export function isHeld(value: number | boolean, dtype: DType): boolean {
  if (isInexact(dtype) || dtype === 'bool') return true;
  const [low, high] = integerRange(dtype);
  return Number.isInteger(Number(value)) && BigInt(value) >= low && BigInt(value) <= high;
}

/** The same question. */
export function isSame(a: Question, b: Question): boolean {
  if (typeof a === 'string' || typeof b === 'string') return a === b;
  if ('equals' in a) return 'equals' in b && Object.is(a.equals, b.equals);
  return 'holds' in b && a.holds === b.holds;
}

export interface IntegerRange {
  readonly op: string;
  /** What the integers are: `label`. */
  readonly what: string;
  /** Up to `end`, which is outside. */
  readonly start: number;
  readonly end: number;
  /** What they are outside of: `the 3 classes of f32[1,3]`. */
  readonly where: string;
  /** An integer that may stand there as well. */
  readonly ignored: number | undefined;
}
