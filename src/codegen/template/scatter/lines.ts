// Lines of a scatter that one invocation on a core takes: neighbours in memory whose updates go to the same slots, as rows that are
// written into a larger tensor, or pages of a cache. They are visited in groups of four, several groups a turn of a loop.

import {
  addIndex,
  atomsOf,
  axisIndex,
  coefficientOf,
  constantIndex,
  offsetIndex,
  scaleIndex,
  substitute,
  type IndexExpr,
} from '../../../ir/index-algebra/expr.ts';
import { argsOf, indicesOf, type Expr, type ExprPool } from '../../../schedule/expression/expr.ts';
import type { Axis, Body, Kernel } from '../../../schedule/kernel.ts';
import { invocationsToFill } from '../../../schedule/machine.ts';
import type { Target } from '../../../schedule/target.ts';
import { laneAtom } from '../../expression/lowering.ts';
import { addInts, constant, mulInts, operation, type LoopBuilder } from '../../loop/builder.ts';
import type { Value } from '../../loop/loop.ts';
import { exprsOf, groupsAtOnce } from '../map/cpu/turn.ts';

type Scatter = Body & { readonly kind: 'scatter' };

/** How the lines of a scatter are shared out. */
export interface LineParts {
  readonly parts: number;
  /** Turns that a part takes, groups of four lines in a turn, and turns of all parts. */
  readonly turnsEach: number;
  readonly groups: number;
  readonly turns: number;
}

/** Visits lines at a place of the axis, in terms of an atom that has a value: four of them, or one. */
export type VisitLines = (
  place: IndexExpr,
  atoms: readonly (readonly [IndexExpr, Value])[],
  isFour: boolean,
) => void;

/** Parts of the lines; undefined where lines are no neighbours, or each has slots of its own, or invocations work side by side. */
export function linePartsOf(
  { pool }: Pick<Kernel, 'pool'>,
  body: Scatter,
  target: Target,
): LineParts | undefined {
  const { line, index, value, operand, active } = body;
  const { serial } = target;
  if (serial === undefined || line.extent < 4 || line.atom.kind !== 'axis') return undefined;
  const own = [body.target, ...active.map(({ expr }) => expr)];
  if (own.some((each) => dependsOn(pool, each, line.atom))) return undefined;
  const exprs = exprsOf({ pool }, [{ value }, { value: operand }]);
  const turnsOf = (groups: number): number => Math.floor(line.extent / (4 * groups));
  const isRun = (place: IndexExpr): boolean =>
    coefficientOf(substitute(index, new Map([[line.atom, place]])), laneAtom) === 1;
  if (!isRun(placeOf(axisIndex('four', turnsOf(1)), 1, 0))) return undefined;
  const isRunEach = (groups: number): boolean =>
    turnsOf(groups) > 0 &&
    [...Array(groups).keys()].every((i) => isRun(placeOf(axisIndex('turn', turnsOf(groups)), groups, i)));
  let groups = groupsAtOnce(exprs, serial);
  while (groups > 1 && !isRunEach(groups)) groups /= 2;
  const turns = turnsOf(groups);
  const most = Math.max(1, Math.floor(target.elementsPerInvocation / (4 * groups)));
  const turnsEach = Math.max(1, Math.min(most, Math.floor(turns / invocationsToFill(target))));
  return { parts: Math.ceil(turns / turnsEach), turnsEach, groups, turns };
}

/** The place of the `group`th group of four of a turn. */
function placeOf(turn: IndexExpr, groups: number, group: number): IndexExpr {
  return offsetIndex(addIndex(scaleIndex(turn, 4 * groups), laneAtom), 4 * group);
}

/** Visits all lines of a part. What turns leave over belongs to the last one. */
export function eachLine(
  b: LoopBuilder,
  { extent }: Axis,
  { parts, turnsEach, groups, turns }: LineParts,
  part: Value,
  visit: VisitLines,
): void {
  const first = mulInts(part, constant(turnsEach));
  const past = addInts(first, constant(turnsEach));
  const isEven = turns === parts * turnsEach;
  const end = isEven ? past : operation('min', [past, constant(turns)], 'i32');
  const turnAtom = axisIndex('turn', turns);
  b.for('turn', first, end, 1, (turn) => {
    for (let group = 0; group < groups; group++)
      visit(placeOf(turnAtom, groups, group), [[turnAtom, turn]], true);
  });
  if (turns * groups * 4 === extent) return;
  const isLast = operation('eq', [part, constant(parts - 1)], 'bool');
  b.if(parts === 1 ? constant(1, 'bool') : isLast, () => {
    const fours = Math.floor(extent / 4);
    const fourAtom = axisIndex('four', fours);
    if (turns * groups < fours)
      b.for('four', constant(turns * groups), constant(fours), 1, (four) =>
        visit(placeOf(fourAtom, 1, 0), [[fourAtom, four]], true),
      );
    for (let line = 4 * fours; line < extent; line++) visit(constantIndex(line), [], false);
  });
}

/** Whether an expression, or an index, is not the same wherever an axis is. */
function dependsOn(pool: ExprPool, of: Expr | IndexExpr, atom: IndexExpr): boolean {
  const seen = new Set<Expr>();
  const inIndex = (index: IndexExpr): boolean =>
    atomsOf(index).some((each) => {
      const dynamic = pool.dynamics.get(each);
      return each === atom || (dynamic !== undefined && inExpr(dynamic));
    });
  const inExpr = (expr: Expr): boolean => {
    if (seen.has(expr)) return false;
    seen.add(expr);
    return indicesOf(expr).some(inIndex) || argsOf(expr).some(inExpr);
  };
  return 'dtype' in of ? inExpr(of) : inIndex(of);
}
