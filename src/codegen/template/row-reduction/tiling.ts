// How a row kernel is spread over invocations, and where the elements of a row wait between two
// sweeps: plain data, chosen from sizes and the target.

import {
  addIndex,
  axisIndex,
  coefficientOf,
  scaleIndex,
  substitute,
  type IndexExpr,
} from '../../../ir/index-algebra/expr.ts';
import { argsOf, type Expr } from '../../../schedule/expression/expr.ts';
import type { Axis, Body, Kernel } from '../../../schedule/kernel.ts';
import { invocationsToFill, sharesWork } from '../../../schedule/machine.ts';
import type { Target } from '../../../schedule/target.ts';
import { laneAtom, quadIndex } from '../../expression/lowering.ts';
import type { Width } from '../../loop/loop.ts';
import type { RowFacts } from './facts.ts';
import { joinBytes } from '../shared/join.ts';

export type RowBody = Extract<Body, { kind: 'row-reduction' }>;

/**
 * Which axis the vector lanes run along; `none` for rows that are neither contiguous nor a multiple
 * of four.
 */
export type Lanes = 'column' | 'row' | 'none';

/** Rows over invocations. */
export interface RowSpread {
  readonly lanes: Lanes;
  /** Invocations that share one row (or quad of rows); a power of two. */
  readonly parts: number;
  /** Rows (or quads of rows) per workgroup. */
  readonly rows: number;
  /** Whether neighbouring invocations share a row; else they have neighbouring rows. */
  readonly together: boolean;
}

/**
 * `registers`: the sweeps are unrolled, so what one of them reads or computes the next ones still
 * have; `workgroup`: each invocation leaves what it read in workgroup memory for itself; `stream`:
 * every sweep reads the row again.
 */
export type RowStorage = 'registers' | 'workgroup' | 'stream';

export interface RowTiling extends RowSpread {
  readonly keeping: RowStorage;
}

/** Steps along a row: elements, or groups of four. */
export function stepsOf(column: Axis, lanes: Lanes): number {
  return lanes === 'column' ? column.extent / 4 : column.extent;
}

/** Rows, or groups of four. */
export function unitsOf(row: Axis, lanes: Lanes): number {
  return lanes === 'row' ? Math.ceil(row.extent / 4) : row.extent;
}

/** Elements that one step of one invocation covers. */
export function widthOf(lanes: Lanes): Width {
  return lanes === 'none' ? 1 : 4;
}

/** Elements of a total: a lane for each row. */
export function totalWidth(lanes: Lanes): Width {
  return lanes === 'row' ? 4 : 1;
}

/** Invocations of a subgroup on most GPUs. */
const usualSubgroup = 32;

/** Steps that are written out one by one. */
const mostTrips = 8;
/** Operations in an unrolled kernel: pipelines compile in time that grows with them. */
const mostWork = 320;

/**
 * Sums longer than this many terms are summed in blocks, so that the rounding error grows with the
 * square root only.
 */
export const blockedAbove = 64;

/** Steps of a block, preferring a number that divides them all. */
export function blockOf(trips: number, fewest: number = blockedAbove): number {
  const minSteps = Math.max(fewest, Math.ceil(Math.sqrt(trips)));
  for (let steps = minSteps; steps < 2 * minSteps; steps++) if (trips % steps === 0) return steps;
  return minSteps;
}

/** Chooses how rows are spread over invocations, by heuristics. */
export function rowSpread(kernel: Kernel, body: RowBody, target: Target): RowSpread {
  const spread = widest(kernel, body, target);
  let { parts } = spread;
  while (
    joinBytes({ ...spread, parts, width: totalWidth(spread.lanes) }, body.stages) >
    target.limits.workgroupBytes
  )
    parts /= 2;
  return { ...spread, parts };
}

function widest(kernel: Kernel, { row, column }: RowBody, target: Target): RowSpread {
  const stages = kernel.body.kind === 'row-reduction' ? kernel.body.stages : [];
  const values = [...stages, ...kernel.writes].map(({ value }) => value);
  const along = { column: countContiguous(values, column), row: countContiguous(values, row) };
  const lanes: Lanes =
    along.row > along.column && row.extent >= 4 ? 'row' : column.extent % 4 === 0 ? 'column' : 'none';
  const steps = stepsOf(column, lanes);
  const units = unitsOf(row, lanes);
  const alone = { lanes, parts: 1, together: false };
  if (!sharesWork(target)) return { ...alone, rows: smallGroup(units, target) };
  if (steps <= target.rows.alone) return { ...alone, rows: target.workgroupSize };
  const maxInvocations = powerWithin(target.limits.workgroupInvocations);
  const together = lanes !== 'row' && along.column > 0;
  if (!together) {
    // Neighbours across rows: 4 to 16 groups of four are 64 to 256 bytes in one piece.
    let rows = Math.min(16, powerFor(units), maxInvocations / 2);
    while (rows > 4 && units * (maxInvocations / rows) < invocationsToFill(target)) rows /= 2;
    let parts = 2;
    while (parts * rows < maxInvocations && parts < steps) parts *= 2;
    return { lanes, parts, rows, together };
  }
  // Subgroups reduce whole workgroups: a row that fills a subgroup has one or several for itself.
  const { subgroups } = target;
  const whole =
    subgroups === undefined ? Infinity : Math.min(Math.max(subgroups.min, usualSubgroup), subgroups.max);
  let parts = Math.min(steps >= whole ? whole : target.rows.share, maxInvocations);
  while (parts < maxInvocations && parts * 4 < steps) parts *= 2;
  while (parts < maxInvocations && parts < steps && parts * units < invocationsToFill(target)) parts *= 2;
  const rows = parts >= whole ? 1 : Math.max(1, Math.floor(target.workgroupSize / parts));
  return { lanes, parts, rows, together };
}

