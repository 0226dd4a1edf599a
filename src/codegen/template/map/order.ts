// Other orders than that of the flat result in which a map may visit its elements: by blocks, and by rows. They are loaded for
// maps that may be better off with one.

import { Lazy } from '../../../lazy.ts';
import type { Axis, Kernel, Write } from '../../../schedule/kernel.ts';
import type { blocksOf, computeBlock } from './block.ts';
import type { computeRow, rowsOf } from './cpu/rows.ts';
import { exprsOf } from './cpu/turn.ts';

export interface Orders {
  readonly blocksOf: typeof blocksOf;
  readonly computeBlock: typeof computeBlock;
  readonly rowsOf: typeof rowsOf;
  readonly computeRow: typeof computeRow;
}

export const orders: Lazy<Orders> = new Lazy('other orders of maps', async () => {
  const [block, rows] = await Promise.all([import('./block.ts'), import('./cpu/rows.ts')]);
  const { blocksOf, computeBlock } = block;
  return { blocksOf, computeBlock, rowsOf: rows.rowsOf, computeRow: rows.computeRow };
});

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
