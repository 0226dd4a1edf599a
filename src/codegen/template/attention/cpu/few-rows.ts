// Attention of few rows on a CPU core, as of the one row of a decoding step. Keys and values are read once and as they
// lie: packing them would take longer than the products. All scores come first, then the weights of each row, then the
// weighted sums, so that memory gives one operand after the other.

import { dtypeBytes } from '../../../../ir/dtype.ts';
import { addIndex, scaleIndex, type IndexExpr } from '../../../../ir/index-algebra/expr.ts';
import { argsOf, type Expr } from '../../../../schedule/expression/expr.ts';
import type { Axis, InnerProduct } from '../../../../schedule/kernel.ts';
import { groupsInRegister } from '../../../../schedule/machine.ts';
import type { Target } from '../../../../schedule/target.ts';
import { addInts, constant, mulInts, operation, splat } from '../../../loop/builder.ts';
import { rounded } from '../../../expression/convert.ts';
import { laneAtom, quadIndex } from '../../../expression/lowering.ts';
import type { Loop, LoopBuffer, Value } from '../../../loop/loop.ts';
import { laneOf } from '../../../loop/register.ts';
import { contiguousReads } from '../../contract/problem.ts';
import { eachOf, lanesAdded, multiplyAdd } from '../../contract/tile.ts';
import { roundedUp } from '../../contract/size.ts';
import type { FittingStrategy } from '../../shared/first-fit.ts';
import { finish, type Frame } from '../../shared/frame.ts';
import { columnsAt } from '../products.ts';
import type { Attention, AttentionRows } from '../rows.ts';
import { bytesOf, coreRows, isForCore, scratch, scratchAt } from './core.ts';
import { columnGroups, recall, writeColumns, type ColumnGroup } from './columns.ts';
import { coreRow, sizeOfStatistics, statisticsOf, type CoreMemory, type Statistics } from './packed-row.ts';

/** Rows for which nothing is packed: fewer where each reads keys that it has to convert itself. */
const mostRows = { plain: 8, converted: 2 };

export const fewRows: FittingStrategy<Attention> = {
  loop(frame, body) {
    const statistics = statisticsOf(body, frame.kernel.writes);
    return isForFew(body, statistics, frame.target) ? loopOf(frame, body, statistics) : undefined;
  },
};

function isForFew(body: Attention, statistics: Statistics, target: Target): boolean {
  const { row, key, inners, outers } = body;
  // Processors with wider registers have instructions that convert floats of 16 bits.
  const isPlain = target.vectors !== undefined || inners.every(({ ofKey }) => !readsNarrow(ofKey));
  const most = isPlain ? mostRows.plain : mostRows.converted;
  if (!isForCore(body, target) || row.extent > most) return false;
  const areLines =
    inners.every(({ depth, ofKey }) => depth.extent % 4 === 0 && isLine(ofKey, depth, key)) &&
    outers.every(({ column, value }) => isLine(value, column, key));
  if (!areLines) return false;
  return bytesOf(memoryOf(body, statistics)) <= target.limits.workgroupBytes;
}

/** Whether neighbours in memory run along an axis, not along the keys. */
function isLine(operand: Expr, axis: Axis, key: Axis): boolean {
  const along = contiguousReads(operand, axis);
  return along > 0 && along >= contiguousReads(operand, key);
}

/** Whether an operand is read from elements of fewer than 32 bits. */
function readsNarrow(operand: Expr, seen: Set<Expr> = new Set()): boolean {
  if (seen.has(operand)) return false;
  seen.add(operand);
  const own = operand.kind === 'read' && dtypeBytes(operand.node.dtype) < 4;
  return own || argsOf(operand).some((arg) => readsNarrow(arg, seen));
}

/** Keys that a row of scores has room for. */
const keyRoom = ({ key }: Attention): number => roundedUp(key.extent, 4);

