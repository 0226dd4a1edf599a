// Other orders than that of the flat result in which a map may visit its elements, by blocks and by rows: when they are of no use.

import type { Axis, Kernel, Write } from '../../../schedule/kernel.ts';
import { exprsOf } from './cpu/turn.ts';

/**
 * Whether a map reads every element where it writes one, or the same for all, and without conditions: then no other order reads
 * more at once, and `blocksOf` and `rowsOf` find none.
 */
export function isStraight(kernel: Kernel, axis: Axis, writes: readonly Write[]): boolean {
  return exprsOf(kernel, writes).every((expr) => {
    if (expr.kind === 'read') return expr.index === axis.atom || expr.index.kind === 'const';
    return expr.kind !== 'select';
  });
}
