// How many groups of four a map takes in one turn of its loop, where turns have a price: written out one after another, at places
// that differ by constants.

import {
  addIndex,
  axisIndex,
  coefficientOf,
  offsetIndex,
  scaleIndex,
  substitute,
} from '../../ir/index-expr.ts';
import type { IndexExpr } from '../../ir/index-expr.ts';
import { argsOf, type Expr } from '../../schedule/expr.ts';
import type { Axis, Kernel, Write } from '../../schedule/kernel.ts';
import type { SerialProfile } from '../../schedule/target.ts';
import { laneAtom, quadIndex } from '../lower.ts';

/** Groups of four that a turn takes, as places of the axis in terms of an atom that numbers the turns. */
export interface Turns {
  readonly atom: IndexExpr;
  readonly places: readonly IndexExpr[];
  readonly count: number;
}

/** One group a turn, all of them. */
export function singleTurns(axis: Axis): Turns {
  const atom = quadIndex('quad', axis.extent);
  return {
    atom,
    places: [addIndex(scaleIndex(atom, 4), laneAtom)],
    count: Math.ceil(axis.extent / 4),
  };
}

/** Turns of several groups, which leave the last groups to others; undefined where that is not worth it, or where groups would
 *  read apart what they read in one piece when each has a turn. */
export function longTurns(
  kernel: Kernel,
  axis: Axis,
  writes: readonly Write[],
  serial: SerialProfile | undefined,
): Turns | undefined {
  if (serial === undefined) return undefined;
  const exprs = everything(kernel, writes);
  const work = exprs.filter(({ kind }) => kind !== 'constant' && kind !== 'scalar').length;
  let groups = serial.unroll;
  while (groups * work > serial.work && groups > 1) groups /= 2;
  const count = Math.floor(axis.extent / (4 * groups));
  if (groups < 2 || count < 2) return undefined;
  const atom = axisIndex('turn', count);
  const first = addIndex(scaleIndex(atom, 4 * groups), laneAtom);
  const places = Array.from({ length: groups }, (_, group) => offsetIndex(first, 4 * group));
  const indices = [
    ...exprs.flatMap((expr) => (expr.kind === 'read' ? [expr.index] : [])),
    ...writes.map(({ index }) => index),
  ];
  const [plain] = singleTurns(axis).places;
  const step = (index: IndexExpr, place: IndexExpr): number | undefined =>
    coefficientOf(substitute(index, new Map([[axis.atom, place]])), laneAtom);
  const keeps = indices.every((index) => places.every((place) => step(index, place) === step(index, plain!)));
  return keeps ? { atom, places, count } : undefined;
}

function everything(kernel: Kernel, writes: readonly Write[]): readonly Expr[] {
  const seen = new Set<Expr>();
  const visit = (expr: Expr): void => {
    if (seen.has(expr)) return;
    seen.add(expr);
    argsOf(expr).forEach(visit);
  };
  writes.forEach(({ value }) => visit(value));
  kernel.pool.dynamics.forEach(visit);
  return [...seen];
}