function memoryOf(body: Attention, statistics: Statistics): readonly LoopBuffer[] {
  const { row, inners, outers } = body;
  const array = (name: string, size: number): LoopBuffer => scratch(name, row.extent * size);
  return [
    ...inners.map((_, i) => array(`scores_${i}`, keyRoom(body))),
    ...outers.map((_, i) => array(`weights_${i}`, keyRoom(body))),
    ...outers.map(({ column }, i) => array(`sums_${i}`, roundedUp(column.extent, 4))),
    array('statistics', Math.max(1, sizeOfStatistics(statistics))),
  ];
}

function loopOf(frame: Frame, body: Attention, statistics: Statistics): Loop {
  const { batch, row, key, inners } = body;
  const memory = memoryOf(body, statistics);
  const rows = coreRows(frame, body, row.extent, 1, memory);
  const { b } = rows;
  rows.begin((first) => {
    const [startQuad, endQuad] = rows.bounds(first, constant(row.extent - 1));
    const core: CoreMemory = {
      first,
      room: keyRoom(body),
      startQuad,
      endQuad,
      statistics,
      slotOf: (offset, quad) => addInts(mulInts(offset, constant(keyRoom(body))), mulInts(quad, constant(4))),
    };
    inners.forEach((inner, i) => scores(rows, core, inner, i));
    eachRow(rows, (offset) => coreRow(rows, core, offset));
    for (const group of columnGroups(body, frame.kernel.writes)) products(rows, core, group);
  });
  const note = `[${batch.extent}] ${row.extent} rows over ${key.extent} keys, nothing packed`;
  return finish(frame, b, rows.grid, rows.workgroup, note, memory);
}

/** Visits the rows by their numbers. */
function eachRow(rows: AttentionRows, visit: (offset: Value) => void): void {
  rows.b.for('row_of', constant(0), constant(rows.body.row.extent), 1, (offset) => {
    rows.stand(offset);
    visit(offset);
  });
}

/** Scores of all rows with four keys at a time. Rows that have registers for their sums share what is read of keys. */
function scores(
  rows: AttentionRows,
  memory: CoreMemory,
  { node, depth, ofRow, ofKey }: InnerProduct,
  i: number,
): void {
  const { b, body, frame } = rows;
  const step = quadIndex('depth_quad', depth.extent);
  const spread: readonly [IndexExpr, IndexExpr] = [depth.atom, addIndex(scaleIndex(step, 4), laneAtom)];
  const quads = depth.extent / 4;
  const atOnce = Math.min(groupsInRegister(frame.target), quads);
  const whole = quads - (quads % atOnce);
  const together = frame.target.vectors?.registers === 32 ? 4 : 2;
  const zero = constant(0, 'f32', 4);
  /** Adds the products of neighbouring steps, each to its own sum of a row and a key. */
  const add = (
    offsets: readonly Value[],
    keys: readonly Value[],
    sums: readonly (readonly (readonly Value[])[])[],
    first: Value,
  ): void => {
    const steps = sums[0]![0]!.map((_, j) => b.let(addInts(first, constant(j)), 'depth_quad'));
    const own = offsets.map((offset) => {
      rows.stand(offset);
      return steps.map((d) => b.let(splat(rows.lowering([[step, d]], [spread]).value(ofRow), 4), 'own'));
    });
    keys.forEach((at, lane) => {
      const others = steps.map((d) => {
        const atoms = [[step, d] as const, [body.key.atom, at] as const];
        return b.let(splat(rows.lowering(atoms, [spread]).value(ofKey), 4), 'other');
      });
      sums.forEach((line, r) =>
        line[lane]!.forEach((sum, j) => b.assign(sum, multiplyAdd(own[r]![j]!, others[j]!, sum))),
      );
    });
  };
  b.for('quad', memory.startQuad, memory.endQuad, 1, (quad) => {
    const keys = [0, 1, 2, 3].map((lane) => rows.keyAt(quad, constant(lane)).key);
    for (let from = 0; from < body.row.extent; from += together) {
      const count = Math.min(together, body.row.extent - from);
      const offsets = Array.from({ length: count }, (_, r) => constant(from + r));
      const sums = offsets.map(() =>
        keys.map(() => Array.from({ length: atOnce }, () => b.var('dot', zero))),
      );
      b.for('d', constant(0), constant(whole), atOnce, (d) => add(offsets, keys, sums, d));
      const lines = sums.map((line) =>
        line.map((own) => own.reduce((x, y) => b.let(operation('add', [x, y], 'f32'), 'dot'))),
      );
      const all = whole === quads ? lines : lines.map((line) => line.map((sum) => b.var('dot', sum)));
      if (whole < quads)
        b.for('d', constant(whole), constant(quads), 1, (d) =>
          add(
            offsets,
            keys,
            all.map((line) => line.map((sum) => [sum])),
            d,
          ),
        );
      all.forEach((line, r) => {
        const score = b.let(rounded(lanesAdded(b, line), node.dtype), 'score');
        b.store(`scores_${i}`, memory.slotOf(offsets[r]!, quad), score, true);
      });
    }
  });
}

