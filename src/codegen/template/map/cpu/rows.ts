// map on a core, row by row, where groups of four elements of the flat result would lie across
// rows, or every group would load what only some rows need: widths that four does not divide,
// padding, joined tensors. Rows are told apart where conditions on them change, and a row is cut
// where conditions on its columns do, so that inside a piece nothing is chosen; what four leaves
// over at the end of a piece is computed one element at a time.

import {
  addIndex,
  atomsOf,
  axisIndex,
  coefficientOf,
  constantIndex,
  offsetIndex,
  scaleIndex,
  substitute,
  substituteGuard,
  termsOf,
  type IndexExpr,
} from '../../../../ir/index-algebra/expr.ts';
import { dims } from '../../../../ir/graph.ts';
import { sameShape, sizeOf } from '../../../../ir/shape.ts';
import type { Expr } from '../../../../schedule/expression/expr.ts';
import type { Axis, Kernel, Write } from '../../../../schedule/kernel.ts';
import type { Target } from '../../../../schedule/target.ts';
import { constant, less, operation, type LoopBuilder } from '../../../loop/builder.ts';
import { divideInts } from '../../../loop/integers.ts';
import { laneAtom, Lowering } from '../../../expression/lowering.ts';
import type { Value } from '../../../loop/loop.ts';
import { bufferName, type Frame } from '../../shared/frame.ts';
import { changesOf, exprsOf, groupsAtOnce, singleTurns, startsOf } from './turn.ts';
import { maximumInstead } from '../../shared/maximum.ts';
import { storeAt } from '../../shared/store-value.ts';

/** Rows of a result, which may be several of its last axes, and where pieces of it begin. */
export interface MapRows {
  readonly rows: number;
  readonly width: number;
  /** Columns at which pieces of a row begin. */
  readonly starts: readonly number[];
  /** Rows after which conditions on rows repeat, and those among them at which kinds of rows begin. */
  readonly period: number;
  readonly rowStarts: readonly number[];
  /** Groups of four elements that a turn takes. */
  readonly groups: number;
}

/** Rows of one kind: their index in terms of `atoms`, which the number of a row gives. */
interface RowKind {
  readonly index: IndexExpr;
  /** Which period it is in, and which row of this kind it is there. */
  readonly atoms: readonly [IndexExpr, IndexExpr];
}

/** Pieces of a row that are written out, and of all kinds of rows. */
const mostPieces = 6;
const mostWritten = 72;
/** What a condition costs that holds for all lanes or none, beside one by lane: both sides are computed. */
const uniform = 0.25;

/** The rows in which a map reads more in one piece than in its flat order. */
export function rowsOf(
  kernel: Kernel,
  axis: Axis,
  writes: readonly Write[],
  { serial, cores }: Target,
  given?: readonly number[],
): MapRows | undefined {
  const shape = given ?? (writes.length === 0 ? [] : dims(writes[0]!.node));
  const fits = writes.every(({ node, index }) =>
    given === undefined
      ? index === axis.atom && sameShape(node.shape, shape)
      : coefficientOf(index, axis.atom) === 1 && atomsOf(index).length === 1,
  );
  if (serial === undefined || !fits || sizeOf(shape) === 0) return undefined;
  const narrowest = given === undefined ? serial.width : 4;
  const exprs = exprsOf(kernel, writes);
  let lowestCost = scattered(exprs, axis, singleTurns(axis).places[0]!);
  let best: MapRows | undefined;
  for (let split = 1; split < shape.length && lowestCost > 0; split++) {
    const width = sizeOf(shape.slice(split));
    const rows = sizeOf(shape.slice(0, split));
    if (width < narrowest) break;
    if (rows < cores.count) continue;
    const starts = startsOf(exprs, axis, scaleIndex(axisIndex('row', rows), width), width);
    if (starts.length > mostPieces) continue;
    const groups = groupsAtOnce(exprs, serial);
    const one = { rows, width, starts, period: rows, rowStarts: [0], groups };
    for (const plan of [one, byKinds(one, shape.slice(0, split), exprs, axis)]) {
      if (plan === undefined) continue;
      const cost = costOfRows(plan, exprs, axis);
      if (cost < lowestCost) [lowestCost, best] = [cost, plan];
    }
  }
  return best;
}

