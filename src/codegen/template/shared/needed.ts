// What of a kernel's points is needed, as values that loops and tasks end at: how many elements of an
// axis, where these come first, else whether the points that begin at one are.

import type { IndexExpr } from '../../../ir/index-algebra/expr.ts';
import { atomsOf } from '../../../ir/index-algebra/expr.ts';
import type { Expr } from '../../../schedule/expression/expr.ts';
import type { Axis, Needed } from '../../../schedule/kernel.ts';
import { both, constant, less, mulInts, type LoopBuilder } from '../../loop/builder.ts';
import type { Lowering } from '../../expression/lowering.ts';
import type { Value } from '../../loop/loop.ts';
import { endOf, type Frame } from './frame.ts';

function needsOf({ kernel: { body } }: Frame): readonly Needed[] {
  return ('needed' in body && body.needed) || [];
}

/** How many of an axis's consecutive elements have one index `at`, where it begins with them; else undefined. */
function leading({ at }: Needed, { atom }: Axis): number | undefined {
  if (at === atom) return 1;
  return at.kind === 'div' && at.of === atom ? at.by : undefined;
}

/** How many elements of an axis are needed, its first ones; undefined where it is all. */
export function neededOf(b: LoopBuilder, frame: Frame, axis: Axis): Value | undefined {
  for (const need of needsOf(frame)) {
    const each = leading(need, axis);
    if (each !== undefined)
      return b.let(mulInts(endOf(b, frame, axis.extent, need.end), constant(each)), 'needed');
  }
  return undefined;
}

/** After how many elements an index of the axis begins anew; undefined where it never does, or is another one's. */
function periodOf(at: IndexExpr, atom: IndexExpr): number | undefined {
  if (at.kind === 'mod') {
    if (at.of === atom) return at.by;
    return at.of.kind === 'div' && at.of.of === atom ? at.of.by * at.by : undefined;
  }
  return at.kind === 'div' && at.of.kind === 'mod' && at.of.of === atom ? at.of.by : undefined;
}

/**
 * Whether any of `count` consecutive elements of an axis is needed, of which the lowering is at the
 * first; true where that is not known.
 */
export function anyNeeded(
  b: LoopBuilder,
  frame: Frame,
  axis: Axis,
  count: number,
  lowering: () => Lowering,
): Value {
  let condition: Value = constant(1, 'bool');
  for (const { at, end } of needsOf(frame)) {
    const period = periodOf(at, axis.atom);
    if (period === undefined || period % count !== 0) continue;
    const here = lowering();
    const place = here.index(here.place(at));
    condition = both(condition, less(place, here.value(end)));
  }
  return condition.kind === 'constant' ? condition : b.let(condition, 'is_needed');
}

/** Whether a point is needed, as far as indices of one axis alone tell. */
export function pointNeeded(b: LoopBuilder, frame: Frame, axis: Axis, lowering: () => Lowering): Value {
  let condition: Value = constant(1, 'bool');
  for (const { at, end } of needsOf(frame)) {
    if (!atomsOf(at).every((atom) => atom === axis.atom)) continue;
    const here = lowering();
    condition = both(condition, less(here.index(here.place(at)), here.value(end)));
  }
  return condition.kind === 'constant' ? condition : b.let(condition, 'is_needed');
}

/**
 * Whether no element of a row is needed behind those that count in its reductions, where a run says
 * how many these are.
 */
export function areNeededBelow(frame: Frame, column: Axis): boolean {
  const { body } = frame.kernel;
  const bound = body.kind === 'row-reduction' ? body.bound : undefined;
  return needsOf(frame).some(
    ({ at, end }) => at === column.atom && bound !== undefined && isAtMost(end, bound),
  );
}

/** Whether one number is plainly at most another: the same, or a part of a maximum. */
function isAtMost(end: Expr, bound: Expr): boolean {
  if (end === bound) return true;
  return bound.kind === 'op' && bound.op === 'max' && bound.args.some((arg) => isAtMost(end, arg));
}
