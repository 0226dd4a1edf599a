// Gaussian elimination of a panel, a column at a time: the greatest element below the diagonal is
// brought onto it by exchanging rows, the column is divided by it, and the columns right of it
// lose their share. A column of the result tells which row of the operand each row was. What real and
// complex numbers differ in is what a pivot is measured by, and how a row loses its share.

import { addInts, constant, operation, splat } from '../../loop/builder.ts';
import type { Loop, Value } from '../../loop/loop.ts';
import type { Frame } from '../shared/frame.ts';
import { Numbers, type ComplexRegisters } from './numbers.ts';
import { Panel, piecesOf, widest, type FactorBody } from './panel.ts';

/** What elimination does with the numbers of a panel. */
interface Pivoting {
  /** What pivots are chosen by. */
  readonly size: (i: Value, j: Value) => Value;
  /** Of row `j`, which has the pivot: takes its share from a row below. */
  readonly eliminate: (j: Value, next: Value) => (i: Value) => void;
}

/** Elimination of a panel whose numbers stand in `parts` columns each, apart by all columns of a part. */
function eliminationLoop(
  frame: Frame,
  body: FactorBody,
  parts: 1 | 2,
  pivotingOf: (panel: Panel, n: number) => Pivoting,
  note: string,
): Loop {
  const { row, column } = body.operands[0]!;
  const [m, n, width] = [row.extent, column.extent / parts, column.extent];
  const panel = new Panel(frame, body, m);
  const { b, type } = panel;
  const { size, eliminate } = pivotingOf(panel, n);
  const [first, rows, all] = [constant(0), constant(m), constant(width)];
  const number = (i: Value): Value => operation('cast', [i], type);
  panel.each('i', first, rows, (i) => {
    panel.along(first, all, (c, lanes) => panel.put(i, c, panel.operand(0, i, c, lanes)));
    panel.put(i, all, number(i));
    panel.put(i, constant(width + 1), panel.number(0));
  });
  panel.wait();
  b.for('j', first, constant(Math.min(m, n)), 1, (j) => {
    const next = b.let(addInts(j, constant(1)), 'next');
    const best = b.var('best', size(j, j));
    const at = b.var('at', j);
    panel.each('i', next, rows, (i) => {
      const here = b.let(size(i, j), 'size');
      b.if(operation('lt', [best, here], 'bool'), () => {
        b.assign(best, here);
        b.assign(at, i);
      });
    });
    const found = panel.placeOfGreatest(best, at);
    // Whatever the elements are (NaN is no greatest), a row of the matrix.
    const inside = operation('min', [operation('max', [found, first], 'i32'), constant(m - 1)], 'i32');
    const pivotRow = b.let(inside, 'pivot_row');
    panel.each('c', first, constant(width + 1), (c) => {
      const [upper, lower] = [panel.at(j, c), panel.at(pivotRow, c)];
      panel.put(j, c, lower);
      panel.put(pivotRow, c, upper);
    });
    panel.once(() => panel.put(j, constant(width + 1), number(pivotRow)));
    panel.wait();
    const eliminated = eliminate(j, next);
    panel.each('i', next, rows, eliminated);
    panel.wait();
  });
  return panel.loop(note);
}

export function luLoop(frame: Frame, body: FactorBody): Loop {
  return eliminationLoop(frame, body, 1, ofReal, 'column by column, rows exchanged');
}

function ofReal(panel: Panel, n: number): Pivoting {
  const { b, type } = panel;
  return {
    size: (i, j) => operation('abs', [panel.at(i, j)], type),
    eliminate: (j, next) => {
      const pivot = panel.at(j, j);
      // Without a pivot the column holds zeros, and nothing is eliminated.
      const none = operation('eq', [pivot, panel.number(0)], 'bool');
      const divisor = b.let(operation('where', [none, panel.number(1), pivot], type), 'divisor');
      const eliminated =
        panel.width === 4 && n <= widest ? inRegisters(panel, n, j) : fromMemory(panel, next, constant(n), j);
      return (i) => {
        const scale = b.let(operation('div', [panel.at(i, j), divisor], type), 'scale');
        panel.put(i, j, scale);
        eliminated(i, scale);
      };
    },
  };
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

/** The same of a complex panel, whose real parts stand before its imaginary ones. */
export function luOfPairsLoop(frame: Frame, body: FactorBody): Loop {
  return eliminationLoop(frame, body, 2, ofPairs, 'column by column, rows exchanged, complex');
}

function ofPairs(panel: Panel, n: number): Pivoting {
  const { b, type } = panel;
  const z = new Numbers(panel);
  // LAPACK's measure of a pivot.
  const size = (i: Value, j: Value): Value => {
    const [re, im] = panel.pairAt(i, j, n);
    return operation('add', [operation('abs', [re], type), operation('abs', [im], type)], type);
  };
  return {
    size,
    eliminate: (j, next) => {
      const pivot = panel.pairAt(j, j, n);
      // Without a pivot the column holds zeros, and nothing is eliminated.
      const none = b.let(operation('eq', [size(j, j), panel.number(0)], 'bool'), 'none');
      const divisor = z.either(none, [panel.number(1), panel.number(0)], pivot);
      return (i) => {
        const scale = z.over(panel.pairAt(i, j, n), divisor);
        panel.putPair(i, j, n, scale);
        panel.along(next, constant(n), (c, width) => {
          const lost: ComplexRegisters = z.times(scale, panel.pairAt(j, c, n, width));
          panel.putPair(i, c, n, z.minus(panel.pairAt(i, c, n, width), lost));
        });
      };
    },
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
