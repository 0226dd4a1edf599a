// Cholesky's factorisation where an invocation has a matrix for itself, a panel of columns after the other
// (left-looking): what the columns on its left take is products of tiles. A panel's rows below its own
// triangle are then solved with it, four rows at a time in the lanes of vectors.

import { addInts, constant, mulInts, operation, splat } from '../../../loop/builder.ts';
import type { Loop, Value } from '../../../loop/loop.ts';
import { panelWidth } from '../../../../schedule/factor-panels.ts';
import type { Frame } from '../../shared/frame.ts';
import { transposed } from '../../shared/transpose.ts';
import { Panel, type FactorBody } from '../panel.ts';
import { PanelColumns, filled, inPairs, lanesFrom, products, written } from './tile.ts';

export function choleskyByPanels(frame: Frame, body: FactorBody): Loop {
  const n = body.operands[0]!.row.extent;
  const width = panelWidth(body.node.dtype);
  // Groups of four rows end past the last row.
  const memory = { panel: (n + 3) * width, above: n * width, corner: width * width };
  const panel = new Panel(frame, body, 1, { memory });
  const columns = new PanelColumns(panel, 'panel', width);
  const above = new PanelColumns(panel, 'above', width);
  const { b, type } = panel;
  const [zero, rows] = [constant(0), constant(n)];
  b.for('i', rows, constant(n + 3), 1, (i) => {
    for (let q = 0; q < columns.quads; q++) columns.keepQuad(i, q, constant(0, type, 4));
  });
  for (let at = 0; at < width * width; at += 4) panel.keep('corner', constant(at), constant(0, type, 4));
  b.for('first', zero, rows, width, (first) => {
    // The panel's own rows of what is finished, turned round.
    const own = Array.from({ length: width }, (_, c) =>
      b.let(operation('min', [addInts(first, constant(c)), constant(n - 1)], 'i32'), 'own'),
    );
    for (let q = 0; q < columns.quads; q++)
      b.for('k', zero, first, 4, (k) =>
        transposed(
          b,
          own.slice(4 * q, 4 * q + 4).map((i) => panel.at(i, k, 4)),
        ).forEach((value, at) => above.keepQuad(addInts(k, constant(at)), q, value)),
      );
    const source = { first, columns: n, start: first, end: rows };
    filled(panel, columns, source, (i, c, wide) => panel.operand(0, i, c, wide));
    inPairs(panel, first, n, (lines) => {
      const sums = products(panel, above, lines.length, first, (r, step) => panel.at(lines[r]!, step));
      sums.forEach((line, r) =>
        line.forEach((sum, q) =>
          columns.keepQuad(lines[r]!, q, operation('sub', [columns.quad(lines[r]!, q), sum], type)),
        ),
      );
    });
    const last = b.let(operation('min', [addInts(first, constant(width)), rows], 'i32'), 'last');
    factored(panel, columns, first, last);
    b.for('i', last, rows, 4, (i) => divided(panel, columns, i));
    // Zeros above.
    const right = b.let(last, 'right');
    b.for('i', zero, first, 1, (i) =>
      panel.along(first, right, (c, wide) => panel.put(i, c, constant(0, type, wide))),
    );
    written(panel, columns, source, (i, c, value) => panel.put(i, c, value));
    b.for('i', first, last, 1, (i) =>
      b.for('c', addInts(i, constant(1)), right, 1, (c) => panel.put(i, c, panel.number(0))),
    );
  });
  return panel.loop(`${width} columns at a time`);
}

/**
 * The triangle on the diagonal, in the panel's rows from `first` up to `last`; its transpose is `corner`, with
 * reciprocals on the diagonal.
 */
function factored(panel: Panel, columns: PanelColumns, first: Value, last: Value): void {
  const { b } = panel;
  const count = b.let(operation('sub', [last, first], 'i32'), 'count');
  for (let quad = 0; quad < columns.quads; quad++) {
    const end = operation('min', [count, constant(4 * quad + 4)], 'i32');
    b.for('c', constant(4 * quad), end, 1, (c) => oneColumn(panel, columns, c, quad, { first, last, count }));
  }
}

/** Column `c`, which is in the vectors from `quad` on, and what it takes from those on its right. */
function oneColumn(
  panel: Panel,
  columns: PanelColumns,
  c: Value,
  quad: number,
  { first, last, count }: { readonly first: Value; readonly last: Value; readonly count: Value },
): void {
  const { b, type } = panel;
  const j = b.let(addInts(first, c), 'j');
  const next = b.let(addInts(c, constant(1)), 'next');
  const pivot = columns.at(j, c);
  const positive = operation('lt', [panel.number(0), pivot], 'bool');
  const root = operation('where', [positive, operation('sqrt', [pivot], type), panel.number(NaN)], type);
  const diagonal = b.let(root, 'diagonal');
  const line = b.let(mulInts(c, constant(columns.width)), 'line');
  // A root is never so small that its reciprocal leaves the range of the dtype.
  const inverse = b.let(operation('div', [panel.number(1), diagonal], type), 'inverse');
  panel.keep('corner', addInts(line, c), inverse);
  columns.keep(j, c, diagonal);
  b.for('d', next, count, 1, (d) => {
    const i = b.let(addInts(first, d), 'i');
    const value = b.let(operation('mul', [columns.at(i, c), inverse], type), 'value');
    columns.keep(i, c, value);
    panel.keep('corner', addInts(line, d), value);
  });
  const isRight = b.let(operation('lt', [c, lanesFrom(4 * quad)], 'bool'), 'is_right');
  const taken = Array.from({ length: columns.quads - quad }, (_, q) =>
    panel.held('corner', addInts(line, constant(4 * (quad + q))), 4),
  );
  b.for('i', b.let(addInts(first, next), 'below'), last, 1, (i) => {
    const scale = b.let(splat(columns.at(i, c), 4), 'scale');
    taken.forEach((value, q) => {
      const own = columns.quad(i, quad + q);
      const rest = operation('sub', [own, operation('mul', [scale, value], type)], type);
      columns.keepQuad(i, quad + q, q > 0 ? rest : operation('where', [isRight, rest, own], type));
    });
  });
}

/** Four rows below a whole triangle, divided by it. */
function divided(panel: Panel, columns: PanelColumns, i: Value): void {
  const { b, type } = panel;
  const rows = [0, 1, 2, 3].map((r) => b.let(addInts(i, constant(r)), 'row'));
  const corner = (d: number, c: number): Value =>
    splat(panel.held('corner', constant(d * columns.width + c)), 4);
  const found: Value[] = [];
  for (let q = 0; q < columns.quads; q++) {
    const turned = transposed(
      b,
      rows.map((row) => columns.quad(row, q)),
    );
    turned.forEach((value, at) => {
      const c = 4 * q + at;
      const rest = found.reduce(
        (left, x, d) =>
          b.let(operation('sub', [left, operation('mul', [x, corner(d, c)], type)], type), 'rest'),
        value,
      );
      found.push(b.let(operation('mul', [rest, corner(c, c)], type), 'x'));
    });
    transposed(b, found.slice(4 * q)).forEach((value, r) => columns.keepQuad(rows[r]!, q, value));
  }
}
