// Forward substitution. The columns of the right-hand sides do not depend on each other, so each invocation
// computes some of them, without waiting. Where one core runs all invocations, an invocation takes sixteen,
// as vectors along the row.

import type { Node } from '../../../ir/graph.ts';
import { packsOperands } from '../../../schedule/machine.ts';
import { addInts, constant, less, mulInts, operation, splat } from '../../loop/builder.ts';
import type { Loop, Value, Width } from '../../loop/loop.ts';
import { registerOf } from '../../expression/lowering.ts';
import { bufferName, finish, forUnits, openBuilder, type Frame } from '../shared/frame.ts';
import { operandAt, type FactorBody } from './panel.ts';

/** Vectors that an invocation takes side by side. */
const together = 4;

export function solveLoop(frame: Frame, body: FactorBody, unit: boolean): Loop {
  const { target } = frame;
  const [triangle, sides] = [body.operands[0]!, body.operands[1]!];
  const [n, columns] = [triangle.row.extent, sides.column.extent];
  const type = registerOf(body.node.dtype);
  const out = bufferName(frame)(body.node as Node);
  const b = openBuilder(frame);
  const vectors = packsOperands(target) ? Math.floor(columns / 4) : 0;
  const wide = Math.floor(vectors / together);
  // Units of a matrix: sixteen columns, then four, then single ones.
  const units = wide + (vectors - wide * together) + (columns - 4 * vectors);
  const { grid } = forUnits(b, target, body.batch.extent * units, 'id', (id) => {
    const matrix = b.let(operation('div', [id, constant(units)], 'i32'), 'matrix');
    const part = b.let(operation('mod', [id, constant(units)], 'i32'), 'part');
    const base = b.let(mulInts(matrix, constant(n * columns)), 'base');
    const place = (i: Value, c: Value): Value =>
      addInts(b.let(addInts(base, mulInts(i, constant(columns))), 'row'), c);
    const solve = (starts: readonly Value[], width: Width): void => {
      b.for('i', constant(0), constant(n), 1, (i) => {
        const sums = starts.map((c) => b.var('sum', operandAt(b, frame, body, sides, matrix, i, c, width)));
        b.for('j', constant(0), i, 1, (j) => {
          const factor = b.let(operandAt(b, frame, body, triangle, matrix, i, j, 1), 'factor');
          const share = splat(operation('neg', [factor], type), width);
          const spread = b.let(share, 'share');
          starts.forEach((c, s) => {
            const load = { kind: 'load', buffer: out, index: b.let(place(j, c), 'at') } as const;
            const x: Value = { ...load, aligned: width === 1, type, width };
            b.assign(sums[s]!, operation('fma', [spread, x, sums[s]!], type));
          });
        });
        const pivot = unit ? undefined : b.let(operandAt(b, frame, body, triangle, matrix, i, i, 1), 'pivot');
        starts.forEach((c, s) => {
          const value = pivot === undefined ? sums[s]! : operation('div', [sums[s]!, pivot], type);
          b.store(out, b.let(place(i, c), 'at'), value, true);
        });
      });
    };
    const offset = (from: Value, first: number, units: number, size: number): Value =>
      b.let(
        addInts(mulInts(operation('sub', [from, constant(units)], 'i32'), constant(size)), constant(first)),
        'column',
      );
    const narrow = (): void => {
      const rest = vectors - wide * together;
      const single = (): void => solve([offset(part, 4 * vectors, wide + rest, 1)], 1);
      if (rest === 0) single();
      else
        b.if(
          less(part, constant(wide + rest)),
          () => solve([offset(part, 4 * together * wide, wide, 4)], 4),
          columns === 4 * vectors ? undefined : single,
        );
    };
    if (wide === 0) narrow();
    else
      b.if(
        less(part, constant(wide)),
        () => {
          const first = b.let(mulInts(part, constant(4 * together)), 'column');
          const starts = Array.from({ length: together }, (_, s) =>
            b.let(addInts(first, constant(4 * s)), 'column'),
          );
          solve(starts, 4);
        },
        units === wide ? undefined : narrow,
      );
  });
  const note = `${body.batch.extent} triangles of ${n}, ${columns} right-hand sides`;
  return finish(frame, b, grid, [target.workgroupSize, 1, 1], note);
}
