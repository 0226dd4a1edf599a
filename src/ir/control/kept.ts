// What a loop keeps in its memory in place of values of other types (`isCarried`).

import { cast, complex, imag, real, reshape, slice } from '../build.ts';
import { isComplex, partType, type DType } from '../dtype.ts';
import { dims, type GraphBuilder, type Node } from '../graph.ts';
import type { FixedShape } from '../shape.ts';
import { isCarried } from '../typing/control.ts';

/** The type in which a loop keeps values of this one. */
export function keptType({ dtype, shape }: { readonly dtype: DType; readonly shape: FixedShape }): {
  readonly dtype: DType;
  readonly shape: FixedShape;
} {
  if (isComplex(dtype)) return { dtype: partType(dtype), shape: [...shape, 2] };
  return { dtype: isCarried(dtype) ? dtype : 'i32', shape };
}

/** A value as a loop keeps it: complex numbers as pairs along a last axis, small integers as i32. */
export function kept(b: GraphBuilder, x: Node): Node {
  if (!isComplex(x.dtype)) return cast(b, x, keptType({ dtype: x.dtype, shape: dims(x) }).dtype);
  const shape = [...dims(x), 1];
  const parts = [real(b, x), imag(b, x)].map((part) => reshape(b, part, shape));
  return b.add('concat', parts, { axis: shape.length - 1 }) as Node;
}

/** The value of this dtype that a loop keeps as `x`. */
export function unkept(b: GraphBuilder, x: Node, dtype: DType): Node {
  if (!isComplex(dtype)) return cast(b, x, dtype);
  const shape = dims(x).slice(0, -1);
  const part = (i: number): Node => {
    const start = [...shape.map(() => 0), i];
    const one = slice(
      b,
      x,
      start,
      [...shape, 1],
      start.map(() => 1),
    );
    return cast(b, reshape(b, one, shape), partType(dtype));
  };
  return complex(b, part(0), part(1));
}
