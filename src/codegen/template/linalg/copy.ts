// The rows of matrices in their own result, where they are worked on.

import type { IndexExpr } from '../../../ir/index-algebra/expr.ts';
import type { Node } from '../../../ir/graph.ts';
import type { Body } from '../../../schedule/kernel.ts';
import { addInts, constant, mulInts, operation, type LoopBuilder } from '../../loop/builder.ts';
import type { Value } from '../../loop/loop.ts';
import { Lowering } from '../../expression/lowering.ts';
import { bufferName, type Frame } from '../shared/frame.ts';

/** Copies the operand into the result: elements from `first`, `step` apart. */
export function copyRows(
  frame: Frame,
  b: LoopBuilder,
  body: Extract<Body, { kind: 'jacobi-rows' | 'complete-rows' }>,
  matrix: Value,
  first: Value,
  step: number,
): void {
  const { row, column, node, value } = body;
  const out = bufferName(frame)(node as Node);
  const [n, columns] = [constant(row.extent), constant(column.extent)];
  const copy = (i: Value, k: Value): void => {
    const atoms = new Map<IndexExpr, Value>([
      [body.matrix.atom, matrix],
      [row.atom, i],
      [column.atom, k],
    ]);
    const binding = { substitution: new Map(), atoms };
    const found = new Lowering(b, frame.kernel.pool, binding, bufferName(frame)).value(value);
    const line = addInts(mulInts(addInts(mulInts(matrix, n), i), columns), k);
    b.store(out, b.let(line, 'at'), found, true);
  };
  if (step === 1) {
    b.for('i', constant(0), n, 1, (i) => b.for('k', constant(0), columns, 1, (k) => copy(i, k)));
    return;
  }
  b.for('e', first, constant(row.extent * column.extent), step, (e) =>
    copy(
      b.let(operation('div', [e, columns], 'i32'), 'i'),
      b.let(operation('mod', [e, columns], 'i32'), 'k'),
    ),
  );
}
