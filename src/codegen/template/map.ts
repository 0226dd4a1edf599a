// map: every output element once, in groups of four neighbouring elements (vector loads and stores). Where values are dispersed,
// the index of a write is data. Single elements that ride along are computed by the first invocation.

import type { IndexExpr } from '../../ir/index-expr.ts';
import { CompilerBug } from '../../errors.ts';
import { addInts, builtin, constant, mulInts, operation } from '../builder.ts';
import { Lowering } from '../lower.ts';
import type { Write } from '../../schedule/kernel.ts';
import type { Loop, Value } from '../loop.ts';
import { bufferName, finish, forUnits, groupNumber, openBuilder, type Frame } from './frame.ts';
import { blocksOf, computeBlock } from './map-block.ts';
import { longTurns, singleTurns } from './map-turn.ts';
import { storeAt } from './store-value.ts';

/** The Loop of a map kernel. */
export function mapLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  if (kernel.body.kind !== 'map') throw new CompilerBug('map template', `got a ${kernel.body.kind} kernel`);
  const { axis } = kernel.body;
  const b = openBuilder(frame);
  const bufferOf = bufferName(frame);
  const isSingle = (write: Write): boolean => write.index.kind === 'const';
  const whole = kernel.writes.filter((write) => !isSingle(write));
  /** Computes what is stored at places, by the value of the atom that they are told in. */
  const compute = (atom: IndexExpr, places: readonly IndexExpr[], value: Value): void => {
    for (const place of places) {
      const binding = { substitution: new Map([[axis.atom, place]]), atoms: new Map([[atom, value]]) };
      const lowering = new Lowering(b, kernel.pool, binding, bufferOf);
      const values = whole.map((write) => lowering.value(write.value));
      whole.forEach((write, i) => storeAt(b, lowering, bufferOf(write.node), write, values[i]!, axis));
    }
  };
  const blocks = blocksOf(kernel, axis, whole, target);
  const singles = singleTurns(axis);
  const turns = longTurns(kernel, axis, whole, target.serial) ?? singles;
  const { grid, perInvocation } =
    blocks === undefined
      ? forUnits(
          b,
          target,
          turns.count,
          turns === singles ? 'quad' : 'turn',
          (turn) => compute(turns.atom, turns.places, turn),
          turns.places.length,
        )
      : forUnits(b, target, blocks.count, 'block', (block) =>
          computeBlock(b, frame, axis, whole, blocks, block),
        );
  const taken = turns.count * turns.places.length;
  if (blocks === undefined && taken < singles.count)
    b.if(operation('eq', [groupNumber(grid), constant(grid[0] * grid[1] - 1)], 'bool'), () =>
      b.for('quad', constant(taken), constant(singles.count), 1, (quad) =>
        compute(singles.atom, singles.places, quad),
      ),
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
  const unit = blocks === undefined ? `${4 * turns.places.length}` : '4 x 4';
  const note = `${perInvocation} x ${unit} elements per invocation`;
  return finish(frame, b, grid, [target.workgroupSize, 1, 1], note);
}
