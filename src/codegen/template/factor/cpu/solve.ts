// Forward substitution where invocations run in turn: each has some panels of right-hand sides, and
// goes down the triangle two rows at a time, which lose what the rows above take by products of tiles.
// Rows of the triangle, which may be read from anywhere, are packed once for all panels.

import { addInts, constant, mulInts, operation, splat } from '../../../loop/builder.ts';
import type { Loop, Value } from '../../../loop/loop.ts';
import { packedRows, panelWidth, sidesTogether } from '../../../../schedule/factor-panels.ts';
import type { Frame } from '../../shared/frame.ts';
import { Panel, type FactorBody } from '../panel.ts';
import { PanelColumns, filled, products, written } from './tile.ts';

export function solveByPanels(frame: Frame, body: FactorBody, unit: boolean): Loop {
  const [n, all] = [body.operands[0]!.row.extent, body.operands[1]!.column.extent];
  const width = panelWidth(body.node.dtype);
  const panels = Math.min(Math.ceil(all / width), Math.floor(sidesTogether / width));
  const parts = Math.ceil(all / (panels * width));
  const memory = { sides: panels * n * width, triangle: packedRows * n };
  const panel = new Panel(frame, body, 1, { memory, parts });
  const { b } = panel;
  const [zero, rows] = [constant(0), constant(n)];
  const firstColumn = b.let(mulInts(panel.part, constant(panels * width)), 'first_column');
  /** The panels of this workgroup: fewer in the last one. */
  const eachPanel = (visit: (columns: PanelColumns, first: Value) => void): void => {
    const left = operation('sub', [constant(all + width - 1), firstColumn], 'i32');
    const own = operation('min', [operation('div', [left, constant(width)], 'i32'), constant(panels)], 'i32');
    const count = all % (panels * width) === 0 ? constant(panels) : b.let(own, 'panels');
    b.for('panel', zero, count, 1, (p) => {
      const start = b.let(mulInts(p, constant(n * width)), 'start');
      const first = b.let(addInts(firstColumn, mulInts(p, constant(width))), 'first');
      visit(new PanelColumns(panel, 'sides', width, start), first);
    });
  };
  const source = (first: Value) => ({ first, columns: all, start: zero, end: rows });
  eachPanel((columns, first) =>
    filled(panel, columns, source(first), (i, c, wide) => panel.operand(1, i, c, wide)),
  );
  const solved = (columns: PanelColumns, lines: readonly Value[], from: Value): void => {
    const place = (i: Value, c: Value): Value =>
      addInts(mulInts(operation('sub', [i, from], 'i32'), constant(n)), c);
    const triangle = (i: Value, c: Value): Value => panel.held('triangle', place(i, c));
    substituted(panel, columns, lines, triangle, unit);
  };
  b.for('from', zero, rows, packedRows, (from) => {
    const end = b.let(operation('min', [addInts(from, constant(packedRows)), rows], 'i32'), 'end');
    b.for('i', from, end, 1, (i) => {
      const line = b.let(mulInts(operation('sub', [i, from], 'i32'), constant(n)), 'line');
      panel.along(zero, end, (c, wide) =>
        panel.keep('triangle', addInts(line, c), panel.operand(0, i, c, wide)),
      );
    });
    const paired = operation('min', [end, constant(n - (n % 2))], 'i32');
    eachPanel((columns) =>
      b.for('i', from, paired, 2, (i) => solved(columns, [i, b.let(addInts(i, constant(1)), 'lower')], from)),
    );
  });
  // The last row of the triangle is packed still.
  if (n % 2 === 1) {
    const from = constant(packedRows * Math.floor((n - 1) / packedRows));
    eachPanel((columns) => solved(columns, [constant(n - 1)], from));
  }
  eachPanel((columns, first) =>
    written(panel, columns, source(first), (i, c, value) => panel.put(i, c, value)),
  );
  return panel.loop(`${all} right-hand sides, ${panels * width} in a workgroup`);
}

/** Rows of X, from those above. */
function substituted(
  panel: Panel,
  columns: PanelColumns,
  lines: readonly Value[],
  triangle: (i: Value, c: Value) => Value,
  unit: boolean,
): void {
  const { b, type } = panel;
  const sums = products(panel, columns, lines.length, lines[0]!, (r, step) => triangle(lines[r]!, step));
  let above: readonly Value[] = [];
  lines.forEach((i, r) => {
    const share = r === 0 ? undefined : b.let(splat(triangle(i, lines[0]!), 4), 'share');
    const pivot = unit ? undefined : b.let(splat(triangle(i, i), 4), 'pivot');
    const found = sums[r]!.map((sum, q) => {
      const lost = b.let(operation('sub', [columns.quad(i, q), sum], type), 'rest');
      const rest =
        share === undefined
          ? lost
          : operation('sub', [lost, operation('mul', [share, above[q]!], type)], type);
      return b.let(pivot === undefined ? rest : operation('div', [rest, pivot], type), 'x');
    });
    found.forEach((value, q) => columns.keepQuad(i, q, value));
    above = found;
  });
}
