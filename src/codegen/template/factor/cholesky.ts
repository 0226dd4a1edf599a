// Cholesky's factorisation of a matrix, a column at a time: the rows of a column subtract the
// products of what stands left of them (left-looking), then are divided by the root of the pivot.

import { addInts, constant, operation } from '../../loop/builder.ts';
import type { Loop, Value } from '../../loop/loop.ts';
import type { Frame } from '../shared/frame.ts';
import { Panel, type FactorBody } from './panel.ts';

/** Rows that share what is loaded of the pivot's row, where invocations run in turn. */
const together = 4;

export function choleskyLoop(frame: Frame, body: FactorBody): Loop {
  const n = body.operands[0]!.row.extent;
  const panel = new Panel(frame, body, n);
  const { b, type } = panel;
  const [first, end] = [constant(0), constant(n)];
  panel.each('i', first, end, (i) => {
    b.for('j', first, addInts(i, constant(1)), 1, (j) => panel.put(i, j, panel.operand(0, i, j)));
    b.for('j', addInts(i, constant(1)), end, 1, (j) => panel.put(i, j, panel.number(0)));
  });
  panel.wait();
  b.for('j', first, end, 1, (j) => {
    const next = b.let(addInts(j, constant(1)), 'next');
    if (panel.width === 1) panel.each('i', j, end, (i) => reduceRows(panel, [i], j));
    else inGroups(panel, j, end, (rows) => reduceRows(panel, rows, j));
    panel.wait();
    const pivot = panel.at(j, j);
    const positive = operation('lt', [panel.number(0), pivot], 'bool');
    const root = operation('where', [positive, operation('sqrt', [pivot], type), panel.number(NaN)], type);
    const diagonal = b.let(root, 'diagonal');
    panel.each('i', next, end, (i) => panel.put(i, j, operation('div', [panel.at(i, j), diagonal], type)));
    panel.wait();
    panel.once(() => panel.put(j, j, diagonal));
  });
  return panel.loop('column by column');
}

/** Rows from `start` up to `end`, a few at a time, then single ones. */
function inGroups(panel: Panel, start: Value, end: Value, visit: (rows: readonly Value[]) => void): void {
  const { b } = panel;
  const count = operation('sub', [end, start], 'i32');
  const rest = operation('and', [count, constant(together - 1)], 'i32');
  const split = b.let(operation('sub', [end, rest], 'i32'), 'split');
  b.for('i', start, split, together, (i) =>
    visit(Array.from({ length: together }, (_, r) => b.let(addInts(i, constant(r)), 'i'))),
  );
  b.for('i', split, end, 1, (i) => visit([i]));
}

/** Takes from column `j` of some rows Σ row · row j, over the columns before. */
function reduceRows(panel: Panel, rows: readonly Value[], j: Value): void {
  const { b, type } = panel;
  const sums = rows.map((i) => b.var('sum', panel.at(i, j)));
  const wide = panel.width === 1 ? [] : rows.map(() => b.var('wide', constant(0, type, 4)));
  panel.along(constant(0), j, (c, width) => {
    const other = panel.at(j, c, width);
    rows.forEach((i, r) => {
      const own = panel.at(i, c, width);
      if (width === 4) b.assign(wide[r]!, operation('fma', [own, other, wide[r]!], type));
      else b.assign(sums[r]!, operation('sub', [sums[r]!, operation('mul', [own, other], type)], type));
    });
  });
  rows.forEach((i, r) => {
    const vector = wide[r];
    const products = vector === undefined ? undefined : panel.lanes(b.let(vector, 'products'));
    panel.put(i, j, products === undefined ? sums[r]! : operation('sub', [sums[r]!, products], type));
  });
}
