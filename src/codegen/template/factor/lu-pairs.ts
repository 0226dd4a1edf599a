// Gaussian elimination of a complex panel, whose real parts stand before its imaginary ones: as
// lu.ts does it, with LAPACK's measure of a pivot, |re| + |im|.

import { addInts, constant, operation } from '../../loop/builder.ts';
import type { Loop, Value } from '../../loop/loop.ts';
import type { Frame } from '../shared/frame.ts';
import { Numbers, type Complex } from './numbers.ts';
import { Panel, type FactorBody } from './panel.ts';

export function luOfPairsLoop(frame: Frame, body: FactorBody): Loop {
  const { row, column } = body.operands[0]!;
  const [m, n] = [row.extent, column.extent / 2];
  const panel = new Panel(frame, body, m);
  const z = new Numbers(panel);
  const { b, type } = panel;
  const [first, rows, columns, all] = [constant(0), constant(m), constant(n), constant(2 * n)];
  const number = (i: Value): Value => operation('cast', [i], type);
  panel.each('i', first, rows, (i) => {
    panel.along(first, all, (c, width) => panel.put(i, c, panel.operand(0, i, c, width)));
    panel.put(i, all, number(i));
    panel.put(i, constant(2 * n + 1), panel.number(0));
  });
  panel.wait();
  b.for('j', first, constant(Math.min(m, n)), 1, (j) => {
    const next = b.let(addInts(j, constant(1)), 'next');
    const size = (i: Value): Value => {
      const [re, im] = panel.pairAt(i, j, n);
      return operation('add', [operation('abs', [re], type), operation('abs', [im], type)], type);
    };
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
    panel.each('c', first, constant(2 * n + 1), (c) => {
      const [upper, lower] = [panel.at(j, c), panel.at(pivotRow, c)];
      panel.put(j, c, lower);
      panel.put(pivotRow, c, upper);
    });
    panel.once(() => panel.put(j, constant(2 * n + 1), number(pivotRow)));
    panel.wait();
    const pivot = panel.pairAt(j, j, n);
    // Without a pivot the column holds zeros, and nothing is eliminated.
    const none = b.let(operation('eq', [size(j), panel.number(0)], 'bool'), 'none');
    const divisor = z.either(none, [panel.number(1), panel.number(0)], pivot);
    panel.each('i', next, rows, (i) => {
      const scale = z.over(panel.pairAt(i, j, n), divisor);
      panel.putPair(i, j, n, scale);
      panel.along(next, columns, (c, width) => {
        const lost: Complex = z.times(scale, panel.pairAt(j, c, n, width));
        panel.putPair(i, c, n, z.minus(panel.pairAt(i, c, n, width), lost));
      });
    });
    panel.wait();
  });
  return panel.loop('column by column, rows exchanged, complex');
}
