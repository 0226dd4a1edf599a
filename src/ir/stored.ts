// How values lie in memory: complex numbers as the pairs of their parts, along an axis of their own
// behind all others. Programs and bundles know them only so.

import { isComplex, lowered, partType, type RealDType } from './dtype.ts';
import { fixedShape, type FixedShape, type Shape } from './shape.ts';
import type { TensorType } from './typing/check.ts';

export interface StoredTensorType {
  readonly dtype: RealDType;
  readonly shape: FixedShape;
}

/** The type of the memory of a value: `f32[3,2]` for c64[3]. */
export function storedType({ dtype, shape }: TensorType): StoredTensorType {
  if (isComplex(dtype)) return { dtype: partType(dtype), shape: paired(shape) };
  return { dtype: lowered(dtype), shape: fixedShape(shape, 'storage') };
}

function paired(shape: Shape): FixedShape {
  return [...fixedShape(shape, 'storage'), 2];
}
