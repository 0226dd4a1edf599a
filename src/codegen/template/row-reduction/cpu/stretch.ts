// How the rows of a kernel are laid on a core: along which axis vectors run, how many rows are
// handled together, which values wait in memory, and how many accumulators a sweep has.

import {
  addIndex,
  axisIndex,
  coefficientOf,
  offsetIndex,
  scaleIndex,
  type IndexExpr,
} from '../../../../ir/index-algebra/expr.ts';
import { dtypeBytes } from '../../../../ir/dtype.ts';
import { argsOf, indicesOf, type Expr } from '../../../../schedule/expression/expr.ts';
import type { Axis, Kernel } from '../../../../schedule/kernel.ts';
import type { Target } from '../../../../schedule/target.ts';
import type { LoopBuilder } from '../../../loop/builder.ts';
import type { Value } from '../../../loop/loop.ts';
import { inGroups, type Frame } from '../../shared/frame.ts';
import { neededOf } from '../../shared/needed.ts';
import { laneAtom, registerOf } from '../../../expression/lowering.ts';
import type { RowWork } from '../outline.ts';
import { countContiguous, type Lanes, type RowBody } from '../tiling.ts';
import { effortOf, valuesToKeep } from './values.ts';

/** A range of rows that the same code handles. */
export interface RowStretch {
  readonly lanes: Lanes;
  readonly hint: string;
  /** Numbers the units; the rows of one in terms of it, four each where lanes run across rows. */
  readonly atom: IndexExpr;
  readonly places: readonly IndexExpr[];
  /** The first unit, and how many there are. */
  readonly first: number;
  readonly count: number;
  /** Groups of four elements in a unit. */
  readonly groups: number;
}

export interface SerialRows {
  /** All rows: most of them in the first stretch. */
  readonly stretches: readonly RowStretch[];
  /** Elements of the pieces that rows are visited in; undefined where a row is one. */
  readonly piece: number | undefined;
  /** Values that wait between sweeps, and the elements that each needs room for. */
  readonly kept: readonly Expr[];
  readonly room: number;
  /** Groups of elements that a sweep takes a turn. */
  chainsOf(exprs: readonly Expr[]): number;
}

/** Groups of four rows that are handled together: with 32, two lines of a cache are read whole. */
const mostPerBatch = 8;
/** Elements of a row so short that lanes run across rows, unless its own are neighbours. */
const shortRow = 16;
/** Elements of the shortest piece of a row that has loops of its own. */
const leastPiece = 16;

export function serialRows(kernel: Kernel, body: RowBody, work: RowWork, target: Target): SerialRows {
  const { row, column } = body;
  const pieceAlong = pieceOf(kernel, body);
  const lanes = lanesOf(kernel, body, work, pieceAlong);
  const piece = lanes === 'column' ? pieceAlong : undefined;
  const along = piece ?? column.extent;
  const { unroll, work: maxWork, inRegister = 1 } = target.serial ?? { unroll: 1, work: 0 };
  const kept = valuesToKeep(work.sweeps, work.facts);
  const bytes = kept.reduce((sum, expr) => sum + dtypeBytes(registerOf(expr.dtype) as 'f32'), 0);
  const effort = Math.max(...work.sweeps.map((exprs) => effortOf(exprs)), 1);
  let seats = lanes === 'row' ? mostPerBatch : 1;
  while (seats > 1 && (seats * effort > 8 * maxWork || 8 * seats > row.extent)) seats /= 2;
  const roomOf = (): number => {
    if (lanes !== 'column') return 4 * seats * column.extent;
    return piece === undefined ? column.extent + 4 : (column.extent / piece) * roomOfPiece(piece);
  };
  const fits = (): boolean => bytes * roomOf() <= Math.min(target.rows.shared, target.limits.workgroupBytes);
  while (seats > 1 && kept.length > 0 && !fits()) seats /= 2;
  const steps = lanes === 'column' ? Math.floor(along / 4) : column.extent;
  return {
    piece,
    stretches: stretchesOf(row, column, lanes, seats),
    kept: fits() ? kept : [],
    room: roomOf(),
    chainsOf(exprs) {
      let chains = Math.max(1, Math.floor(unroll / seats));
      const isTooMuch = (): boolean => chains > inRegister && chains * effortOf(exprs) > maxWork;
      while (chains > 1 && (chains > steps || isTooMuch())) chains /= 2;
      // Few turns of a piece leave no register over.
      const isWaste = (): boolean => steps < 4 * chains && steps % chains >= inRegister;
      if (piece !== undefined) while (chains > inRegister && isWaste()) chains /= 2;
      return chains;
    },
  };
}

