// Householder's reflections of a panel, a column at a time, as LAPACK's geqr2 does them: the length
// of a column is found of elements scaled by the greatest, so that no square leaves the range of
// the dtype.

import { addInts, constant, operation, splat } from '../../loop/builder.ts';
import type { Loop, Value } from '../../loop/loop.ts';
import type { Frame } from '../shared/frame.ts';
import { Numbers, type ComplexRegisters } from './numbers.ts';
import { Panel, piecesOf, widest, type FactorBody } from './panel.ts';

/** The reflection of one column. */
interface Reflection {
  /** Divides the element of a row below the diagonal. */
  readonly divide: (i: Value) => void;
  /** Puts what the diagonal becomes, and τ below the matrix. */
  readonly put: () => void;
  /** Reflects the columns right of it. */
  readonly reflect: () => void;
}

type ReflectionOf = (j: Value, next: Value) => Reflection;

/** Reflections of a panel whose numbers stand in `parts` columns each, apart by all columns of a part. */
function reflectionsLoop(
  frame: Frame,
  body: FactorBody,
  parts: 1 | 2,
  reflectionOf: (panel: Panel, m: number, n: number) => ReflectionOf,
  note: string,
): Loop {
  const { row, column } = body.operands[0]!;
  const [m, n] = [row.extent, column.extent / parts];
  const panel = new Panel(frame, body, Math.max(m, n));
  const { b } = panel;
  const [first, rows, all] = [constant(0), constant(m), constant(column.extent)];
  panel.each('i', first, rows, (i) =>
    panel.along(first, all, (c, width) => panel.put(i, c, panel.operand(0, i, c, width))),
  );
  panel.each('c', first, all, (c) => panel.put(rows, c, panel.number(0)));
  panel.wait();
  const reflection = reflectionOf(panel, m, n);
  b.for('j', first, constant(Math.min(m, n)), 1, (j) => {
    const next = b.let(addInts(j, constant(1)), 'next');
    const { divide, put, reflect } = reflection(j, next);
    panel.wait();
    panel.each('i', next, rows, divide);
    panel.once(put);
    panel.wait();
    reflect();
    panel.wait();
  });
  return panel.loop(note);
}

export function householderLoop(frame: Frame, body: FactorBody): Loop {
  return reflectionsLoop(frame, body, 1, ofReal, 'column by column');
}

/** The same of a complex panel, whose real parts stand before its imaginary ones; R has a real diagonal. */
export function householderOfPairsLoop(frame: Frame, body: FactorBody): Loop {
  return reflectionsLoop(frame, body, 2, ofPairs, 'column by column, complex');
}

function ofReal(panel: Panel, m: number, n: number): ReflectionOf {
  const { b, type } = panel;
  const [rows, columns] = [constant(m), constant(n)];
  return (j, next) => {
    const { beta, tau, divisor } = reflector(panel, (i) => panel.at(i, j), j, next, rows);
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
    return {
      divide: (i) => panel.put(i, j, operation('div', [panel.at(i, j), divisor], type)),
      put: () => {
        panel.put(j, j, beta);
        panel.put(rows, j, tau);
      },
      reflect: () => {
        if (panel.team > 1) panel.each('c', next, columns, (c) => reflected(c, 1));
        else if (n <= widest) reflectedTogether(panel, n, j, next, rows, tau);
        else panel.along(next, columns, (c, width) => reflected(c, width === 4 ? 4 : 1));
      },
    };
  };
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

function ofPairs(panel: Panel, m: number, n: number): ReflectionOf {
  const { b, type } = panel;
  const z = new Numbers(panel);
  const [rows, columns] = [constant(m), constant(n)];
  return (j, next) => {
    const { beta, tau, divisor } = reflectorOfPairs(panel, z, n, j, next, rows);
    return {
      divide: (i) => panel.putPair(i, j, n, z.over(panel.pairAt(i, j, n), divisor)),
      put: () => {
        panel.putPair(j, j, n, beta);
        panel.putPair(rows, j, n, tau);
      },
      // Hᴴ·Y = Y − τ*·v·(vᴴ·Y)
      reflect: () => {
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
          const share: ComplexRegisters = z.times(turned, z.pair(sum[0], sum[1]));
          panel.putPair(j, c, n, z.minus(panel.pairAt(j, c, n, width), share));
          b.for('i', next, rows, 1, (i) => {
            const lost = z.times(panel.pairAt(i, j, n), share);
            panel.putPair(i, c, n, z.minus(panel.pairAt(i, c, n, width), lost));
          });
        });
      },
    };
  };
}

/** What makes the elements of column `j` below the diagonal zeros, and the one on it real. */
function reflectorOfPairs(
  panel: Panel,
  z: Numbers,
  n: number,
  j: Value,
  next: Value,
  rows: Value,
): { readonly beta: ComplexRegisters; readonly tau: ComplexRegisters; readonly divisor: ComplexRegisters } {
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
  const tau: ComplexRegisters = [
    z.op('div', z.op('sub', opposite, alpha[0]), safe),
    z.op('div', z.op('neg', alpha[1]), safe),
  ];
  return {
    beta: z.either(nothing, alpha, [opposite, zero]),
    tau: z.either(nothing, [zero, zero], tau),
    divisor: z.either(nothing, [one, zero], [z.op('sub', alpha[0], opposite), alpha[1]]),
  };
}
