// map: every output element once, in groups of four neighbouring elements (vector loads and stores). Where values are dispersed,
// the index of a write is data.

import { addIndex, scaleIndex, type IndexExpr } from '../../ir/index-expr.ts';
import { CompilerBug } from '../../errors.ts';
import { laneAtom, Lowering, quadIndex } from '../lower.ts';
import type { Loop, Value } from '../loop.ts';
import { bufferName, finish, forUnits, openBuilder, type Frame } from './frame.ts';
import { storeAt } from './store-value.ts';

/** The Loop of a map kernel. */
export function mapLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  if (kernel.body.kind !== 'map') throw new CompilerBug('map template', `got a ${kernel.body.kind} kernel`);
  const { axis } = kernel.body;
  const b = openBuilder(frame);
  const quads = Math.ceil(axis.extent / 4);
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
  const { grid, perInvocation } = forUnits(b, target, quads, 'quad', compute);
  return finish(frame, b, grid, [target.workgroupSize, 1, 1], `${perInvocation} x 4 elements per invocation`);
}
