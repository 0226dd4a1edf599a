// segment-reduce: a scatter whose updates lie sorted by their slot. Every slot folds its own
// segment, in the order of the updates: deterministic without atomics, each update read once. Slots
// spread over columns (an embedding's rows) are folded four columns at a time, and neighbours read
// neighbouring columns.

import { CompilerBug } from '../../../errors.ts';
import type { Node } from '../../../ir/graph.ts';
import { addIndex, axisIndex, scaleIndex, type IndexExpr } from '../../../ir/index-algebra/expr.ts';
import { arithmetic, constant, less, operation, splat } from '../../loop/builder.ts';
import { rounded } from '../../expression/convert.ts';
import { laneAtom, Lowering, quadIndex } from '../../expression/lowering.ts';
import type { Loop, Value } from '../../loop/loop.ts';
import { bufferName, finish, forUnits, openBuilder, type Frame } from '../shared/frame.ts';
import { storeAt } from '../shared/store-value.ts';

/** The Loop of a segment-reduce kernel. */
export function segmentReduceLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  const { body } = kernel;
  if (body.kind !== 'segment-reduce') throw new CompilerBug('segments template', `got a ${body.kind} kernel`);
  const { outer, column, entry, operand, first, last, update, node } = body;
  const { mode } = node.attrs;
  const b = openBuilder(frame);
  const spread = column.extent >= 4;
  const units = spread ? Math.ceil(column.extent / 4) : column.extent;
  const unitAtom = spread ? quadIndex('unit', column.extent) : axisIndex('unit', units);
  const place = spread ? addIndex(scaleIndex(unitAtom, 4), laneAtom) : unitAtom;
  const { grid } = forUnits(b, target, outer.extent * units, 'id', (id) => {
    const row = b.let(operation('div', [id, constant(units)], 'i32'), 'row');
    const unit = b.let(operation('mod', [id, constant(units)], 'i32'), 'unit');
    const lowering = (entries: readonly (readonly [IndexExpr, Value])[]): Lowering => {
      const substitution = new Map(column.extent > 1 ? [[column.atom, place]] : []);
      const atoms = new Map([[outer.atom, row], [unitAtom, unit], ...entries]);
      return new Lowering(b, kernel.pool, { substitution, atoms }, bufferName(frame));
    };
    const here = lowering([]);
    const width = spread ? 4 : 1;
    const folded = b.var('folded', splat(here.value(operand), width));
    const [start, stop] = [here.value(first), here.value(last)];
    const take = (at: Value): void => {
      const value = lowering([[entry.atom, at]]).value(update);
      const next = mode === 'set' ? value : arithmetic(mode, [folded, value], value.type);
      b.assign(folded, splat(rounded(next, node.dtype), width));
    };
    // Of several values set in one slot the last stays.
    if (mode === 'set')
      b.if(less(start, stop), () => take(b.let(operation('sub', [stop, constant(1)], 'i32'), 'end')));
    else b.for('entry', start, stop, 1, take);
    here.results.set(node as Node, b.let(folded, 'result'));
    const values = kernel.writes.map((write) => here.value(write.value));
    kernel.writes.forEach((write, i) =>
      storeAt(b, here, bufferName(frame)(write.node), write, values[i]!, spread ? column : undefined),
    );
  });
  const note = `${outer.extent} slots of ${column.extent} columns, ${entry.extent} updates sorted by slot`;
  return finish(frame, b, grid, [target.workgroupSize, 1, 1], note);
}
