// Gaussian elimination of a panel, a column at a time: the greatest element below the diagonal is
// brought onto it by exchanging rows, the column is divided by it, and the columns right of it
// lose their share. A column of the result tells which row of the operand each row was.

import { addInts, constant, operation, splat } from '../../loop/builder.ts';
import type { Loop, Value } from '../../loop/loop.ts';
import type { Frame } from '../shared/frame.ts';
import { Panel, piecesOf, widest, type FactorBody } from './panel.ts';

export function luLoop(frame: Frame, body: FactorBody): Loop {
  const { row, column } = body.operands[0]!;
  const [m, n] = [row.extent, column.extent];
  const panel = new Panel(frame, body, m);
  const { b, type } = panel;
  const [first, rows, columns] = [constant(0), constant(m), constant(n)];
  const number = (i: Value): Value => operation('cast', [i], type);
  panel.each('i', first, rows, (i) => {
    panel.along(first, columns, (c, width) => panel.put(i, c, panel.operand(0, i, c, width)));
    panel.put(i, columns, number(i));
    panel.put(i, constant(n + 1), panel.number(0));
  });
  panel.wait();
  b.for('j', first, constant(Math.min(m, n)), 1, (j) => {
    const next = b.let(addInts(j, constant(1)), 'next');
    const size = (i: Value): Value => operation('abs', [panel.at(i, j)], type);
    const best = b.var('best', size(j));
    const at = b.var('at', j);
    panel.each('i', next, rows, (i) => {
      const here = b.let(size(i), 'size');
      b.if(operation('lt', [best, here], 'bool'), () => {
        b.assign(best, here);
        b.assign(at, i);
      });
    });
    const found = panel.placeOfGreatest(best, at);
    // Whatever the elements are (NaN is no greatest), a row of the matrix.
    const inside = operation('min', [operation('max', [found, first], 'i32'), constant(m - 1)], 'i32');
    const pivotRow = b.let(inside, 'pivot_row');
    panel.each('c', first, constant(n + 1), (c) => {
      const [upper, lower] = [panel.at(j, c), panel.at(pivotRow, c)];
      panel.put(j, c, lower);
      panel.put(pivotRow, c, upper);
    });
    panel.once(() => panel.put(j, constant(n + 1), number(pivotRow)));
    panel.wait();
    const pivot = panel.at(j, j);
    // Without a pivot the column holds zeros, and nothing is eliminated.
    const none = operation('eq', [pivot, panel.number(0)], 'bool');
    const divisor = b.let(operation('where', [none, panel.number(1), pivot], type), 'divisor');
    const eliminated =
      panel.width === 4 && n <= widest ? inRegisters(panel, n, j) : fromMemory(panel, next, columns, j);
    panel.each('i', next, rows, (i) => {
      const scale = b.let(operation('div', [panel.at(i, j), divisor], type), 'scale');
      panel.put(i, j, scale);
      eliminated(i, scale);
    });
    panel.wait();
  });
  return panel.loop('column by column, rows exchanged');
}

type Eliminate = (i: Value, scale: Value) => void;

/** Takes a multiple of row `j` from columns right of it. */
function fromMemory(panel: Panel, next: Value, columns: Value, j: Value): Eliminate {
  const { type } = panel;
  return (i, scale) =>
    panel.along(next, columns, (c, width) => {
      const lost = operation('mul', [scale, panel.at(j, c, width)], type);
      panel.put(i, c, operation('sub', [panel.at(i, c, width), lost], type));
    });
}

/** The same of a few columns, all of them: row `j` stays in registers, with zeros up to column j. */
function inRegisters(panel: Panel, n: number, j: Value): Eliminate {
  const { b, type } = panel;
  const pieces = piecesOf(n).map(({ start, width, places }) => {
    const c = constant(start);
    const right = operation('lt', [j, places], 'bool');
    const row = operation('where', [right, panel.at(j, c, width), constant(0, type, width)], type);
    return { c, width, row: b.let(row, 'pivots') };
  });
  return (i, scale) => {
    const spread = b.let(splat(scale, 4), 'spread');
    const values = pieces.map(({ c, width, row }) => {
      const lost = operation('mul', [width === 4 ? spread : scale, row], type);
      return b.let(operation('sub', [panel.at(i, c, width), lost], type), 'value');
    });
    pieces.forEach(({ c }, p) => panel.put(i, c, values[p]!));
  };
}

/** The order of rows after exchanges, one invocation a matrix. */
export function exchangesLoop(frame: Frame, body: FactorBody): Loop {
  const m = body.operands[0]!.row.extent;
  const panel = new Panel(frame, body, 1);
  const { b, type } = panel;
  const zero = constant(0);
  b.for('i', zero, constant(m), 1, (i) => panel.put(i, zero, operation('cast', [i], type)));
  b.for('i', zero, constant(m), 1, (i) => {
    const asked = operation('cast', [panel.operand(0, i, zero)], 'i32');
    const inside = operation('min', [operation('max', [asked, zero], 'i32'), constant(m - 1)], 'i32');
    const at = b.let(inside, 'other');
    const [here, there] = [panel.at(i, zero), panel.at(at, zero)];
    panel.put(i, zero, there);
    panel.put(at, zero, here);
  });
  return panel.loop('one exchange after the other');
}
