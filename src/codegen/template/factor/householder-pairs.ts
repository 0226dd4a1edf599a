// Householder's reflections of a complex panel, whose real parts stand before its imaginary ones:
// as householder.ts does them, by LAPACK's convention, in which R has a real diagonal.

import { addInts, constant, operation } from '../../loop/builder.ts';
import type { Loop, Value } from '../../loop/loop.ts';
import type { Frame } from '../shared/frame.ts';
import { Numbers, type Complex } from './numbers.ts';
import { Panel, type FactorBody } from './panel.ts';

export function householderOfPairsLoop(frame: Frame, body: FactorBody): Loop {
  const { row, column } = body.operands[0]!;
  const [m, n] = [row.extent, column.extent / 2];
  const panel = new Panel(frame, body, Math.max(m, n));
  const z = new Numbers(panel);
  const { b, type } = panel;
  const [first, rows, columns, all] = [constant(0), constant(m), constant(n), constant(2 * n)];
  panel.each('i', first, rows, (i) =>
    panel.along(first, all, (c, width) => panel.put(i, c, panel.operand(0, i, c, width))),
  );
  panel.each('c', first, all, (c) => panel.put(rows, c, panel.number(0)));
  panel.wait();
  b.for('j', first, constant(Math.min(m, n)), 1, (j) => {
    const next = b.let(addInts(j, constant(1)), 'next');
    const { beta, tau, divisor } = reflector(panel, z, n, j, next, rows);
    panel.wait();
    panel.each('i', next, rows, (i) => panel.putPair(i, j, n, z.over(panel.pairAt(i, j, n), divisor)));
    panel.once(() => {
      panel.putPair(j, j, n, beta);
      panel.putPair(rows, j, n, tau);
    });
    panel.wait();
    // Hᴴ·Y = Y − τ*·v·(vᴴ·Y)
    const turned = z.conj(tau);
    panel.across(next, columns, (c, width) => {
      const start = panel.pairAt(j, c, n, width);
      const sum = [b.var('sum', start[0]), b.var('sum', start[1])] as const;
      b.for('i', next, rows, 1, (i) => {
        const [re, im] = panel.pairAt(i, j, n);
        const [x, y] = panel.pairAt(i, c, n, width);
        const fma = (p: Value, q: Value, r: Value): Value => operation('fma', [p, q, r], type);
        b.assign(sum[0], fma(im, y, fma(re, x, sum[0])));
        b.assign(sum[1], fma(operation('neg', [im], type), x, fma(re, y, sum[1])));
      });
      const share: Complex = z.times(turned, z.pair(sum[0], sum[1]));
      panel.putPair(j, c, n, z.minus(panel.pairAt(j, c, n, width), share));
      b.for('i', next, rows, 1, (i) => {
        const lost = z.times(panel.pairAt(i, j, n), share);
        panel.putPair(i, c, n, z.minus(panel.pairAt(i, c, n, width), lost));
      });
    });
    panel.wait();
  });
  return panel.loop('column by column, complex');
}

/** What makes the elements of column `j` below the diagonal zeros, and the one on it real. */
function reflector(
  panel: Panel,
  z: Numbers,
  n: number,
  j: Value,
  next: Value,
  rows: Value,
): { readonly beta: Complex; readonly tau: Complex; readonly divisor: Complex } {
  const { b, type } = panel;
  const [zero, one] = [panel.number(0), panel.number(1)];
  const greatest = b.var('greatest', zero);
  panel.each('i', next, rows, (i) => {
    const [x, y] = panel.pairAt(i, j, n).map((part) => operation('abs', [part], type)) as [Value, Value];
    b.assign(greatest, operation('max', [greatest, operation('max', [x, y], type)], type));
  });
  const scale = panel.combined('max', b.let(greatest, 'own'));
  const flat = b.let(operation('eq', [scale, zero], 'bool'), 'flat');
  const unit = z.choose(flat, one, scale);
  const squares = b.var('squares', zero);
  panel.each('i', next, rows, (i) => {
    const [x, y] = panel.pairAt(i, j, n).map((part) => z.op('div', part, unit)) as [Value, Value];
    b.assign(squares, operation('fma', [x, x, operation('fma', [y, y, squares], type)], type));
  });
  const total = panel.combined('add', b.let(squares, 'own'));
  const rest = z.op('mul', unit, z.op('sqrt', total));
  const alpha = panel.pairAt(j, j, n);
  const straight = operation('eq', [alpha[1], zero], 'bool');
  const nothing = b.let(operation('and', [flat, straight], 'bool'), 'nothing');
  const length = z.length(z.length(alpha[0], alpha[1]), rest);
  const negative = operation('lt', [alpha[0], zero], 'bool');
  const opposite = z.choose(negative, length, operation('neg', [length], type));
  const safe = z.choose(nothing, one, opposite);
  const tau: Complex = [
    z.op('div', z.op('sub', opposite, alpha[0]), safe),
    z.op('div', z.op('neg', alpha[1]), safe),
  ];
  return {
    beta: z.either(nothing, alpha, [opposite, zero]),
    tau: z.either(nothing, [zero, zero], tau),
    divisor: z.either(nothing, [one, zero], [z.op('sub', alpha[0], opposite), alpha[1]]),
  };
}
