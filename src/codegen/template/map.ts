// map: every output element once. The flat domain is cut into groups of four neighbouring elements (vector loads and stores);
// a workgroup owns a contiguous block of them, which its invocations walk side by side: neighbours read neighbouring memory, and
// no step leaves the pages of the block (steps a whole grid apart took three times as long on the software adapter).

import { addIndex, scaleIndex, type IndexExpr } from '../../ir/index-expr.ts';
import { CompilerBug } from '../../errors.ts';
import { addInts, builtin, constant, less, mulInts, operation } from '../builder.ts';
import { laneAtom, Lowering, quadIndex } from '../lower.ts';
import type { Loop, Value } from '../loop.ts';
import { bufferName, finish, foldGrid, groupNumber, openBuilder, type Frame } from './frame.ts';
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
  const block = size * perInvocation;
  const groups = Math.ceil(quads / block);
  const grid = foldGrid(groups, target);

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
  const first = b.let(addInts(mulInts(groupNumber(grid), constant(block)), builtin('local', 0)), 'quad');
  const whole = quads === grid[0] * grid[1] * block;
  if (perInvocation === 1) {
    if (whole) compute(first);
    else b.if(less(first, constant(quads)), () => compute(first));
  } else {
    const next = b.let(mulInts(addInts(groupNumber(grid), constant(1)), constant(block)), 'next');
    const end = whole ? next : b.let(operation('min', [next, constant(quads)], 'i32'), 'end');
    b.for('quad', first, end, size, compute);
  }
  return finish(frame, b, grid, [size, 1, 1], `${perInvocation} x 4 elements per invocation`);
}
