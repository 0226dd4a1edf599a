// Gaussian elimination where an invocation has a matrix for itself, a panel of columns after the other
// (left-looking): a panel first loses what the columns on its left take from it, by products of tiles,
// and is then eliminated column by column. Rows are exchanged in the whole matrix at once.

import { addInts, constant, less, operation, splat } from '../../../loop/builder.ts';
import type { Loop, Value } from '../../../loop/loop.ts';
import { panelWidth } from '../../../../schedule/factor-panels.ts';
import type { Frame } from '../../shared/frame.ts';
import { Panel, type FactorBody } from '../panel.ts';
import { PanelColumns, filled, inPairs, lanesFrom, products, written } from './tile.ts';

export function luByPanels(frame: Frame, body: FactorBody): Loop {
  const { row, column } = body.operands[0]!;
  const [m, n] = [row.extent, column.extent];
  const k = Math.min(m, n);
  const width = panelWidth(body.node.dtype);
  const panel = new Panel(frame, body, 1, { memory: { panel: m * width } });
  const columns = new PanelColumns(panel, 'panel', width);
  const { b, type } = panel;
  const [zero, rows] = [constant(0), constant(m)];
  b.for('i', zero, rows, 1, (i) => {
    panel.along(zero, constant(n), (c, wide) => panel.put(i, c, panel.operand(0, i, c, wide)));
    panel.put(i, constant(n), operation('cast', [i], type));
    panel.put(i, constant(n + 1), panel.number(0));
  });
  b.for('first', zero, constant(n), width, (first) => {
    const source = { first, columns: n, start: zero, end: rows };
    filled(panel, columns, source, (i, c, wide) => panel.at(i, c, wide));
    // Columns on the left that are eliminated with.
    const done = b.let(operation('min', [first, constant(k)], 'i32'), 'done');
    inPairs(panel, zero, m, (lines) => reduced(panel, columns, lines, done));
    const left = b.let(operation('sub', [constant(k), first], 'i32'), 'left');
    for (let quad = 0; quad < columns.quads; quad++) {
      const end = operation('min', [left, constant(4 * quad + 4)], 'i32');
      b.for('c', constant(4 * quad), end, 1, (c) => eliminated(panel, columns, first, c, quad, [m, n]));
    }
    written(panel, columns, source, (i, c, value) => panel.put(i, c, value));
  });
  return panel.loop(`${width} columns at a time, rows exchanged`);
}

/** Takes from rows what the columns on the left, `done` of them, take: rows of U are finished by it. */
function reduced(panel: Panel, columns: PanelColumns, lines: readonly Value[], done: Value): void {
  const { b, type } = panel;
  const upper = lines[0]!;
  const steps = b.let(operation('min', [upper, done], 'i32'), 'steps');
  const sums = products(panel, columns, lines.length, steps, (r, step) => panel.at(lines[r]!, step));
  const rest = sums.map((line, r) =>
    line.map((sum, q) => b.let(operation('sub', [columns.quad(lines[r]!, q), sum], type), 'rest')),
  );
  rest.forEach((line, r) => line.forEach((value, q) => columns.keepQuad(lines[r]!, q, value)));
  const lower = lines[1];
  if (lower === undefined) return;
  // A row of U is what the next one is reduced by.
  b.if(less(upper, done), () => {
    const share = b.let(splat(panel.at(lower, upper), 4), 'share');
    rest[1]!.forEach((value, q) =>
      columns.keepQuad(
        lower,
        q,
        operation('sub', [value, operation('mul', [share, rest[0]![q]!], type)], type),
      ),
    );
  });
}

/** Column `c` of a panel, which is in its vectors from `quad` on, brings its greatest element up and is eliminated. */
function eliminated(
  panel: Panel,
  columns: PanelColumns,
  first: Value,
  c: Value,
  quad: number,
  [m, n]: readonly [number, number],
): void {
  const { b, type } = panel;
  const rows = constant(m);
  const j = b.let(addInts(first, c), 'j');
  const next = b.let(addInts(j, constant(1)), 'next');
  const size = (i: Value): Value => operation('abs', [columns.at(i, c)], type);
  const best = b.var('best', size(j));
  const place = b.var('place', j);
  b.for('i', next, rows, 1, (i) => {
    const here = b.let(size(i), 'size');
    b.if(operation('lt', [best, here], 'bool'), () => {
      b.assign(best, here);
      b.assign(place, i);
    });
  });
  const pivotRow = b.let(place, 'pivot_row');
  panel.put(j, constant(n + 1), operation('cast', [pivotRow], type));
  b.if(less(j, pivotRow), () => {
    for (let q = 0; q < columns.quads; q++) {
      const [upper, lower] = [columns.quad(j, q), columns.quad(pivotRow, q)];
      columns.keepQuad(j, q, lower);
      columns.keepQuad(pivotRow, q, upper);
    }
    // What was eliminated on the left, what comes on the right, and which row it is.
    panel.along(constant(0), constant(n + 1), (at, wide) => {
      const [upper, lower] = [panel.at(j, at, wide), panel.at(pivotRow, at, wide)];
      panel.put(j, at, lower);
      panel.put(pivotRow, at, upper);
    });
  });
  const pivot = columns.at(j, c);
  // Without a pivot the column holds zeros, and nothing is eliminated.
  const none = operation('eq', [pivot, panel.number(0)], 'bool');
  const divisor = b.let(operation('where', [none, panel.number(1), pivot], type), 'divisor');
  const pivots = Array.from({ length: columns.quads - quad }, (_, q) => columns.quad(j, quad + q));
  const lanes = lanesFrom(4 * quad);
  const isRight = b.let(operation('lt', [c, lanes], 'bool'), 'is_right');
  const isOwn = b.let(operation('eq', [c, lanes], 'bool'), 'is_own');
  b.for('i', next, rows, 1, (i) => {
    const scale = b.let(splat(operation('div', [columns.at(i, c), divisor], type), 4), 'scale');
    pivots.forEach((value, q) => {
      const own = columns.quad(i, quad + q);
      const rest = b.let(operation('sub', [own, operation('mul', [scale, value], type)], type), 'rest');
      const kept = operation('where', [isOwn, scale, own], type);
      columns.keepQuad(i, quad + q, q > 0 ? rest : operation('where', [isRight, rest, kept], type));
    });
  });
}
