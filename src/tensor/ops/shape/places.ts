// Checks of index tensors that say where elements are read or written: their dtype and shape, and
// that they lie in the axis.

import { TensorError } from '../../../errors.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { watchRange } from '../../debug.ts';
import type { Tensor } from '../../tensor.ts';
import { checkInteger, show } from '../operand.ts';

/** Watches that positions lie in an axis. */
export function watchAxis(op: string, x: Tensor, axis: number, index: Tensor): void {
  watchRange(op, 'index', index, 0, x.shape[axis]!, `axis ${axis} of ${show(x)}`);
}

/** The index must have x's rank and fit it outside the axis. */
export function checkIndex(op: string, x: Tensor, axis: number, index: Tensor): number {
  checkInteger(op, 'the index', index);
  const at = normalizeAxis(op, axis, x.rank);
  const fits = index.rank === x.rank && index.shape.every((dim, i) => i === at || dim <= x.shape[i]!);
  if (!fits) {
    throw new TensorError(
      'E_SHAPE',
      op,
      `the index must have x's rank and fit it outside axis ${at}: x ${show(x)}, index ${show(index)}`,
    );
  }
  return at;
}
