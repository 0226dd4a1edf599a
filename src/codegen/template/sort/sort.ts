// sort: lines that fit workgroup memory, by a bitonic network (Batcher, 1968) over pairs of key and
// position. No two pairs are equal, so the network, which is not stable by itself, gives the one
// stable order. Short lines share a workgroup.

import { CompilerBug } from '../../../errors.ts';
import type { Node } from '../../../ir/graph.ts';
import type { IndexExpr } from '../../../ir/index-algebra/expr.ts';
import { addInts, both, builtin, constant, less, mulInts, operation } from '../../loop/builder.ts';
import { Lowering } from '../../expression/lowering.ts';
import type { Loop, LoopBuffer, Value } from '../../loop/loop.ts';
import { countedLoop } from './counted.ts';
import { bufferName, finish, foldGrid, groupNumber, openBuilder, type Frame } from '../shared/frame.ts';
import { storeAt } from '../shared/store-value.ts';
import { sharesWork } from '../../../schedule/machine.ts';

/** Elements a workgroup sorts at least, if there are enough lines. */
const wanted = 512;

/** The Loop of a sort kernel. */
export function sortLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  const { body } = kernel;
  if (body.kind !== 'sort') throw new CompilerBug('sort template', `got a ${body.kind} kernel`);
  if (!sharesWork(target)) return countedLoop(frame);
  const { line, position, key, node } = body;
  const length = position.extent;
  const padded = 2 ** Math.max(1, Math.ceil(Math.log2(length)));
  const lines = Math.max(1, Math.min(wanted / padded, 2 ** Math.ceil(Math.log2(line.extent))));
  const elements = padded * lines;
  const size = Math.min(elements / 2, 256, target.limits.workgroupInvocations);
  const shared = (['keys', 'order'] as const).map((name): LoopBuffer => ({
    name,
    space: 'workgroup',
    dtype: name === 'keys' ? 'u32' : 'i32',
    size: elements,
    access: 'read_write',
  }));
  const b = openBuilder(frame, ['keys', 'order']);
  const grid = foldGrid(Math.ceil(line.extent / lines), target);
  const item = builtin('local', 0);
  const firstLine = b.let(mulInts(groupNumber(grid), constant(lines)), 'first');
  const keyAt = (index: Value): Value => load('keys', index, 'u32');
  const orderAt = (index: Value): Value => load('order', index, 'i32');

  /**
   * Runs `visit` for this invocation's elements, with their lowering and whether they are elements
   * at all.
   */
  const elementsOf = (visit: (element: Value, at: Value, inside: Value, lowering: Lowering) => void): void =>
    b.for('e', item, constant(elements), size, (element) => {
      const of =
        lines === 1 ? firstLine : addInts(firstLine, operation('div', [element, constant(padded)], 'i32'));
      const row = b.let(of, 'line');
      const at = lines === 1 ? element : b.let(operation('mod', [element, constant(padded)], 'i32'), 'pos');
      const exact = grid[0] * grid[1] * lines === line.extent;
      const inLine = length === padded ? constant(1, 'bool') : less(at, constant(length));
      const inside = both(exact ? constant(1, 'bool') : less(row, constant(line.extent)), inLine);
      const atoms = new Map<IndexExpr, Value>([
        [line.atom, row],
        [position.atom, at],
      ]);
      const binding = { substitution: new Map(), atoms };
      visit(element, at, b.let(inside, 'inside'), new Lowering(b, kernel.pool, binding, bufferName(frame)));
    });

  elementsOf((element, at, inside, lowering) => {
    // What pads a line comes after its last element: the greatest key, at a later position.
    const found = b.var('key', constant(0xffffffff, 'u32'));
    b.if(inside, () => b.assign(found, lowering.value(key)));
    b.store('keys', element, found, true);
    b.store('order', element, at, true);
  });
  b.for('stage', constant(1), constant(Math.log2(padded) + 1), 1, (stage) => {
    const run = b.let(operation('shl', [constant(1), stage], 'i32'), 'run');
    const reach = b.var('reach', run);
    b.for('step', constant(0), stage, 1, () => {
      b.barrier();
      b.assign(reach, operation('shr', [reach, constant(1)], 'i32'));
      b.for('pair', item, constant(elements / 2), size, (pair) => {
        // Pair number `pair` spans `reach` elements, and no two pairs share one.
        const low = operation('and', [pair, operation('sub', [reach, constant(1)], 'i32')], 'i32');
        const one = b.let(operation('sub', [mulInts(pair, constant(2)), low], 'i32'), 'one');
        const other = b.let(addInts(one, reach), 'other');
        const turned = operation('and', [operation('and', [one, run], 'i32'), constant(padded - 1)], 'i32');
        const [a, c] = [b.let(keyAt(one), 'a'), b.let(keyAt(other), 'c')];
        const [i, j] = [b.let(orderAt(one), 'i'), b.let(orderAt(other), 'j')];
        const level = both(operation('eq', [c, a], 'bool'), less(j, i));
        const descends = operation('or', [less(c, a), level], 'bool');
        b.if(operation('eq', [descends, operation('eq', [turned, constant(0)], 'bool')], 'bool'), () => {
          b.store('keys', one, c, true);
          b.store('keys', other, a, true);
          b.store('order', one, j, true);
          b.store('order', other, i, true);
        });
      });
    });
  });
  b.barrier();
  elementsOf((element, _, inside, lowering) =>
    b.if(inside, () => {
      lowering.results.set(node as Node, b.let(orderAt(element), 'place'));
      const values = kernel.writes.map((write) => lowering.value(write.value));
      kernel.writes.forEach((write, i) =>
        storeAt(b, lowering, bufferName(frame)(write.node), write, values[i]!, undefined),
      );
    }),
  );
  const note = `${line.extent} lines of ${length} keys, ${lines} a workgroup`;
  return finish(frame, b, grid, [size, 1, 1], note, shared);
}

function load(buffer: string, index: Value, type: 'i32' | 'u32'): Value {
  return { kind: 'load', buffer, index, aligned: true, type, width: 1 };
}
