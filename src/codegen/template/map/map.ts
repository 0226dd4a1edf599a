// map: computes every output element once, in groups of four neighbouring elements (vector loads
// and stores). Where a kernel permutes or scatters its values, the index of a write is data. Single
// elements that were fused into the kernel are computed by the first invocation.

import { constantIndex, substitute, type IndexExpr } from '../../../ir/index-algebra/expr.ts';
import { CompilerBug } from '../../../errors.ts';
import { Slot } from '../../../slot.ts';
import { addInts, builtin, constant, mulInts, operation } from '../../loop/builder.ts';
import { laneAtom, Lowering } from '../../expression/lowering.ts';
import type { Axis, Kernel, Write } from '../../../schedule/kernel.ts';
import type { Loop, Value } from '../../loop/loop.ts';
import {
  bufferName,
  finish,
  forUnits,
  groupNumber,
  inGroups,
  openBuilder,
  type Frame,
  type Grid,
} from '../shared/frame.ts';
import type { MapBlocks } from './block.ts';
import type * as onCores from './cpu/rows.ts';
import { exprsOf, longTurns, singleTurns, type IterationGroups } from './cpu/turn.ts';
import { blocksOf, computeBlock } from './block.ts';
import { anyNeeded, neededOf } from '../shared/needed.ts';
import { storeAt } from '../shared/store-value.ts';

/** Maps on cores, which the chunk of WebAssembly brings: other machines have no rows. */
export const rowsOnCores: Slot<Pick<typeof onCores, 'computeRow' | 'rowsOf'>> = new Slot('maps on cores');

/** The result of a way of visiting all elements. */
interface Visited {
  readonly grid: Grid;
  readonly note: string;
}

/** The Loop of a map kernel. */
export function mapLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  if (kernel.body.kind !== 'map') throw new CompilerBug('map template', `got a ${kernel.body.kind} kernel`);
  const { axis, shape } = kernel.body;
  const b = openBuilder(frame);
  const bufferOf = bufferName(frame);
  const isSingle = (write: Write): boolean => write.index.kind === 'const';
  const whole = kernel.writes.filter((write) => !isSingle(write));
  /**
   * Computes and stores the elements at places, given the value of the atom that the places are
   * expressions of.
   */
  const at = (atom: IndexExpr, place: IndexExpr, value: Value): Lowering => {
    const binding = { substitution: new Map([[axis.atom, place]]), atoms: new Map([[atom, value]]) };
    return new Lowering(b, kernel.pool, binding, bufferOf);
  };
  /** Units of `size` elements that are needed, the first ones of all. */
  const neededUnits = (units: number, size: number): Value | undefined => {
    const needed = neededOf(b, frame, axis);
    return needed && inGroups(b, needed, size, units, 'needed_units');
  };
  const compute = (atom: IndexExpr, places: readonly IndexExpr[], value: Value): void => {
    for (const place of places) {
      const lowering = at(atom, place, value);
      const values = whole.map((write) => lowering.value(write.value));
      whole.forEach((write, i) => storeAt(b, lowering, bufferOf(write.node), write, values[i]!, axis));
    }
  };
  const isPlain = isStraight(kernel, axis, whole);
  const blocks = isPlain ? undefined : blocksOf(kernel, axis, whole, target);
  const mayHaveRows = !isPlain && blocks === undefined && target.serial !== undefined;
  const rows = mayHaveRows ? rowsOnCores.value.rowsOf(kernel, axis, whole, target, shape) : undefined;
  const { grid, note } =
    blocks !== undefined
      ? inBlocks(blocks)
      : rows !== undefined
        ? inRows(rows)
        : inOrder(singleTurns(axis), longTurns(kernel, axis, whole, target.serial));
  function inBlocks(cut: MapBlocks): Visited {
    const visit = (block: Value): void => computeBlock(b, frame, axis, whole, cut, block);
    const units = forUnits(b, target, cut.count, 'block', visit);
    return { grid: units.grid, note: `${units.perInvocation} x 4 x 4 elements` };
  }
  function inRows(cut: onCores.MapRows): Visited {
    const visit = (row: Value): void => rowsOnCores.value.computeRow(b, frame, axis, whole, cut, row);
    const reach = neededUnits(cut.rows, cut.width);
    const units = forUnits(b, target, cut.rows, 'row', visit, Math.ceil(cut.width / 4), () => {}, reach);
    const pieces = cut.starts.length > 1 ? ` in ${cut.starts.length} pieces` : '';
    const kinds = cut.rowStarts.length > 1 ? ` of ${cut.rowStarts.length} kinds of rows` : '';
    return { grid: units.grid, note: `${units.perInvocation} x ${cut.width} elements${pieces}${kinds}` };
  }
  function inOrder(singles: IterationGroups, turns: IterationGroups = singles): Visited {
    const { atom, places, count } = turns;
    const hint = turns === singles ? 'quad' : 'turn';
    const size = 4 * places.length;
    const visit = (turn: Value): void => {
      const first = (): Lowering =>
        at(atom, substitute(places[0]!, new Map([[laneAtom, constantIndex(0)]])), turn);
      b.if(anyNeeded(b, frame, axis, size, first), () => compute(atom, places, turn));
    };
    const reach = neededUnits(count, size);
    const units = forUnits(b, target, count, hint, visit, places.length, () => {}, reach);
    const taken = count * places.length;
    const last = operation(
      'eq',
      [groupNumber(units.grid), constant(units.grid[0] * units.grid[1] - 1)],
      'bool',
    );
    if (taken < singles.count)
      b.if(last, () =>
        b.for('quad', constant(taken), constant(singles.count), 1, (quad) =>
          compute(singles.atom, singles.places, quad),
        ),
      );
    return { grid: units.grid, note: `${units.perInvocation} x ${4 * places.length} elements` };
  }
  const single = kernel.writes.filter(isSingle);
  if (single.length > 0) {
    const id = addInts(mulInts(groupNumber(grid), constant(target.workgroupSize)), builtin('local', 0));
    b.if(operation('eq', [id, constant(0)], 'bool'), () => {
      const lowering = new Lowering(b, kernel.pool, { substitution: new Map(), atoms: new Map() }, bufferOf);
      const values = single.map((write) => lowering.value(write.value));
      single.forEach((write, i) => storeAt(b, lowering, bufferOf(write.node), write, values[i]!, undefined));
    });
  }
  return finish(frame, b, grid, [target.workgroupSize, 1, 1], `${note} per invocation`);
}

/**
 * Whether a map reads every element where it writes one, or the same for all, without conditions and without the coordinates of
 * elements: then no other order reads more at once, and `blocksOf` and `rowsOf` find none.
 */
export function isStraight(kernel: Kernel, axis: Axis, writes: readonly Write[]): boolean {
  return exprsOf(kernel, writes).every((expr) => {
    if (expr.kind === 'read' || expr.kind === 'index')
      return expr.index === axis.atom || expr.index.kind === 'const';
    return expr.kind !== 'select';
  });
}
