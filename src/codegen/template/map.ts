// map: every output element once. The flat domain is cut into groups of four neighbouring elements (vector loads and stores);
// an invocation handles several groups a whole grid apart, so that neighbours read neighbouring memory.

import { addIndex, scaleIndex, type IndexExpr } from '../../ir/index-expr.ts';
import { CompilerBug } from '../../errors.ts';
import { addInts, constant, less } from '../builder.ts';
import { laneAtom, Lowering, quadIndex } from '../lower.ts';
import type { Loop, Value } from '../loop.ts';
import { bufferName, finish, foldGrid, invocation, openBuilder, type Frame } from './frame.ts';
import { storeAt } from './store-value.ts';

/** The Loop of a map kernel. */
export function mapLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  if (kernel.body.kind !== 'map') throw new CompilerBug('map template', `got a ${kernel.body.kind} kernel`);
  const { axis } = kernel.body;
  const b = openBuilder(frame);
  const quads = Math.ceil(axis.extent / 4);
  const perInvocation = Math.max(
    1,
    Math.min(target.elementsPerInvocation / 4, Math.floor(quads / target.parallelism)),
  );
  const size = target.workgroupSize;
  const grid = foldGrid(Math.ceil(quads / (size * perInvocation)), target);
  const invocations = grid[0] * grid[1] * size;
  const rounds = Math.ceil(quads / invocations);
  const id = invocation(b, grid, size);

  const quadAtom = quadIndex('quad', axis.extent);
  const place: IndexExpr = addIndex(scaleIndex(quadAtom, 4), laneAtom);
  const compute = (quad: Value): void => {
    const binding = { substitution: new Map([[axis.atom, place]]), atoms: new Map([[quadAtom, quad]]) };
    const lowering = new Lowering(b, kernel.pool, binding, bufferName(frame));
    const values = kernel.writes.map((write) => lowering.value(write.value));
    kernel.writes.forEach((write, i) =>
      storeAt(b, lowering, bufferName(frame)(write.node), write, values[i]!, axis),
    );
  };
  const guarded = (quad: Value): void => {
    if (quads === invocations * rounds) compute(quad);
    else b.if(less(quad, constant(quads)), () => compute(quad));
  };
  if (rounds === 1) guarded(id);
  else
    b.for('round', constant(0), constant(rounds * invocations), invocations, (round) =>
      guarded(b.let(addInts(id, round), 'quad')),
    );
  return finish(frame, b, grid, [size, 1, 1], `${rounds} x 4 elements per invocation`);
}
