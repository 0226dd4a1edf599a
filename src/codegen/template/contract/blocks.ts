// What products do with rows of blocks, which a chunk brings: pages without blocks do not load it.

import { Slot } from '../../../slot.ts';
import type { blockRuns } from './gpu/block-runs.ts';
import type { blockRows } from './rows-of-blocks.ts';

export const blockProducts: Slot<{ readonly rows: typeof blockRows; readonly runs: typeof blockRuns }> =
  new Slot('products with blocks');
