// What the workgroups of a product compute of their rows before they multiply: reductions over rows of the left
// operand, as the mean square of a norm. All invocations of a workgroup share each row; all get the results.

import type { Node } from '../../../../ir/graph.ts';
import { addIndex, scaleIndex, type IndexExpr } from '../../../../ir/index-algebra/expr.ts';
import type { RepeatedStage } from '../../../../schedule/kernel.ts';
import type { Target } from '../../../../schedule/target.ts';
import { constant, type LoopBuilder } from '../../../loop/builder.ts';
import { rounded } from '../../../expression/convert.ts';
import { laneAtom, Lowering, quadIndex, registerOf } from '../../../expression/lowering.ts';
import type { LoopBuffer, Value } from '../../../loop/loop.ts';
import { contiguousReads, type Contract } from '../problem.ts';
import { bufferName, type Frame } from '../../shared/frame.ts';
import { filledSubgroup, Join, joinBytes, joinNames, type Ask } from '../../shared/join.ts';
import { combine, combineLanes, identity } from '../../shared/monoid.ts';

/** Results of the stages for one row. */
export type RowResults = ReadonlyMap<Node, Value>;

/** Names of the workgroup arrays that stages may use. */
export const stageBuffers: readonly string[] = joinNames;

/** Workgroup memory in which so many invocations join a value of each, of any type. */
export function stageBytes(invocations: number): number {
  return 2 * invocations * 8;
}

interface Place {
  /** The batch of the workgroup, and the rows of its tile. */
  readonly group: Value;
  readonly rows: readonly Value[];
  /** This invocation among those of the workgroup. */
  readonly part: Value;
  readonly parts: number;
  /** Bytes of workgroup memory that are left. */
  readonly left: number;
}

/** Computes the stages of a product for every row, in uniform control flow; the arrays are what it used. */
export function stageResults(
  b: LoopBuilder,
  frame: Frame,
  body: Contract,
  { group, rows, part, parts, left }: Place,
): { readonly ofRows: readonly RowResults[]; readonly arrays: readonly LoopBuffer[] } {
  const { stages = [] } = body;
  const results = rows.map(() => new Map<Node, Value>());
  const join = new Join(b, {
    parts,
    rows: 1,
    part,
    place: constant(0),
    together: true,
    width: 1,
    atOnce: Math.max(1, Math.floor(left / Math.max(1, joinBytes({ parts, rows: 1, width: 1 }, stages)))),
    subgroup: filledSubgroup(frame.target, { stages }),
  });
  const last = Math.max(-1, ...stages.map(({ pass }) => pass));
  for (let pass = 0; pass <= last; pass++) {
    const own = stages.filter((stage) => stage.pass === pass);
    const asks = own.flatMap((stage) => partsOf(stage));
    const totals = join.all(asks);
    own.forEach((stage, s) =>
      results.forEach((result, i) => {
        const total = rounded(totals[s * rows.length + i]!, stage.dtype);
        result.set(stage.node as Node, b.let(total, `row_${stage.monoid}`));
      }),
    );
  }
  return { ofRows: results, arrays: join.buffers };

  /** What this invocation has of a stage, row by row: every parts-th element, or group of four. */
  function partsOf(stage: RepeatedStage): Ask[] {
    const { column, monoid, value, dtype } = stage;
    const isVector = column.extent % 4 === 0 && contiguousReads(value, column) > 0;
    const [type, width] = [registerOf(dtype), isVector ? 4 : 1] as const;
    const sums = rows.map(() => b.var(monoid, identity(monoid, type, width)));
    const steps = column.extent / width;
    b.for('step', part, constant(steps), parts, (step) =>
      rows.forEach((row, i) => {
        const term = at(stage, row, step, isVector, results[i]!).value(value);
        b.assign(sums[i]!, combine(monoid, sums[i]!, term));
      }),
    );
    return sums.map((sum) => ({ monoid, value: combineLanes(b, monoid, sum, monoid) }));
  }

  function at(
    { column }: RepeatedStage,
    row: Value,
    step: Value,
    isVector: boolean,
    known: RowResults,
  ): Lowering {
    const quad = quadIndex(`${column.name}_quad`, column.extent);
    const atoms = new Map<IndexExpr, Value>([
      [body.batch.atom, group],
      [body.m.atom, row],
      [isVector ? quad : column.atom, step],
    ]);
    const substitution = new Map<IndexExpr, IndexExpr>();
    if (isVector) substitution.set(column.atom, addIndex(scaleIndex(quad, 4), laneAtom));
    const lowering = new Lowering(b, frame.kernel.pool, { substitution, atoms }, bufferName(frame));
    for (const [node, result] of known) lowering.results.set(node, result);
    return lowering;
  }
}

/** Whether workgroup memory has room for the sums of a product and for its stages. */
export function hasRoom(
  bytes: number,
  invocations: number,
  stages: number | undefined,
  { limits }: Target,
): boolean {
  return bytes + (stages === undefined ? 0 : stageBytes(invocations)) <= limits.workgroupBytes;
}
