// Cholesky's factorisation of a matrix, a column at a time: the rows of a column subtract the
// products of what stands left of them (left-looking), then are divided by the root of the pivot.

import { addInts, constant, operation } from '../../loop/builder.ts';
import type { Loop, Value } from '../../loop/loop.ts';
import type { Frame } from '../shared/frame.ts';
import { Panel, type FactorBody } from './panel.ts';

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
    panel.each('i', j, end, (i) => {
      const sum = b.var('sum', panel.at(i, j));
      subtractProducts(panel, i, j, sum);
      panel.put(i, j, sum);
    });
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

/** Takes Σ row i · row j, over the columns before j, from `sum`. */
function subtractProducts(panel: Panel, i: Value, j: Value, sum: Value): void {
  const { b, type } = panel;
  const wide = panel.width === 4 ? b.var('wide', constant(0, type, 4)) : undefined;
  panel.along(constant(0), j, (c, width) => {
    const [x, y] = [panel.at(i, c, width), panel.at(j, c, width)];
    if (width === 4 && wide !== undefined) b.assign(wide, operation('fma', [x, y, wide], type));
    else b.assign(sum, operation('sub', [sum, operation('mul', [x, y], type)], type));
  });
  if (wide !== undefined) b.assign(sum, operation('sub', [sum, panel.lanes(b.let(wide, 'products'))], type));
}
