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
import type { Expr } from '../../../../schedule/expression/expr.ts';
import type { Axis } from '../../../../schedule/kernel.ts';
import { addInts, constant, mulInts, operation, type LoopBuilder } from '../../../loop/builder.ts';
import { laneAtom, quadIndex } from '../../../expression/lowering.ts';
import type { Value, Width } from '../../../loop/loop.ts';
import { endOf, inGroups, type Frame } from '../../shared/frame.ts';
import { blockedAbove, blockOf, type PiecedAxis } from '../tiling.ts';
import { roomOfPiece } from './stretch.ts';

/** A place along the row: an element, or a group of four. */
export interface RowPosition {
  readonly column: IndexExpr;
  readonly width: Width;
  /** Where a value of this place waits in an array of the row's. */
  readonly slot: IndexExpr;
  readonly atoms: readonly (readonly [IndexExpr, Value])[];
}

/**
 * Sums in blocks: what is accumulated in one is begun and added up by its caller. `hasTail` tells
 * whether it visits single elements too.
 */
export interface SumBlocks {
  readonly open: (hasTail: boolean) => void;
  readonly close: () => void;
}

/**
 * The steps of a row that a run asks for: whole turns of any number of chains, or all that there
 * are. Steps up to `from` were visited before.
 */
export interface StepRange {
  readonly from?: Value;
  readonly to?: Value;
  /** Below these steps conditions of the kernel are certain: whole turns of any number of chains. */
  readonly certain?: Value;
}

/** The steps of a row that count in its reductions, in whole turns of any sweep; undefined where all do. */
export function reachOf(
  b: LoopBuilder,
  frame: Frame,
  { extent }: Axis,
  wide: boolean,
  certainEnd?: Expr,
): (StepRange & { readonly to: Value }) | undefined {
  const { body } = frame.kernel;
  if (body.kind !== 'row-reduction' || body.bound === undefined) return undefined;
  const steps = wide ? Math.floor(extent / 4) : extent;
  const { unroll } = frame.target.serial ?? { unroll: 1 };
  const end = endOf(b, frame, extent, body.bound);
  const turns = inGroups(b, end, unroll * (wide ? 4 : 1), Math.ceil(steps / unroll), 'most_turns');
  const to = operation('min', [mulInts(turns, constant(unroll)), constant(steps)], 'i32');
  const reach = { to: b.let(to, 'reach') };
  if (certainEnd === undefined) return reach;
  const each = constant(unroll * (wide ? 4 : 1));
  const whole = operation('div', [endOf(b, frame, extent, certainEnd), each], 'i32');
  return { ...reach, certain: b.let(mulInts(whole, constant(unroll)), 'certain') };
}

/** Turns of a block where an accumulator is alone: between blocks a core begins anew. */
const aloneBlock = 128;

/**
 * Visits all places of the row in order, `chains` at a time where that many are left; `wide` in
 * groups of four, with single elements behind the last group at constants.
 */
