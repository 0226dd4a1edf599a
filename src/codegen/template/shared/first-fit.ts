// Templates with several ways to build a kernel: a table of strategies, the first of which that
// fits is taken.

import { CompilerBug } from '../../../errors.ts';
import type { Slot } from '../../../slot.ts';
import type { Loop } from '../../loop/loop.ts';
import type { Frame } from './frame.ts';

/** One way to build the kernels of a template. */
export interface FittingStrategy<Body> {
  /**
   * The Loop of a kernel; undefined where the kernel or the target is not one for this strategy.
   */
  loop(frame: Frame, body: Body): Loop | undefined;
}

/** The Loop by the first strategy, in the order of the table, that is there and fits. */
export function firstFitting<Body>(
  table: Readonly<Record<string, Slot<FittingStrategy<Body>>>>,
  frame: Frame,
  body: Body,
): Loop {
  for (const strategy of Object.values(table)) {
    const loop = strategy.filled?.loop(frame, body);
    if (loop !== undefined) return loop;
  }
  throw new CompilerBug(`${frame.kernel.kind} template`, 'no strategy fits');
}
