// Nested arrays: a flat C-order array as one array per axis.

import type { HostData } from '../ir/value.ts';

/** One element, or an array per axis around the elements. */
export type NestedArray = number | bigint | boolean | NestedArray[];

/**
 * The elements of `data` nested by `shape`; rank 0 gives the element itself. `asBool` turns 0 and 1
 * into booleans.
 */
export function nest(data: HostData, shape: readonly number[], asBool: boolean): NestedArray {
  let next = 0;
  const level = (axis: number): NestedArray => {
    if (axis < shape.length) return Array.from({ length: shape[axis]! }, () => level(axis + 1));
    const value = data[next++]!;
    return asBool ? value !== 0 : value;
  };
  return level(0);
}
