// What datasets give and what batches are made of: trees of numbers, typed arrays, host tensors and
// tensors, and the type of the batch that such items become.

import { TensorError } from '../errors.ts';
import * as arg from '../ir/arguments.ts';
import type { DType } from '../ir/dtype.ts';
import { hostArray, packBytes, type HostData, type Scalar } from '../ir/value.ts';
import type { HostTensor } from '../io/host.ts';
import type { OfArray, Told } from '../tensor/inferred.ts';
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

/** The dtype of the tensor that an item's part becomes; unknown where its type does not say it. */
export type LeafType<T> =
  T extends Tensor<infer D>
    ? D
    : T extends number
      ? 'f32'
      : T extends bigint
        ? 'i64'
        : T extends boolean
          ? 'bool'
          : T extends { readonly dtype: infer D extends DType }
            ? Told<D>
            : OfArray<T>;

/**
 * The batch of items of type `T`: the same tree, in which numbers, typed arrays and tensors have
 * become a tensor with an axis of items in front, and everything else an array.
 */
export type Collated<T> = T extends ItemLeaf
  ? Tensor<LeafType<T>>
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
export function scalar<D extends DType = 'f32'>(value: number | bigint | boolean, dtype?: D): HostTensor<D>;
export function scalar(value: number | bigint | boolean, dtype: DType = 'f32'): HostTensor {
  takesScalar('scalar', value, dtype);
  const element: Scalar = typeof value === 'boolean' ? Number(value) : value;
  if (dtype === 'c64' || dtype === 'c128')
    throw new TensorError('E_DTYPE', 'scalar', `${dtype} has two parts`, 'a dtype of real numbers');
  const array = hostArray(dtype, [], [element]);
  return { dtype, shape: [], data: packBytes(array) };
}
