// Nested arrays: a flat C-order array as one array per axis.

import { isComplex, type DType } from '../ir/dtype.ts';
import type { ComplexNumber, HostData } from '../ir/value.ts';

/** One element, or an array per axis around the elements. */
export type NestedArray<T = HostElement> = T | NestedArray<T>[];

/** An element of any dtype on the host. */
export type HostElement = number | bigint | boolean | ComplexNumber;

/**
 * The elements of `data` nested by `shape`; rank 0 gives the element itself. Of bool they are
 * booleans, of complex dtypes pairs.
 */
export function nest(data: HostData, shape: readonly number[], dtype: DType): NestedArray {
  let next = 0;
  const level = (axis: number): NestedArray => {
    if (axis < shape.length) return Array.from({ length: shape[axis]! }, () => level(axis + 1));
    const value = data[next++]!;
    if (isComplex(dtype)) return { re: Number(value), im: Number(data[next++]!) };
    return dtype === 'bool' ? value !== 0 : value;
  };
  return level(0);
}
