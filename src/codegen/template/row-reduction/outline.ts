// The decisions of the row-reduction template, taken before any statement is built: takes a kernel
// and a target; gives its sweeps, how rows are spread over invocations, and where elements wait
// between sweeps.

import { CompilerBug } from '../../../errors.ts';
import { atomsOf } from '../../../ir/index-algebra/expr.ts';
import type { Expr } from '../../../schedule/expression/expr.ts';
import type { Kernel, Write } from '../../../schedule/kernel.ts';
import type { Target } from '../../../schedule/target.ts';
import { rowFacts, type RowFacts } from './facts.ts';
import { joinBytes } from '../shared/join.ts';
import { elementOf, planRow, type RowSweep } from './plan.ts';
import {
  keptReads,
  rowKeeping,
  rowSpread,
  shareMore,
  totalWidth,
  type RowStorage,
  type RowBody,
  type RowTiling,
  type RowSpread,
} from './tiling.ts';

export interface RowOutline {
  readonly tiling: RowTiling;
  readonly passes: readonly RowSweep[];
  readonly perRow: readonly Write[];
  readonly perElement: readonly Write[];
  /** Reads that wait in workgroup memory. */
  readonly kept: readonly Expr[];
  readonly facts: RowFacts;
  /** Totals that workgroup memory has room for at once. */
  readonly joinsAtOnce: number;
}

/** The work of a row, however it is spread over invocations. */
export interface RowWork {
  readonly facts: RowFacts;
  /** One sweep for each reduction that waits for another. */
  readonly passes: readonly RowSweep[];
  readonly perRow: readonly Write[];
  readonly perElement: readonly Write[];
  /** What each sweep evaluates at every element. */
  readonly sweeps: readonly (readonly Expr[])[];
}

export function rowWork(kernel: Kernel): RowWork {
  if (kernel.body.kind !== 'row-reduction')
    throw new CompilerBug('row-reduction template', `got a ${kernel.body.kind} kernel`);
  const { column, stages } = kernel.body;
  const facts = rowFacts(kernel.pool, column.atom);
  const isAlong = (write: Write): boolean => atomsOf(write.index).includes(column.atom as never);
  const perElement = kernel.writes.filter(isAlong);
  const perRow = kernel.writes.filter((write) => !isAlong(write));
  const passes = planRow(stages, column.atom, facts, false);
  const sweeps = [
    ...passes.map((pass) => pass.items.map(elementOf)),
    perElement.map((write) => write.value),
  ].filter((exprs) => exprs.length > 0);
  return { facts, passes, perRow, perElement, sweeps };
}

/** Takes all these decisions for a kernel. */
export function outlineRow(kernel: Kernel, target: Target): RowOutline {
  if (kernel.body.kind !== 'row-reduction')
    throw new CompilerBug('row-reduction template', `got a ${kernel.body.kind} kernel`);
  const { column, stages, bound } = kernel.body;
  const { facts, passes: plain, perRow, perElement, sweeps } = rowWork(kernel);
  const { spread, keeping } = chooseSpread(kernel, kernel.body, sweeps, facts, target);
  const seats = { ...spread, width: totalWidth(spread.lanes) };
  const left = target.limits.workgroupBytes - (keeping === 'workgroup' ? target.rows.shared : 0);
  // A mean that is kept with the squares around it counts all elements of the row.
  const fuse = keeping === 'stream' && column.extent >= target.rows.fuse && bound === undefined;
  return {
    tiling: { ...spread, keeping },
    passes: fuse ? planRow(stages, column.atom, facts, true) : plain,
    perRow,
    perElement,
    kept: keeping === 'workgroup' ? keptReads(sweeps, facts) : [],
    joinsAtOnce: Math.max(1, Math.floor(left / joinBytes(seats, stages))),
    facts,
  };
}

/**
 * How rows are spread over invocations, and where elements wait between sweeps: more invocations
 * share a row where its elements then fit into registers.
 */
function chooseSpread(
  kernel: Kernel,
  body: RowBody,
  sweeps: readonly (readonly Expr[])[],
  facts: RowFacts,
  target: Target,
): { spread: RowSpread; keeping: RowStorage } {
  const spread = rowSpread(kernel, body, target);
  const keeping = rowKeeping(spread, body, sweeps, facts, target);
  if (keeping === 'registers' || sweeps.length < 2) return { spread, keeping };
  for (
    let wider = shareMore(spread, body, target);
    wider !== undefined;
    wider = shareMore(wider, body, target)
  )
    if (rowKeeping(wider, body, sweeps, facts, target) === 'registers')
      return { spread: wider, keeping: 'registers' };
  return { spread, keeping };
}
