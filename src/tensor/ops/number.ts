// Operands that are JavaScript numbers, as they stand or among the arguments of a function that is recorded: there a number
// is a tensor (recording/number.ts), and what an operation wants to know of it is asked here.

import { TensorError } from '../../errors.ts';
import { isInexact, type DType } from '../../ir/dtype.ts';
import type { GivenNumber } from '../handle/handle.ts';
import { isHeld } from '../handle/number.ts';
import { numberOf, onlyNumber } from '../record.ts';
import { Tensor, type TensorLike } from '../tensor.ts';

/** Throws E_VALUE where an integer dtype cannot hold a number. @internal */
export function checkHeld(op: string, value: number | boolean, dtype: DType): void {
  if (isHeld(value, dtype)) return;
  throw new TensorError('E_VALUE', op, `${value} is not a value of ${dtype}`);
}

/**
 * The dtype of a number among the arguments beside tensors of these: where there are floats, or nothing
 * but numbers, whole numbers are as others.
 *
 * @internal
 */
export function typeBeside(number: GivenNumber, ...tensors: readonly (DType | undefined)[]): DType {
  const known = tensors.filter((dtype) => dtype !== undefined);
  return known.length > 0 && !known.some(isInexact) && number.is('whole') ? 'i32' : 'f32';
}

/** A tensor as it is; a number among the arguments in a dtype, which must be able to hold it. @internal */
export function inType(op: string, value: Tensor, dtype: DType): Tensor {
  const number = numberOf(value);
  if (number === undefined) return value;
  if (!number.is({ holds: dtype })) checkHeld(op, number.value, dtype);
  return new Tensor(number.in(dtype));
}

/** An operand that is a whole number; of one among the arguments the recording holds for it alone. @internal */
export function wholeNumber(value: TensorLike): number | undefined {
  if (typeof value === 'number') return Number.isInteger(value) ? value : undefined;
  const number = numberOf(value);
  return number?.is('whole') === true ? onlyNumber(number) : undefined;
}

/** Whether an operand is the number 0. @internal */
export function isZero(value: TensorLike): boolean {
  return value === 0 || numberOf(value)?.is('zero') === true;
}