/**
 * The plan with rows told apart where conditions on them change, which repeat after the last axes that such conditions are on;
 * undefined if there are no such conditions, or too many.
 */
function byKinds(
  plan: MapRows,
  outer: readonly number[],
  exprs: readonly Expr[],
  axis: Axis,
): MapRows | undefined {
  const column = axisIndex('column', plan.width);
  for (let first = outer.length - 1; first >= 0; first--) {
    const period = sizeOf(outer.slice(first));
    const blocks = scaleIndex(axisIndex('block', plan.rows / period), period * plan.width);
    const along = (row: IndexExpr): IndexExpr =>
      addIndex(addIndex(blocks, column), scaleIndex(row, plan.width));
    const rowStarts = changesOf(exprs, axis, period, along);
    if (rowStarts.length === 1) continue;
    return rowStarts.length * plan.starts.length <= mostWritten ? { ...plan, period, rowStarts } : undefined;
  }
  return undefined;
}

/** The kind of rows that begins at one of the starts. */
function kindOf({ rows, period, rowStarts }: MapRows, i: number): RowKind {
  const start = rowStarts[i]!;
  const block = axisIndex('block', rows / period);
  const row = axisIndex('row', (rowStarts[i + 1] ?? period) - start);
  return { index: offsetIndex(addIndex(scaleIndex(block, period), row), start), atoms: [block, row] };
}

/** What the costliest piece of rows costs. */
function costOfRows(plan: MapRows, exprs: readonly Expr[], axis: Axis): number {
  const costs = plan.rowStarts.flatMap((_, kind) => {
    const { index, atoms } = kindOf(plan, kind);
    return plan.starts.map((start, i) => {
      const quads = Math.floor(((plan.starts[i + 1] ?? plan.width) - start) / 4);
      const quad = addIndex(scaleIndex(axisIndex('quad', Math.max(1, quads)), 4), laneAtom);
      const place = offsetIndex(addIndex(scaleIndex(index, plan.width), quad), start);
      return quads === 0 ? 0 : scattered(exprs, axis, place, atoms);
    });
  });
  return Math.max(...costs);
}

/**
 * What reads and conditions cost that differ by lane otherwise than by one element each, or two:
 * one, and one for each division that every lane computes; conditions that all lanes share, a part.
 */
function scattered(
  exprs: readonly Expr[],
  axis: Axis,
  place: IndexExpr,
  fixed: readonly IndexExpr[] = [],
): number {
  const map = new Map([[axis.atom, place]]);
  const moving = atomsOf(place).filter((atom) => !fixed.includes(atom));
  const divisionsOf = (index: IndexExpr): number =>
    divisionsBy(substitute(index, new Map([[laneAtom, constantIndex(1)]])), moving);
  const costOf = (expr: Expr): number => {
    if (expr.kind === 'index') {
      const index = substitute(expr.index, map);
      return coefficientOf(index, laneAtom) === undefined ? divisionsOf(index) : 0;
    }
    if (expr.kind === 'read') {
      const index = substitute(expr.index, map);
      const step = coefficientOf(index, laneAtom);
      return step === 0 || step === 1 || step === 2 ? 0 : 1 + divisionsOf(index);
    }
    if (expr.kind !== 'select') return 0;
    const guard = substituteGuard(expr.guard, map);
    if (guard === 'never' || guard.length === 0) return 0;
    const byLane = guard.filter(({ expr: index }) => atomsOf(index).includes(laneAtom as never));
    return byLane.length === 0
      ? uniform
      : 1 + byLane.reduce((sum, { expr: index }) => sum + divisionsOf(index), 0);
  };
  return exprs.reduce((sum, expr) => sum + costOf(expr), 0);
}

