// What type rules are made of: the type of a value, checks that several ops share, and how they
// fail. A violation is the user's mistake (the node is being recorded) and throws a TensorError
// that shows every operand as `f32[8,3]`.

import { TensorError, type ErrorCode } from '../../errors.ts';
import { isComplex, type DType } from '../dtype.ts';
import type { Attrs, Op } from '../ops.ts';
import { fixedShape, showShape, type Shape } from '../shape.ts';

/** Element type and shape of a value. */
export interface TensorType {
  readonly dtype: DType;
  readonly shape: Shape;
}

/** `f32[8,3]`. */
export function showType(type: TensorType): string {
  return showShape(type.shape, type.dtype);
}

export type TypeRule<K extends Op> = (inputs: readonly TensorType[], attrs: Attrs<K>, op: K) => TensorType;

export function fail(op: string, code: ErrorCode, problem: string, inputs: readonly TensorType[]): never {
  const seen = inputs.length === 0 ? '' : `: ${inputs.map(showType).join(', ')}`;
  throw new TensorError(code, op, problem + seen);
}

/** Type rules of some ops. */
export type TypeRulesOf<K extends Op> = { readonly [Each in K]: TypeRule<Each> };

export function checkAxis(op: Op, axis: number, rank: number, inputs: readonly TensorType[]): void {
  if (!Number.isInteger(axis) || axis < 0 || axis >= rank)
    fail(op, 'E_AXIS', `axis ${axis} is out of range`, inputs);
}

export function checkLengths(
  op: Op,
  rank: number,
  lists: readonly (readonly number[])[],
  inputs: readonly TensorType[],
): void {
  if (!lists.every((list) => list.length === rank && list.every(Number.isSafeInteger))) {
    fail(op, 'E_SHAPE', `expects one integer per axis (${rank})`, inputs);
  }
}

/** Complex numbers have no order. */
export function checkOrdered(op: Op, inputs: readonly TensorType[]): void {
  if (isComplex(inputs[0]!.dtype)) fail(op, 'E_DTYPE', 'complex numbers have no order', inputs);
}

/** Output size of a convolution or window along one axis. */
export function windowCount(padded: number, size: number, stride: number, dilation: number): number {
  const reach = dilation * (size - 1) + 1;
  return padded < reach ? 0 : Math.floor((padded - reach) / stride) + 1;
}

/** The last position that an i32 names. */
export const largestPosition = 2147483647;

/** Results that are positions along an axis are i32. */
export function checkPositions(op: Op, shape: Shape, axis: number, inputs: readonly TensorType[]): void {
  const size = fixedShape(shape, op)[axis]!;
  if (size - 1 > largestPosition)
    fail(op, 'E_SHAPE', `positions among ${size} elements do not fit i32`, inputs);
}
