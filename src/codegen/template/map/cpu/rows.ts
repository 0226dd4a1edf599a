// map on a core, row by row, where groups of four elements of the flat result would lie across
// rows: widths that four does not divide, padding, joined tensors. A row is cut where conditions on
// its columns change, so that inside a piece nothing is chosen lane by lane; what four leaves over
// at the end of a piece is computed one element at a time.

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
import { constant, type LoopBuilder } from '../../../loop/builder.ts';
import { laneAtom, Lowering } from '../../../expression/lowering.ts';
import type { Value } from '../../../loop/loop.ts';
import { bufferName, type Frame } from '../../shared/frame.ts';
import { exprsOf, groupsAtOnce, singleTurns, startsOf } from './turn.ts';
import { maximumInstead } from '../../shared/maximum.ts';
import { storeAt } from '../../shared/store-value.ts';

/**
 * Rows of a result, which may be several of its last axes, and the columns at which pieces begin.
 */
export interface MapRows {
  readonly rows: number;
  readonly width: number;
  readonly starts: readonly number[];
  readonly atom: IndexExpr;
  /** Groups of four elements that a turn takes. */
  readonly groups: number;
}

/** Pieces that are written out. */
const mostPieces = 6;

/** The rows in which a map reads more in one piece than in its flat order. */
export function rowsOf(
  kernel: Kernel,
  axis: Axis,
  writes: readonly Write[],
  { serial }: Target,
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
    const atom = axisIndex('row', rows);
    const starts = startsOf(exprs, axis, scaleIndex(atom, width), width);
    if (starts.length > mostPieces) continue;
    const plan = { rows, width, starts, atom, groups: groupsAtOnce(exprs, serial) };
    const costs = starts.map((start, i) => {
      const quads = Math.floor(((starts[i + 1] ?? width) - start) / 4);
      return quads === 0 ? 0 : scattered(exprs, axis, quadOf(plan, start, quads), atom);
    });
    const cost = Math.max(...costs);
    if (cost < lowestCost) [lowestCost, best] = [cost, plan];
  }
  return best;
}

/** A group of four among `quads` of a piece. */
function quadOf({ atom, width }: MapRows, start: number, quads: number): IndexExpr {
  const quad = axisIndex('quad', Math.max(1, quads));
  return offsetIndex(addIndex(addIndex(scaleIndex(atom, width), scaleIndex(quad, 4)), laneAtom), start);
}

/**
 * What reads and conditions cost that differ by lane otherwise than by one element each, or two:
 * one, and one for each division that every lane computes.
 */
function scattered(exprs: readonly Expr[], axis: Axis, place: IndexExpr, row?: IndexExpr): number {
  const map = new Map([[axis.atom, place]]);
  const moving = atomsOf(place).filter((atom) => atom !== row);
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
    if (guard === 'never') return 0;
    const byLane = guard.filter(({ expr: index }) => atomsOf(index).includes(laneAtom as never));
    return byLane.length === 0 ? 0 : 1 + byLane.reduce((sum, { expr: index }) => sum + divisionsOf(index), 0);
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
  const { width, starts, atom, groups } = plan;
  const bufferOf = bufferName(frame);
  const at = (
    place: IndexExpr,
    atoms: readonly (readonly [IndexExpr, Value])[],
    lanes: Axis | undefined,
  ): void => {
    const binding = { substitution: new Map([[axis.atom, place]]), atoms: new Map([[atom, row], ...atoms]) };
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
    const origin = offsetIndex(scaleIndex(atom, width), start);
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
