// map: every output element once, in groups of four neighbouring elements (vector loads and stores). Where values are dispersed,
// the index of a write is data. Single elements that ride along are computed by the first invocation.

import { addIndex, scaleIndex, type IndexExpr } from '../../ir/index-expr.ts';
import { CompilerBug } from '../../errors.ts';
import { addInts, builtin, constant, mulInts, operation } from '../builder.ts';
import { laneAtom, Lowering, quadIndex } from '../lower.ts';
import type { Write } from '../../schedule/kernel.ts';
import type { Loop, Value } from '../loop.ts';
import { bufferName, finish, forUnits, groupNumber, openBuilder, type Frame } from './frame.ts';
import { blocksOf, computeBlock } from './map-block.ts';
import { storeAt } from './store-value.ts';

/** The Loop of a map kernel. */
export function mapLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  if (kernel.body.kind !== 'map') throw new CompilerBug('map template', `got a ${kernel.body.kind} kernel`);
  const { axis } = kernel.body;
  const b = openBuilder(frame);
  const quads = Math.ceil(axis.extent / 4);
  const bufferOf = bufferName(frame);
  const isSingle = (write: Write): boolean => write.index.kind === 'const';
  const whole = kernel.writes.filter((write) => !isSingle(write));
  const quadAtom = quadIndex('quad', axis.extent);
  const place: IndexExpr = addIndex(scaleIndex(quadAtom, 4), laneAtom);
  const compute = (quad: Value): void => {
    const binding = { substitution: new Map([[axis.atom, place]]), atoms: new Map([[quadAtom, quad]]) };
    const lowering = new Lowering(b, kernel.pool, binding, bufferOf);
    const values = whole.map((write) => lowering.value(write.value));
    whole.forEach((write, i) => storeAt(b, lowering, bufferOf(write.node), write, values[i]!, axis));
  };
  const blocks = blocksOf(kernel, axis, whole, target);
  const { grid, perInvocation } =
    blocks === undefined
      ? forUnits(b, target, quads, 'quad', compute)
      : forUnits(b, target, blocks.count, 'block', (block) =>
          computeBlock(b, frame, axis, whole, blocks, block),
        );
  const single = kernel.writes.filter(isSingle);
  if (single.length > 0) {
    const id = addInts(mulInts(groupNumber(grid), constant(target.workgroupSize)), builtin('local', 0));
    b.if(operation('eq', [id, constant(0)], 'bool'), () => {
      const lowering = new Lowering(b, kernel.pool, { substitution: new Map(), atoms: new Map() }, bufferOf);
      const values = single.map((write) => lowering.value(write.value));
      single.forEach((write, i) => storeAt(b, lowering, bufferOf(write.node), write, values[i]!, undefined));
    });
  }
  const unit = blocks === undefined ? '4' : '4 x 4';
  const note = `${perInvocation} x ${unit} elements per invocation`;
  return finish(frame, b, grid, [target.workgroupSize, 1, 1], note);
}