/** The weighted sums over one column axis, to which four keys are added at a time, and what is written of them. */
function products(rows: AttentionRows, memory: CoreMemory, group: ColumnGroup): void {
  const { b, body } = rows;
  const { key, row } = body;
  const { column } = group;
  const quads = Math.ceil(column.extent / 4);
  const offsets = Array.from({ length: row.extent }, (_, offset) => constant(offset));
  const slot = (offset: Value, quad: Value): Value =>
    mulInts(addInts(mulInts(offset, constant(quads)), quad), constant(4));
  const eachQuads = eachOf(b, constant(0), constant(quads), groupsInRegister(rows.frame.target));
  eachQuads((columns) => {
    for (const { i } of group.products)
      for (const offset of offsets)
        for (const quad of columns) b.store(`sums_${i}`, slot(offset, quad), constant(0, 'f32', 4), true);
  });
  const add = (keys: readonly Value[], weightsOf: (i: number, offset: Value) => readonly Value[]): void => {
    for (const { outer, i } of group.products) {
      const weights = offsets.map((offset) =>
        weightsOf(i, offset).map((one) => b.let(splat(one, 4), 'weight')),
      );
      eachQuads((columns) => {
        const values = columns.map((quad) =>
          keys.map((at) => b.let(splat(columnsAt(rows, column, quad, at).value(outer.value), 4), 'value')),
        );
        offsets.forEach((offset, r) => {
          const sums = columns.map((quad, c) =>
            weights[r]!.reduce<Value>(
              (sum, weight, k) => multiplyAdd(weight, values[c]![k]!, sum),
              scratchAt(`sums_${i}`, slot(offset, quad), 4),
            ),
          );
          sums.forEach((sum, c) => b.store(`sums_${i}`, slot(offset, columns[c]!), sum, true));
        });
      });
    }
  };
  // Four keys at a time exist as long as quads are whole: nothing is read in place of others.
  const whole = Math.floor(key.extent / 4);
  const end = operation('min', [memory.endQuad, constant(whole)], 'i32');
  b.for('quad', memory.startQuad, b.let(end, 'whole_quads'), 1, (quad) => {
    const keys = [0, 1, 2, 3].map((lane) => rows.keyAt(quad, constant(lane)).key);
    add(keys, (i, offset) => {
      const four = b.let(scratchAt(`weights_${i}`, memory.slotOf(offset, quad), 4), 'weights');
      return keys.map((_, lane) => laneOf(four, lane));
    });
  });
  if (key.extent % 4 !== 0) {
    const behind = operation('min', [mulInts(memory.endQuad, constant(4)), constant(key.extent)], 'i32');
    b.for('key', constant(4 * whole), b.let(behind, 'end_key'), 1, (at) =>
      add([at], (i, offset) => [
        scratchAt(`weights_${i}`, addInts(memory.slotOf(offset, constant(0)), at), 1),
      ]),
    );
  }
  eachRow(rows, (offset) => {
    recall(rows, memory, offset);
    b.for('column_quad', constant(0), constant(quads), 1, (quad) => {
      const sums = group.products.map(({ i }) => b.let(scratchAt(`sums_${i}`, slot(offset, quad), 4), 'sum'));
      writeColumns(rows, memory, group, offset, quad, sums);
    });
  });
}
