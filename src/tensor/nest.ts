// Nested arrays: a flat C-order array as one array per axis.

import { TensorError } from '../errors.ts';
import { isComplex, type DType } from '../ir/dtype.ts';
import { sizeOf } from '../ir/shape.ts';
import type { ComplexNumber, HostData } from '../ir/value.ts';

/** One element, or an array per axis around the elements. */
export type NestedArray<T = HostElement> = T | NestedArray<T>[];

/** An element of any dtype on the host. */
export type HostElement = number | bigint | boolean | ComplexNumber;

/** Arrays beyond which a tensor is not nested: where an axis has nothing in it, no element counts them. */
const mostArrays = 1e8;

/**
 * The elements of `data` nested by `shape`; rank 0 gives the element itself. Of bool they are
 * booleans, of complex dtypes pairs. Throws E_LIMIT at more arrays than memory holds.
 */
export function nest(data: HostData, shape: readonly number[], dtype: DType): NestedArray {
  let level: NestedArray[] = elementsOf(data, dtype);
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const [inner, size] = [level, shape[axis]!];
    const count = sizeOf(shape.slice(0, axis));
    if (count > mostArrays) {
      const problem = `[${shape.join(',')}] has ${count} arrays: nested arrays are at most ${mostArrays}`;
      throw new TensorError('E_LIMIT', 'array', problem, 'data(), which has the elements alone');
    }
    level = Array.from({ length: count }, (_, i) => inner.slice(i * size, (i + 1) * size));
  }
  return level[0]!;
}

function elementsOf(data: HostData, dtype: DType): NestedArray[] {
  if (isComplex(dtype))
    return Array.from({ length: data.length / 2 }, (_, i) => ({
      re: Number(data[2 * i]),
      im: Number(data[2 * i + 1]),
    }));
  return dtype === 'bool'
    ? Array.from(data as Iterable<HostElement>, Boolean)
    : Array.from(data as Iterable<HostElement>);
}
