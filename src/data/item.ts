// What datasets give and what batches are made of: trees of numbers, typed arrays, host tensors and
// tensors, and the type of the batch that such items become.

import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import type { DType } from '../ir/dtype.ts';
import { hostArray, packBytes, type HostData, type Scalar } from '../ir/value.ts';
import type { HostTensor } from '../io/host.ts';
import type { Tensor } from '../tensor/tensor.ts';

/** A typed array of elements. */
export type ElementArray = HostData | Uint8ClampedArray;

/**
 * A tensor on the host with its elements in the typed array of their dtype (16-bit floats as their
 * bits, complex numbers as pairs); or in packed bytes, as a HostTensor.
 */
export interface ElementTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: ElementArray;
}

/** What an item holds that becomes a part of one tensor. */
export type ItemLeaf = number | bigint | boolean | ElementArray | ElementTensor | HostTensor | Tensor;

/**
 * The batch of items of type `T`: the same tree, in which numbers, typed arrays and tensors have
 * become a tensor with an axis of items in front, and everything else an array.
 */
export type Collated<T> = T extends ItemLeaf
  ? Tensor
  : T extends string | null | undefined | Date
    ? T[]
    : T extends object
      ? { [K in keyof T]: Collated<T[K]> }
      : T[];

const aScalar: arg.Kind<number | bigint | boolean> = arg.kind('a number', (value) =>
  ['number', 'bigint', 'boolean'].includes(typeof value),
);
const takesScalar = arg.takes<typeof scalar>(['the value', aScalar], ['the dtype', arg.optional(arg.dtype)]);

/**
 * A number with a dtype, as an item's label is: batches of it are a vector of this dtype, where
 * those of a plain number are of f32.
 */
export function scalar(value: number | bigint | boolean, dtype: DType = 'f32'): HostTensor {
  takesScalar('scalar', value, dtype);
  const element: Scalar = typeof value === 'boolean' ? Number(value) : value;
  if (dtype === 'c64' || dtype === 'c128')
    throw new TensorError('E_DTYPE', 'scalar', `${dtype} has two parts`, 'a dtype of real numbers');
  const array = hostArray(dtype, [], [element]);
  return { dtype, shape: [], data: packBytes(array) };
}