/** Divisions of an index, and those inside them, whose operand has one of the atoms. */
function divisionsBy(index: IndexExpr, atoms: readonly IndexExpr[]): number {
  return termsOf(index).reduce((sum, { atom }) => {
    if (atom.kind !== 'div' && atom.kind !== 'mod') return sum;
    if (!atomsOf(atom).some((leaf) => atoms.includes(leaf))) return sum;
    return sum + 1 + divisionsBy(atom.of, atoms);
  }, 0);
}

/** Computes and stores a row. */
export function computeRow(
  b: LoopBuilder,
  frame: Frame,
  axis: Axis,
  writes: readonly Write[],
  plan: MapRows,
  row: Value,
): void {
  const { rows, period, rowStarts } = plan;
  const [block, inBlock] = period < rows ? divideInts(b, row, period, ['block', 'row']) : [constant(0), row];
  const kinds = (from: number, to: number): void => {
    if (to - from > 1) {
      const middle = (from + to) >> 1;
      return b.if(
        less(inBlock, constant(rowStarts[middle]!)),
        () => kinds(from, middle),
        () => kinds(middle, to),
      );
    }
    const { index, atoms } = kindOf(plan, from);
    const start = rowStarts[from]!;
    const inKind = start === 0 ? inBlock : b.let(operation('sub', [inBlock, constant(start)], 'i32'), 'row');
    const values = [
      [atoms[0], block],
      [atoms[1], inKind],
    ] as const;
    computePieces(b, frame, axis, writes, plan, index, values);
  };
  kinds(0, rowStarts.length);
}

/** The pieces of a row of one kind. */
function computePieces(
  b: LoopBuilder,
  frame: Frame,
  axis: Axis,
  writes: readonly Write[],
  { width, starts, groups }: MapRows,
  row: IndexExpr,
  rowAtoms: readonly (readonly [IndexExpr, Value])[],
): void {
  const bufferOf = bufferName(frame);
  const at = (
    place: IndexExpr,
    atoms: readonly (readonly [IndexExpr, Value])[],
    lanes: Axis | undefined,
  ): void => {
    const binding = {
      substitution: new Map([[axis.atom, place]]),
      atoms: new Map([...rowAtoms, ...atoms]),
    };
    const lowering = new Lowering(b, frame.kernel.pool, binding, bufferOf, {
      strides: true,
      instead: maximumInstead(b),
    });
    const values = writes.map((write) => lowering.value(write.value));
    writes.forEach((write, i) =>
      storeAt(b, lowering, bufferOf(write.node), write, values[i]!, lanes, { anywhere: true }),
    );
  };
  for (const [i, start] of starts.entries()) {
    const end = starts[i + 1] ?? width;
    const quads = Math.floor((end - start) / 4);
    const turns = Math.floor(quads / groups);
    const origin = offsetIndex(scaleIndex(row, width), start);
    const turnAtom = axisIndex('turn', Math.max(1, turns));
    if (turns > 0)
      b.for('turn', constant(0), constant(turns), 1, (turn) => {
        for (let group = 0; group < groups; group++) {
          const inPiece = offsetIndex(addIndex(scaleIndex(turnAtom, 4 * groups), laneAtom), 4 * group);
          at(addIndex(origin, inPiece), [[turnAtom, turn]], axis);
        }
      });
    const quadAtom = axisIndex('quad', Math.max(1, quads));
    if (quads > turns * groups)
      b.for('quad', constant(turns * groups), constant(quads), 1, (quad) =>
        at(addIndex(origin, addIndex(scaleIndex(quadAtom, 4), laneAtom)), [[quadAtom, quad]], axis),
      );
    for (let column = 4 * quads; column < end - start; column++)
      at(offsetIndex(origin, column), [], undefined);
  }
}
