// row-reduction: reductions along a row, then values that need them, in one kernel (softmax, norms,
// cross-entropy). How a kernel is built is one of a few strategies, the first that fits.

import { CompilerBug } from '../../../errors.ts';
import type { Loop } from '../../loop/loop.ts';
import { mapLoop } from '../map/map.ts';
import { firstFitting, type FittingStrategy } from '../shared/first-fit.ts';
import type { Frame } from '../shared/frame.ts';
import { serial } from './cpu/serial.ts';
import { mapOfRows } from './cpu/short.ts';
import { shared } from './gpu/rows.ts';
import type { RowBody } from './tiling.ts';

/** Short rows on a core are written out, and visited as the elements of a map are. */
const short: FittingStrategy<RowBody> = {
  loop(frame) {
    const map = frame.target.serial === undefined ? undefined : mapOfRows(frame.kernel);
    return map === undefined ? undefined : mapLoop({ ...frame, kernel: map });
  },
};

/** In the order in which they are tried. The last fits everything. */
const strategies: Readonly<Record<'short' | 'serial' | 'shared', FittingStrategy<RowBody>>> = {
  short,
  serial,
  shared,
};

/** The Loop of a row kernel. */
export function rowReductionLoop(frame: Frame): Loop {
  const { body } = frame.kernel;
  if (body.kind !== 'row-reduction')
    throw new CompilerBug('row-reduction template', `got a ${body.kind} kernel`);
  return firstFitting(strategies, frame, body);
}
