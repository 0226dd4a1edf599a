// Checks of index tensors that say where elements are read or written: their dtype and shape, and
// that they lie in the axis.

import { TensorError } from '../../../errors.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { watchRange } from '../../debug.ts';
import type { Tensor } from '../../tensor.ts';
import { checkInteger, show } from '../operand.ts';

/** The shape of a tensor that is indexed along an axis: rank 0 is a line of one element. @internal */
export function lineShape({ shape }: Tensor): readonly number[] {
  return shape.length === 0 ? [1] : shape;
}

/** Watches that positions lie in an axis. @internal */
export function watchAxis(op: string, x: Tensor, axis: number, index: Tensor): void {
  watchRange(op, 'index', index, 0, lineShape(x)[axis]!, `axis ${axis} of ${show(x)}`);
}

/** The index must have x's rank and fit it outside the axis; rank 0 counts as rank 1. @internal */
export function checkIndex(op: string, x: Tensor, axis: number, index: Tensor): number {
  checkInteger(op, 'the index', index);
  const [from, places] = [lineShape(x), lineShape(index)];
  const at = normalizeAxis(op, axis, from.length);
  const fits = places.length === from.length && places.every((dim, i) => i === at || dim <= from[i]!);
  if (!fits) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `the index must have x's rank and fit it outside axis ${at}: x ${show(x)}, index ${show(index)}`,
    );
  }
  return at;
}
