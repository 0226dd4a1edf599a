// scatter: deterministic without atomics. An invocation owns a range of slots of one line; it
// copies the operand there, then walks all updates of the line in order and folds in those that
// fall into its range. More ranges mean more parallelism and more reading of indices. Where the
// result shares the memory of its operand nothing is copied, and the work is that of the updates
// alone. On a core, lines that are neighbours and have their updates at the same slots are taken together (lines.ts).

import { CompilerBug } from '../../../errors.ts';
import { constantIndex, modIndex, substitute, type IndexExpr } from '../../../ir/index-algebra/expr.ts';
import type { ScatterMode } from '../../../ir/ops.ts';
import { scatteredInto } from '../../../schedule/cost.ts';
import { slotRanges } from '../../../schedule/passes/scatter.ts';
import { addInts, arithmetic, both, constant, less, mulInts, operation, splat } from '../../loop/builder.ts';
import { rounded } from '../../expression/convert.ts';
import { laneAtom, Lowering } from '../../expression/lowering.ts';
import type { Loop, LoopOp, Value } from '../../loop/loop.ts';
import { bufferName, finish, foldGrid, invocation, openBuilder, type Frame } from '../shared/frame.ts';
import { dtypeBytes } from '../../../ir/dtype.ts';
import { eachLine, linePartsOf } from './lines.ts';

const folding: Readonly<Record<Exclude<ScatterMode, 'set'>, LoopOp>> = {
  add: 'add',
  mul: 'mul',
  min: 'min',
  max: 'max',
};

/** What an axis is. */
type Entry = readonly [IndexExpr, Value];

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
  const parts = linePartsOf(kernel, body, target);
  const lines = parts?.parts ?? line.extent;
  const total = lines * ranges;
  const size = target.workgroupSize;
  const grid = foldGrid(Math.ceil(total / size), target);
  const id = invocation(b, grid, size);
  const owned = dtypeBytes(body.node.dtype) >= 4;
  const lineValue =
    lines === 1 && parts
      ? constant(0)
      : b.let(operation('mod', [id, constant(lines)], 'i32'), parts ? 'part' : 'line');
  const range = b.let(operation('div', [id, constant(lines)], 'i32'), 'range');
  const first = b.let(mulInts(range, constant(width)), 'first');
  const stop = b.let(
    operation('min', [addInts(first, constant(width)), constant(slot.extent)], 'i32'),
    'stop',
  );
  const at = (
    atoms: readonly Entry[],
    substitution: ReadonlyMap<IndexExpr, IndexExpr> = new Map(),
  ): Lowering => new Lowering(b, kernel.pool, { substitution, atoms: new Map(atoms) }, name);
  /** What is the same for all lines that an invocation takes. */
  const shared = (entries: readonly Entry[]): Lowering =>
    at(parts ? entries : [[line.atom, lineValue], ...entries]);
  /** Each line that an invocation takes, or each group of four. */
  const each = (entries: readonly Entry[], visit: (here: Lowering, wide: 1 | 4) => void): void => {
    if (parts === undefined) visit(shared(entries), 1);
    else
      eachLine(b, line, parts, lineValue, (place, atoms, isFour) =>
        visit(at([...atoms, ...entries], new Map([[line.atom, place]])), isFour ? 4 : 1),
      );
  };
  const placeOf = (here: Lowering): IndexExpr =>
    substitute(here.place(body.index), new Map([[laneAtom, constantIndex(0)]]));
  const store = (index: Value, value: Value, wide: 1 | 4): void =>
    b.store(out, index, wide === 1 ? value : splat(value, 4), owned);

  b.if(grid[0] * grid[1] * size === total ? constant(1, 'bool') : less(id, constant(total)), () => {
    if (!isInPlace)
      b.for('slot', first, stop, 1, (slotValue) =>
        each([[slot.atom, slotValue]], (here, wide) =>
          store(here.index(placeOf(here)), here.value(body.operand), wide),
        ),
      );
    b.if(shared([]).guard(body.active), () =>
      b.for('upd', constant(0), constant(update.extent), 1, (step) => {
        const asked = shared([[update.atom, step]]).value(body.target);
        const isOwned = both(operation('le', [first, asked], 'bool'), less(asked, stop));
        b.if(isOwned, () =>
          each(
            [
              [update.atom, step],
              [slot.atom, asked],
            ],
            (here, wide) => {
              const place = placeOf(here);
              const index = b.let(here.index(place), 'at');
              const value = here.value(body.value);
              const aligned = modIndex(place, wide) === constantIndex(0);
              const old: Value = { kind: 'load', buffer: out, index, aligned, type: value.type, width: wide };
              const folded =
                mode === 'set'
                  ? value
                  : rounded(
                      arithmetic(folding[mode], [old, splat(value, wide)], value.type),
                      body.node.dtype,
                    );
              store(index, folded, wide);
            },
          ),
        );
      }),
    );
  });
  const note = `${line.extent} lines of ${slot.extent} slots in ${ranges} range(s), ${update.extent} updates a line${isInPlace ? ', in place' : ''}${parts ? `, lines in ${parts.parts} part(s)` : ''}`;
  return finish(frame, b, grid, [size, 1, 1], note);
}
