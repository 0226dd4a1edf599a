// Householder's reflections of a panel, a column at a time, as LAPACK's geqr2 does them: the length
// of a column is found of elements scaled by the greatest, so that no square leaves the range of
// the dtype.

import { addInts, constant, operation, splat } from '../../loop/builder.ts';
import type { Loop, Value } from '../../loop/loop.ts';
import type { Frame } from '../shared/frame.ts';
import { Panel, piecesOf, widest, type FactorBody } from './panel.ts';

export function householderLoop(frame: Frame, body: FactorBody): Loop {
  const { row, column } = body.operands[0]!;
  const [m, n] = [row.extent, column.extent];
  const panel = new Panel(frame, body, Math.max(m, n));
  const { b, type } = panel;
  const [first, rows, columns] = [constant(0), constant(m), constant(n)];
  panel.each('i', first, rows, (i) =>
    panel.along(first, columns, (c, width) => panel.put(i, c, panel.operand(0, i, c, width))),
  );
  panel.each('c', first, columns, (c) => panel.put(rows, c, panel.number(0)));
  panel.wait();
  b.for('j', first, constant(Math.min(m, n)), 1, (j) => {
    const next = b.let(addInts(j, constant(1)), 'next');
    const { beta, tau, divisor } = reflector(panel, (i) => panel.at(i, j), j, next, rows);
    panel.wait();
    panel.each('i', next, rows, (i) => panel.put(i, j, operation('div', [panel.at(i, j), divisor], type)));
    panel.once(() => {
      panel.put(j, j, beta);
      panel.put(rows, j, tau);
    });
    panel.wait();
    const reflected = (c: Value, width: 1 | 4): void => {
      const sum = b.var('sum', panel.at(j, c, width));
      b.for('i', next, rows, 1, (i) =>
        b.assign(sum, operation('fma', [panel.at(i, j), panel.at(i, c, width), sum], type)),
      );
      const share = b.let(operation('mul', [sum, tau], type), 'share');
      panel.put(j, c, operation('sub', [panel.at(j, c, width), share], type));
      b.for('i', next, rows, 1, (i) => {
        const lost = operation('mul', [panel.at(i, j), share], type);
        panel.put(i, c, operation('sub', [panel.at(i, c, width), lost], type));
      });
    };
    if (panel.team > 1) panel.each('c', next, columns, (c) => reflected(c, 1));
    else if (n <= widest) reflectedTogether(panel, n, j, next, rows, tau);
    else panel.along(next, columns, (c, width) => reflected(c, width === 4 ? 4 : 1));
    panel.wait();
  });
  return panel.loop('column by column');
}

/** Reflects the columns right of `j` side by side, row by row; those up to it lose nothing. */
function reflectedTogether(panel: Panel, n: number, j: Value, next: Value, rows: Value, tau: Value): void {
  const { b, type } = panel;
  const pieces = piecesOf(n).map(({ start, width, places }) => {
    const column = constant(start);
    return { column, width, right: operation('lt', [j, places], 'bool') };
  });
  const sums = pieces.map(({ column, width }) => b.var('sum', panel.at(j, column, width)));
  b.for('i', next, rows, 1, (i) => {
    const own = panel.at(i, j);
    pieces.forEach(({ column, width }, p) => {
      const product = operation('fma', [splat(own, width), panel.at(i, column, width), sums[p]!], type);
      b.assign(sums[p]!, product);
    });
  });
  const shares = pieces.map(({ column, width, right }, p) => {
    const share = operation('mul', [sums[p]!, tau], type);
    const kept = b.let(operation('where', [right, share, constant(0, type, width)], type), 'share');
    panel.put(j, column, operation('sub', [panel.at(j, column, width), kept], type));
    return kept;
  });
  b.for('i', next, rows, 1, (i) => {
    const own = panel.at(i, j);
    const values = pieces.map(({ column, width }, p) => {
      const lost = operation('mul', [splat(own, width), shares[p]!], type);
      return b.let(operation('sub', [panel.at(i, column, width), lost], type), 'value');
    });
    pieces.forEach(({ column }, p) => panel.put(i, column, values[p]!));
  });
}

/** What makes the elements of a column, from row `next` up to `rows`, zeros; the one before them is row `j`. */
export function reflector(
  panel: Panel,
  at: (row: Value) => Value,
  j: Value,
  next: Value,
  rows: Value,
): { readonly beta: Value; readonly tau: Value; readonly divisor: Value } {
  const { b, type } = panel;
  const [zero, one] = [panel.number(0), panel.number(1)];
  const op = (name: 'add' | 'sub' | 'mul' | 'div' | 'max' | 'min', x: Value, y: Value): Value =>
    operation(name, [x, y], type);
  const either = (condition: Value, yes: Value, no: Value): Value =>
    operation('where', [condition, yes, no], type);
  const greatest = b.var('greatest', zero);
  panel.each('i', next, rows, (i) =>
    b.assign(greatest, op('max', greatest, operation('abs', [at(i)], type))),
  );
  const scale = panel.combined('max', b.let(greatest, 'own'));
  const nothing = b.let(operation('eq', [scale, zero], 'bool'), 'nothing');
  const unit = b.let(either(nothing, one, scale), 'unit');
  const squares = b.var('squares', zero);
  panel.each('i', next, rows, (i) => {
    const part = b.let(op('div', at(i), unit), 'part');
    b.assign(squares, operation('fma', [part, part, squares], type));
  });
  const total = panel.combined('add', b.let(squares, 'own'));
  const rest = b.let(op('mul', unit, operation('sqrt', [total], type)), 'rest');
  const alpha = at(j);
  const size = b.let(operation('abs', [alpha], type), 'size');
  const [large, small] = [b.let(op('max', size, rest), 'large'), b.let(op('min', size, rest), 'small')];
  const ratio = b.let(op('div', small, either(nothing, one, large)), 'ratio');
  const length = op('mul', large, operation('sqrt', [op('add', one, op('mul', ratio, ratio))], type));
  const negative = operation('lt', [alpha, zero], 'bool');
  const opposite = b.let(either(negative, length, operation('neg', [length], type)), 'opposite');
  const safe = either(nothing, one, opposite);
  const tau = either(nothing, zero, op('div', op('sub', opposite, alpha), safe));
  return {
    beta: b.let(either(nothing, alpha, opposite), 'beta'),
    tau: b.let(tau, 'tau'),
    divisor: b.let(either(nothing, one, op('sub', alpha, opposite)), 'divisor'),
  };
}