/**
 * Twice as many invocations for each row, where a row is shared, still has a step for all of them,
 * and workgroup memory has room for joining their results.
 */
export function shareMore(
  spread: RowSpread,
  { column, stages }: RowBody,
  target: Target,
): RowSpread | undefined {
  const { limits } = target;
  const parts = 2 * spread.parts;
  if (!spread.together || parts > stepsOf(column, spread.lanes)) return undefined;
  if (parts > powerWithin(limits.workgroupInvocations)) return undefined;
  const wider = { ...spread, parts, rows: Math.max(1, Math.floor(spread.rows / 2)) };
  const fits = joinBytes({ ...wider, width: totalWidth(spread.lanes) }, stages) <= limits.workgroupBytes;
  return fits ? wider : undefined;
}

/** Few rows make small workgroups, so that every core has some. */
function smallGroup(units: number, target: Target): number {
  let rows = target.workgroupSize;
  while (rows > 4 && (units / rows) * target.workgroupSize < invocationsToFill(target)) rows /= 2;
  return rows;
}

/**
 * Where a row's elements wait. `sweeps` are the expressions that each sweep evaluates at every
 * element.
 */
export function rowKeeping(
  spread: RowSpread,
  { column, stages }: RowBody,
  sweeps: readonly (readonly Expr[])[],
  facts: RowFacts,
  target: Target,
): RowStorage {
  const { lanes, parts, rows } = spread;
  const seats = { parts, rows, width: totalWidth(lanes) };
  const trips = Math.ceil(stepsOf(column, lanes) / parts);
  const kept = keptReads(sweeps, facts).length;
  const work = trips * sweeps.reduce((sum, exprs) => sum + facts.work(exprs), 0);
  const registers = trips * Math.max(1, kept);
  if (trips <= mostTrips && registers <= target.rows.registers && work <= mostWork) return 'registers';
  const bytes = kept * rows * parts * trips * widthOf(lanes) * 4;
  const room = Math.min(target.rows.shared, target.limits.workgroupBytes - joinBytes(seats, stages));
  return kept > 0 && bytes <= room ? 'workgroup' : 'stream';
}

/** Reads that more than one sweep makes. */
export function keptReads(sweeps: readonly (readonly Expr[])[], facts: RowFacts): readonly Expr[] {
  const counts = new Map<Expr, number>();
  for (const exprs of sweeps)
    for (const read of new Set(exprs.flatMap((expr) => [...facts.reads(expr)])))
      counts.set(read, (counts.get(read) ?? 0) + 1);
  return [...counts].filter(([, count]) => count > 1).map(([read]) => read);
}

/** An axis that loops visit piece by piece: pieces of so many elements, which divide its extent. */
export interface PiecedAxis extends Axis {
  readonly piece?: number | undefined;
}

/** Reads, of those that count, whose element index grows by one (or by `step`) along the axis. */
export function countContiguous(
  exprs: readonly Expr[],
  axis: PiecedAxis,
  step = 1,
  counts: (read: Expr) => boolean = () => true,
): number {
  const seen = new Set<Expr>();
  let count = 0;
  const visit = (expr: Expr): void => {
    if (seen.has(expr)) return;
    seen.add(expr);
    if (expr.kind === 'read' && counts(expr) && isContiguous(expr.index, axis, step)) count += 1;
    argsOf(expr).forEach(visit);
  };
  exprs.forEach(visit);
  return count;
}

/** Whether an element index grows by one (or by `step`) along the axis. */
export function isContiguous(index: IndexExpr, { atom, extent, piece }: PiecedAxis, step = 1): boolean {
  const quad = addIndex(scaleIndex(quadIndex('quad', piece ?? extent), 4), laneAtom);
  const place =
    piece === undefined ? quad : addIndex(scaleIndex(axisIndex('piece', extent / piece), piece), quad);
  return coefficientOf(substitute(index, new Map([[atom, place]])), laneAtom) === step;
}

/** The smallest power of two that is at least n. */
export function powerFor(n: number): number {
  return 2 ** Math.ceil(Math.log2(n));
}

/** The largest power of two that is at most n. */
function powerWithin(n: number): number {
  return 2 ** Math.floor(Math.log2(n));
}
