// row-reduction: reductions along a row, then values that need them, in one kernel (softmax, norms,
// cross-entropy). How a kernel is built is one of a few strategies, the first that fits.

import { CompilerBug } from '../../../errors.ts';
import type { Loop } from '../../loop/loop.ts';
import { firstFitting, type FittingStrategy } from '../shared/first-fit.ts';
import type { Frame } from '../shared/frame.ts';
import { Slot } from '../../../slot.ts';
import type { RowBody } from './tiling.ts';

/** In the order in which they are tried. The last fits everything. */
export const rowStrategies: Readonly<Record<'short' | 'serial' | 'shared', Slot<FittingStrategy<RowBody>>>> =
  {
    short: new Slot('short rows on a core'),
    serial: new Slot('rows on a core'),
    shared: new Slot('rows of a workgroup'),
  };

/** The Loop of a row kernel. */
export function rowReductionLoop(frame: Frame): Loop {
  const { body } = frame.kernel;
  if (body.kind !== 'row-reduction')
    throw new CompilerBug('row-reduction template', `got a ${body.kind} kernel`);
  return firstFitting(rowStrategies, frame, body);
}
