// How many groups of four elements a map computes in one iteration of its loop on a CPU: the loop is unrolled
// if its overhead matters, at offsets that differ by constants. And where loops over a row are cut: at its conditions.

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
  type Guard,
  type IndexExpr,
} from '../../../../ir/index-algebra/expr.ts';
import { argsOf, type Expr } from '../../../../schedule/expression/expr.ts';
import type { Axis, Kernel, Write } from '../../../../schedule/kernel.ts';
import type { SerialProfile } from '../../../../schedule/target.ts';
import { laneAtom, quadIndex } from '../../../expression/lowering.ts';

/**
 * Groups of four that a turn takes, as places of the axis in terms of an atom that numbers the
 * turns.
 */
export interface IterationGroups {
  readonly atom: IndexExpr;
  readonly places: readonly IndexExpr[];
  readonly count: number;
}

/** One group a turn, all of them. */
export function singleTurns(axis: Axis): IterationGroups {
  const atom = quadIndex('quad', axis.extent);
  return {
    atom,
    places: [addIndex(scaleIndex(atom, 4), laneAtom)],
    count: Math.ceil(axis.extent / 4),
  };
}

/**
 * Turns of several groups, which leave the last groups to others; undefined where that is not worth
 * it, or where it would split into separate loads what single turns load in one piece.
 */
export function longTurns(
  kernel: Kernel,
  axis: Axis,
  writes: readonly Write[],
  serial: SerialProfile | undefined,
): IterationGroups | undefined {
  if (serial === undefined) return undefined;
  const exprs = exprsOf(kernel, writes);
  const groups = groupsAtOnce(exprs, serial);
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
  const differs = (guard: Guard, place: IndexExpr): boolean => {
    const here = substituteGuard(guard, new Map([[axis.atom, place]]));
    return here !== 'never' && here.some(({ expr }) => atomsOf(expr).includes(laneAtom as never));
  };
  const guards = exprs.flatMap((expr) => (expr.kind === 'select' ? [expr.guard] : []));
  const keeps = places.every(
    (place) =>
      indices.every((index) => step(index, place) === step(index, plain!)) &&
      guards.every((guard) => differs(guard, place) === differs(guard, plain!)),
  );
  return keeps ? { atom, places, count } : undefined;
}

/** Groups of four that a turn may have. */
export function groupsAtOnce(
  exprs: readonly Expr[],
  { unroll, work, inRegister = 1 }: SerialProfile,
): number {
  const each = exprs.filter(({ kind }) => kind !== 'constant' && kind !== 'scalar').length;
  let groups = unroll;
  while (groups * each > work && groups > inRegister) groups /= 2;
  return groups;
}

/** All expressions that writes are computed from. */
export function exprsOf(
  { pool }: Pick<Kernel, 'pool'>,
  writes: readonly Pick<Write, 'value'>[],
): readonly Expr[] {
  const seen = new Set<Expr>();
  const visit = (expr: Expr): void => {
    if (seen.has(expr)) return;
    seen.add(expr);
    argsOf(expr).forEach(visit);
  };
  writes.forEach(({ value }) => visit(value));
  pool.dynamics.forEach(visit);
  return [...seen];
}

/** Columns of an axis, from `row` on, at which conditions begin or cease to hold. */
export function startsOf(
  exprs: readonly Expr[],
  axis: Axis,
  row: IndexExpr,
  width: number,
): readonly number[] {
  return changesOf(exprs, axis, width, (column) => addIndex(row, column));
}

/** Steps of a walk over elements of an axis at which conditions on nothing but the step begin or cease to hold. */
export function changesOf(
  exprs: readonly Expr[],
  axis: Axis,
  steps: number,
  placeOf: (step: IndexExpr) => IndexExpr,
): readonly number[] {
  const step = axisIndex('step', steps);
  const map = new Map([[axis.atom, placeOf(step)]]);
  const starts = new Set([0]);
  for (const expr of exprs) {
    const guard = expr.kind === 'select' ? substituteGuard(expr.guard, map) : [];
    for (const { expr: index, lo, hi } of guard === 'never' ? [] : guard) {
      if (coefficientOf(index, step) !== 1) continue;
      const origin = substitute(index, new Map([[step, constantIndex(0)]]));
      if (origin.kind === 'const') for (const at of [lo, hi + 1]) starts.add(at - origin.value);
    }
  }
  return [...starts].filter((start) => start >= 0 && start < steps).sort((a, b) => a - b);
}