/** Room for a piece of a row whose values wait, in whole vectors. */
export function roomOfPiece(elements: number): number {
  return 4 * (Math.floor(elements / 4) + 1);
}

/**
 * Elements of the longest piece of a row in which indices advance without a division: of a channel
 * over a batch of images, one image.
 */
function pieceOf({ writes }: Kernel, { column, stages, bound }: RowBody): number | undefined {
  // Places of extrema are counted along the whole row, and what a run asks for ends anywhere.
  if (bound !== undefined || stages.some(({ arg }) => arg)) return undefined;
  let longest = 0;
  const divide = (index: IndexExpr): void => {
    if (index.kind === 'sum') for (const { atom } of index.terms) divide(atom);
    else if (index.kind === 'div' || index.kind === 'mod') {
      if (coefficientOf(index.of, column.atom) !== 1) divide(index.of);
      else if (column.extent % index.by === 0 && index.by < column.extent)
        longest = Math.max(longest, index.by);
    }
  };
  const seen = new Set<Expr>();
  const visit = (expr: Expr): void => {
    if (seen.has(expr)) return;
    seen.add(expr);
    indicesOf(expr).forEach(divide);
    argsOf(expr).forEach(visit);
  };
  for (const { value } of [...stages, ...writes]) visit(value);
  for (const { index } of writes) divide(index);
  return longest >= leastPiece ? longest : undefined;
}

function lanesOf(
  kernel: Kernel,
  { row, column, stages }: RowBody,
  { perElement, facts }: RowWork,
  piece: number | undefined,
): Lanes {
  const values = [...stages, ...kernel.writes].map(({ value }) => value);
  const along = countContiguous(values, { ...column, piece });
  // What is read once a row does not say how elements lie.
  const across = countContiguous(values, row, 1, facts.varies);
  const isApart = along === across && column.extent < shortRow && perElement.length === 0;
  if ((across > along || isApart || column.extent < 4) && row.extent >= 4) return 'row';
  return column.extent >= 4 ? 'column' : 'none';
}

function stretchesOf(row: Axis, column: Axis, lanes: Lanes, seats: number): readonly RowStretch[] {
  const single = (atom: IndexExpr, first: number): RowStretch => ({
    lanes: lanes === 'row' ? 'none' : lanes,
    hint: 'row',
    atom,
    places: [atom],
    first,
    count: row.extent - first,
    groups: Math.ceil(column.extent / 4),
  });
  if (lanes !== 'row') return [single(axisIndex('row', row.extent), 0)];
  const quads = Math.floor(row.extent / 4);
  const units = Math.floor(quads / seats);
  const wide = (hint: string, at: number, first: number, count: number): RowStretch => {
    const atom = axisIndex(hint, first + count);
    const base = addIndex(scaleIndex(atom, 4 * at), laneAtom);
    const places = Array.from({ length: at }, (_, seat) => offsetIndex(base, 4 * seat));
    return { lanes, hint, atom, places, first, count, groups: at * column.extent };
  };
  return [
    wide('unit', seats, 0, units),
    ...(seats > 1 ? [wide('quad', 1, units * seats, quads - units * seats)] : []),
    single(axisIndex('row', row.extent), 4 * quads),
  ].filter(({ count }) => count > 0);
}

/** Units of a stretch of rows that are needed, the first ones, where a run says how many. */
export function neededUnits(
  b: LoopBuilder,
  frame: Frame,
  row: Axis,
  { lanes, places, count }: RowStretch,
): Value | undefined {
  const needed = neededOf(b, frame, row);
  return needed && inGroups(b, needed, lanes === 'row' ? 4 * places.length : 1, count, 'needed_units');
}
