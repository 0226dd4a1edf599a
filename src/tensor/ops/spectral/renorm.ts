// Slices of a tensor scaled down to a largest norm.

import * as arg from '../../../ir/arguments.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import type { Tensor } from '../../tensor.ts';
import type { DType } from '../../../ir/dtype.ts';
import { add, div, mul } from '../elementwise/arithmetic.ts';
import { gt, where } from '../elementwise/compare.ts';
import { casted, checkInexact } from '../operand.ts';
import { norm } from './norms.ts';

const takesRenorm = arg.takes<typeof renorm>(
  ['x', aTensor],
  ['p', arg.positive],
  ['axis', arg.inside()],
  ['the largest norm', arg.notNegative],
);

/**
 * Slices along an axis whose p-norm is above `largest`, scaled down to it.
 *
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.renorm(x, 2, 0, 1);
 */
export function renorm<D extends DType>(
  given: Tensor<D>,
  p: number,
  axis: number,
  largest: number,
): Tensor<D> {
  takesRenorm('renorm', given, p, axis, largest);
  const x = casted('renorm', given);
  checkInexact('renorm', x);
  const at = normalizeAxis('renorm', axis, x.rank);
  const others = x.shape.map((_, i) => i).filter((i) => i !== at);
  const size = norm(x, p, others, { keepdim: true });
  const tooLarge = gt(size, largest);
  // The added 1e-7 is PyTorch's: the result is never above the limit by rounding.
  const factor: Tensor = where(tooLarge, div(largest, add(where(tooLarge, size, 1), 1e-7)), 1);
  const scaled: Tensor = x;
  return mul(scaled, factor);
}
