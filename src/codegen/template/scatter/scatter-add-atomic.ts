// scatter-add-atomic: adds updates to their slots by atomic additions. Every update is one unit of work and
// nothing is sorted, but the order of f32 sums is the order in which the device runs them. The result starts
// as zeros.

import { CompilerBug } from '../../../errors.ts';
import type { Node } from '../../../ir/graph.ts';
import type { IndexExpr } from '../../../ir/index-algebra/expr.ts';
import { splat } from '../../loop/builder.ts';
import { Lowering } from '../../expression/lowering.ts';
import type { Loop, Value } from '../../loop/loop.ts';
import { bufferName, finish, forUnits, openBuilder, type Frame } from '../shared/frame.ts';

/** The Loop of an atomic scatter-add kernel. */
export function scatterAddAtomicLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  const { body } = kernel;
  if (body.kind !== 'scatter-add-atomic')
    throw new CompilerBug('scatter-add-atomic template', `got a ${body.kind} kernel`);
  const { axis, inside, index, value, node } = body;
  const b = openBuilder(frame);
  const { grid, perInvocation } = forUnits(b, target, axis.extent, 'i', (i) => {
    const atoms = new Map<IndexExpr, Value>([[axis.atom, i]]);
    const lowering = new Lowering(b, kernel.pool, { substitution: new Map(), atoms }, bufferName(frame));
    b.if(lowering.value(inside), () =>
      b.atomic(
        'add',
        bufferName(frame)(node as Node),
        lowering.index(index),
        splat(lowering.value(value), 1),
      ),
    );
  });
  const note = `${axis.extent} updates in no fixed order, ${perInvocation} an invocation`;
  return finish(frame, b, grid, [target.workgroupSize, 1, 1], note);
}
