// The loops of a sweep along a row on a core: several chains at a time, whose accumulators do not
// wait for each other, and long sums in blocks, so that the rounding error grows with the square
// root only.

import {
  addIndex,
  axisIndex,
  constantIndex,
  offsetIndex,
  scaleIndex,
  type IndexExpr,
} from '../../../../ir/index-algebra/expr.ts';
import type { Axis } from '../../../../schedule/kernel.ts';
import { addInts, constant, operation, type LoopBuilder } from '../../../loop/builder.ts';
import { laneAtom, quadIndex } from '../../../lower/expressions.ts';
import type { Value } from '../../../loop/loop.ts';
import { blockedAbove, blockOf } from '../tiling.ts';

/** A place along the row: an element, or a group of four. */
export interface Place {
  readonly column: IndexExpr;
  readonly atoms: readonly (readonly [IndexExpr, Value])[];
}

/** Sums in blocks: what is accumulated in one is begun and added up by its caller. */
export interface Blocks {
  readonly open: () => void;
  readonly close: () => void;
}

/** Turns of a block where an accumulator is alone: between blocks a core begins anew. */
const aloneBlock = 128;

/**
 * Visits all places of the row in order, `chains` at a time where that many are left; `wide` in
 * groups of four, with single elements behind the last group at constants.
 */
export function alongRow(
  b: LoopBuilder,
  column: Axis,
  wide: boolean,
  chains: number,
  visit: (places: readonly Place[]) => void,
  blocks?: Blocks,
): void {
  const { extent } = column;
  const steps = wide ? Math.floor(extent / 4) : extent;
  const turns = Math.floor(steps / chains);
  const spread = (step: IndexExpr): IndexExpr => (wide ? addIndex(scaleIndex(step, 4), laneAtom) : step);
  const turnAtom = axisIndex('turn', Math.max(1, turns));
  const turn = (value: Value): void =>
    visit(
      Array.from({ length: chains }, (_, chain) => ({
        column: spread(offsetIndex(scaleIndex(turnAtom, chains), chain)),
        atoms: [[turnAtom, value]] as const,
      })),
    );
  const fewest = chains > 1 ? blockedAbove : aloneBlock;
  /** Turns of a range, in blocks of blocks where they are many. */
  const range = (start: Value, end: Value, count: number): void => {
    const least = Math.ceil(count / fewest);
    const block = blocks === undefined || count <= fewest ? count : blockOf(count, Math.max(fewest, least));
    if (block >= count) {
      b.for('turn', start, end, 1, turn);
      return;
    }
    b.for('block', start, end, block, (first) => {
      blocks?.open();
      const behind = addInts(first, constant(block));
      const whole = end.kind === 'constant' && count % block === 0;
      range(first, b.let(whole ? behind : operation('min', [behind, end], 'i32'), 'behind'), block);
      blocks?.close();
    });
  };
  if (turns === 1) turn(constant(0));
  else if (turns > 1) range(constant(0), constant(turns), turns);
  const stepAtom = wide ? quadIndex('step', extent) : axisIndex('step', extent);
  const single = (value: Value): void => visit([{ column: spread(stepAtom), atoms: [[stepAtom, value]] }]);
  const left = steps - chains * turns;
  if (left === 1) single(constant(chains * turns));
  else if (left > 1) b.for('step', constant(chains * turns), constant(steps), 1, single);
  const behind = wide ? extent - 4 * steps : 0;
  for (let i = 0; i < behind; i++) visit([{ column: constantIndex(4 * steps + i), atoms: [] }]);
}
