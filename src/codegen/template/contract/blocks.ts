// What products do with rows of blocks, which a chunk brings: pages without blocks do not load it.

import type { Expr } from '../../../schedule/expression/expr.ts';
import type { Body } from '../../../schedule/kernel.ts';
import { Slot } from '../../../slot.ts';
import type { LoopBuilder } from '../../loop/builder.ts';
import type { Value } from '../../loop/loop.ts';
import type { Frame } from '../shared/frame.ts';
import type { blockRows } from './rows-of-blocks.ts';

/** How an invocation walks along rows of blocks. */
export interface BlockRuns {
  /** Parts of the contracted axis, each of which one invocation takes at a time. */
  readonly parts: number;
  part(part: Value, columns: readonly Value[]): BlockPart;
}

export interface BlockPart {
  /** Groups of four steps, in the order in which they are multiplied. */
  readonly quads: readonly Value[];
  /** Four values of a column of a product, at one of these groups. */
  value(product: number, column: number, quad: number): Value;
}

/** The walk along the right sides of products; undefined where not all are rows of blocks. */
type WalkRuns = (
  b: LoopBuilder,
  frame: Frame,
  body: Extract<Body, { kind: 'contract' }>,
  group: Value,
  rights: readonly Expr[],
) => BlockRuns | undefined;

export const blockProducts: Slot<{ readonly rows: typeof blockRows; readonly runs: WalkRuns }> = new Slot(
  'products with blocks',
);