export function alongRow(
  b: LoopBuilder,
  column: PiecedAxis,
  wide: boolean,
  chains: number,
  visit: (places: readonly RowPosition[], isCertain: boolean) => void,
  { blocks, from, to, certain }: StepRange & { readonly blocks?: SumBlocks } = {},
): void {
  if (column.piece !== undefined) {
    alongPieces(b, column.extent, column.piece, chains, visit, blocks);
    return;
  }
  const { extent } = column;
  const steps = wide ? Math.floor(extent / 4) : extent;
  const turns = Math.floor(steps / chains);
  const isWhole = from === undefined && to === undefined;
  /** A run-time number of steps as turns; what does not fill one is left to single steps. */
  const turnsOf = (value: Value): Value =>
    b.let(
      operation('min', [operation('div', [value, constant(chains)], 'i32'), constant(turns)], 'i32'),
      'turns',
    );
  const spread = (step: IndexExpr): IndexExpr => (wide ? addIndex(scaleIndex(step, 4), laneAtom) : step);
  const width = wide ? 4 : 1;
  const turnAtom = axisIndex('turn', Math.max(1, turns));
  let isCertain = certain !== undefined;
  const turn = (value: Value): void =>
    visit(
      Array.from({ length: chains }, (_, chain) => {
        const place = spread(offsetIndex(scaleIndex(turnAtom, chains), chain));
        return { column: place, slot: place, width, atoms: [[turnAtom, value]] as const };
      }),
      isCertain,
    );
  const fewest = chains > 1 ? blockedAbove : aloneBlock;
  if (turns === 1 && isWhole) turn(constant(0));
  else if (turns > 0) {
    const last = to === undefined ? constant(turns) : turnsOf(to);
    const sure = certain === undefined ? undefined : turnsOf(certain);
    const start = from === undefined ? constant(0) : turnsOf(from);
    inBlocks(b, 'turn', [start, sure ?? last], turns, fewest, blocks, turn);
    isCertain = false;
    // What is left beyond is a few turns.
    if (sure !== undefined) b.for('turn', sure, last, 1, turn);
  }
  isCertain = false;
  const stepAtom = wide ? quadIndex('step', extent) : axisIndex('step', extent);
  const single = (value: Value): void =>
    visit([{ column: spread(stepAtom), slot: spread(stepAtom), width, atoms: [[stepAtom, value]] }], false);
  const left = steps - chains * turns;
  const firstLeft = constant(chains * turns);
  if (left === 1 && isWhole) single(firstLeft);
  else if (left > 0)
    b.for(
      'step',
      from === undefined ? firstLeft : b.let(operation('max', [from, firstLeft], 'i32'), 'first_step'),
      to ?? constant(steps),
      1,
      single,
    );
  // A few elements, which every sweep visits once.
  const behind = wide && from === undefined ? extent - 4 * steps : 0;
  for (let i = 0; i < behind; i++) {
    const place = constantIndex(4 * steps + i);
    visit([{ column: place, slot: place, width: 1, atoms: [] }], false);
  }
}

/** The numbers of a range, of which there are `count` at most, in blocks of blocks where they are many. */
function inBlocks(
  b: LoopBuilder,
  hint: string,
  [start, end]: readonly [Value, Value],
  count: number,
  fewest: number,
  blocks: SumBlocks | undefined,
  each: (value: Value) => void,
  hasTail: boolean = false,
): void {
  const least = Math.ceil(count / fewest);
  const block = blocks === undefined || count <= fewest ? count : blockOf(count, Math.max(fewest, least));
  if (block >= count) {
    b.for(hint, start, end, 1, each);
    return;
  }
  b.for('block', start, end, block, (first) => {
    blocks?.open(hasTail);
    const behind = addInts(first, constant(block));
    const whole = end.kind === 'constant' && count % block === 0;
    const last = b.let(whole ? behind : operation('min', [behind, end], 'i32'), 'behind');
    inBlocks(b, hint, [first, last], block, fewest, blocks, each, hasTail);
    blocks?.close();
  });
}

/** Visits a row piece by piece, each in groups of four and with single elements behind its last group. */
function alongPieces(
  b: LoopBuilder,
  extent: number,
  piece: number,
  chains: number,
  visit: (places: readonly RowPosition[], isCertain: boolean) => void,
  blocks: SumBlocks | undefined,
): void {
  const count = extent / piece;
  const atom = axisIndex('piece', count);
  const hasTail = piece % 4 !== 0;
  const inside: Axis = { name: 'place', extent: piece, atom: axisIndex('place', piece) };
  const one = (value: Value): void => {
    blocks?.open(hasTail);
    const within = (place: RowPosition): RowPosition => ({
      column: addIndex(scaleIndex(atom, piece), place.column),
      slot: addIndex(scaleIndex(atom, roomOfPiece(piece)), place.slot),
      width: place.width,
      atoms: [[atom, value], ...place.atoms],
    });
    alongRow(b, inside, true, chains, (places, isCertain) => visit(places.map(within), isCertain), {
      ...(blocks && { blocks }),
    });
    blocks?.close();
  };
  inBlocks(b, 'piece', [constant(0), constant(count)], count, blockedAbove, blocks, one, hasTail);
}
