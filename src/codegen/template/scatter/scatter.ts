// scatter: deterministic without atomics. An invocation owns a range of slots of one line; it
// copies the operand there, then walks all updates of the line in order and folds in those that
// fall into its range. More ranges mean more parallelism and more reading of indices. Where the
// result shares the memory of its operand nothing is copied, and the work is that of the updates
// alone.

import { CompilerBug } from '../../../errors.ts';
import type { IndexExpr } from '../../../ir/index-algebra/expr.ts';
import type { ScatterMode } from '../../../ir/ops.ts';
import { scatteredInto } from '../../../schedule/cost.ts';
import { slotRanges } from '../../../schedule/passes/scatter.ts';
import { addInts, arithmetic, both, constant, less, mulInts, operation } from '../../loop/builder.ts';
import { rounded } from '../../expression/convert.ts';
import { Lowering } from '../../expression/lowering.ts';
import type { Loop, LoopOp, Value } from '../../loop/loop.ts';
import { bufferName, finish, foldGrid, invocation, openBuilder, type Frame } from '../shared/frame.ts';
import { dtypeBytes } from '../../../ir/dtype.ts';

const folding: Readonly<Record<Exclude<ScatterMode, 'set'>, LoopOp>> = {
  add: 'add',
  mul: 'mul',
  min: 'min',
  max: 'max',
};

/** The Loop of a scatter kernel. */
export function scatterLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  const { body } = kernel;
  if (body.kind !== 'scatter') throw new CompilerBug('scatter template', `got a ${body.kind} kernel`);
  const { line, slot, update, mode } = body;
  const b = openBuilder(frame);
  const name = bufferName(frame);
  const out = name(body.node);
  const into = scatteredInto(body);
  const isInPlace = into !== undefined && name(into) === out;
  const slots = isInPlace ? Math.min(slot.extent, update.extent) : slot.extent;
  const ranges = slotRanges(slots, line.extent, target);
  const width = Math.ceil(slot.extent / ranges);
  const total = line.extent * ranges;
  const size = target.workgroupSize;
  const grid = foldGrid(Math.ceil(total / size), target);
  const id = invocation(b, grid, size);
  const owned = dtypeBytes(body.node.dtype) >= 4;
  const lineValue = b.let(operation('mod', [id, constant(line.extent)], 'i32'), 'line');
  const range = b.let(operation('div', [id, constant(line.extent)], 'i32'), 'range');
  const first = b.let(mulInts(range, constant(width)), 'first');
  const stop = b.let(
    operation('min', [addInts(first, constant(width)), constant(slot.extent)], 'i32'),
    'stop',
  );
  const lowering = (entries: readonly (readonly [IndexExpr, Value])[]): Lowering =>
    new Lowering(
      b,
      kernel.pool,
      { substitution: new Map(), atoms: new Map([[line.atom, lineValue], ...entries]) },
      name,
    );

  b.if(grid[0] * grid[1] * size === total ? constant(1, 'bool') : less(id, constant(total)), () => {
    if (!isInPlace)
      b.for('slot', first, stop, 1, (at) => {
        const here = lowering([[slot.atom, at]]);
        b.store(out, here.index(here.place(body.index)), here.value(body.operand), owned);
      });
    b.if(lowering([]).guard(body.active), () =>
      b.for('upd', constant(0), constant(update.extent), 1, (step) => {
        const asked = lowering([[update.atom, step]]).value(body.target);
        const isOwned = both(operation('le', [first, asked], 'bool'), less(asked, stop));
        b.if(isOwned, () => {
          const here = lowering([
            [update.atom, step],
            [slot.atom, asked],
          ]);
          const index = b.let(here.index(here.place(body.index)), 'at');
          const value = here.value(body.value);
          const old: Value = { kind: 'load', buffer: out, index, aligned: true, type: value.type, width: 1 };
          const folded =
            mode === 'set'
              ? value
              : rounded(arithmetic(folding[mode], [old, value], value.type), body.node.dtype);
          b.store(out, index, folded, owned);
        });
      }),
    );
  });
  const note = `${line.extent} lines of ${slot.extent} slots in ${ranges} range(s), ${update.extent} updates a line${isInPlace ? ', in place' : ''}`;
  return finish(frame, b, grid, [size, 1, 1], note);
}
