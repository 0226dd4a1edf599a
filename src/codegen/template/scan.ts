// scan: a running combination along one axis, one line per invocation. Long lines are split before scheduling (split.ts), so
// that lines stay short and many.

import { CompilerBug } from '../../errors.ts';
import type { IndexExpr } from '../../ir/index-expr.ts';
import { constant, less, operation } from '../builder.ts';
import { Lowering, registerOf, rounded } from '../lower.ts';
import type { Loop, Value } from '../loop.ts';
import { bufferName, finish, foldGrid, invocation, openBuilder, type Frame } from './frame.ts';
import { combine, identity } from './monoid.ts';
import { storeAt } from './store-value.ts';

/** The Loop of a scan kernel. */
export function scanLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  const { body } = kernel;
  if (body.kind !== 'scan') throw new CompilerBug('scan template', `got a ${body.kind} kernel`);
  const { line, position, monoid, reverse, exclusive } = body;
  const b = openBuilder(frame);
  const size = target.workgroupSize;
  const grid = foldGrid(Math.ceil(line.extent / size), target);
  const id = invocation(b, grid, size);
  b.if(
    grid[0] * grid[1] * size === line.extent ? constant(1, 'bool') : less(id, constant(line.extent)),
    () => {
      const running = b.var('running', identity(monoid, registerOf(body.node.dtype), 1));
      b.for('step', constant(0), constant(position.extent), 1, (step) => {
        const at = reverse
          ? b.let(operation('sub', [constant(position.extent - 1), step], 'i32'), 'pos')
          : step;
        const atoms = new Map<IndexExpr, Value>([
          [line.atom, id],
          [position.atom, at],
        ]);
        const lowering = new Lowering(b, kernel.pool, { substitution: new Map(), atoms }, bufferName(frame));
        const value = lowering.value(body.value);
        const before = b.let(rounded(running, body.node.dtype), 'before');
        b.assign(running, combine(monoid, running, value));
        const after = exclusive ? before : b.let(rounded(running, body.node.dtype), 'after');
        lowering.results.set(body.node, after);
        const values = kernel.writes.map((write) => lowering.value(write.value));
        kernel.writes.forEach((write, i) =>
          storeAt(b, lowering, bufferName(frame)(write.node), write, values[i]!, undefined),
        );
      });
    },
  );
  return finish(frame, b, grid, [size, 1, 1], `${line.extent} lines of ${position.extent}`);
}
