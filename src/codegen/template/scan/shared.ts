// A scan of lines that workgroups share. An invocation scans four neighbouring elements, the totals
// of all are scanned in workgroup memory (Hillis and Steele, 1986: log₂ steps from one half of an
// array to the other), and what came before is combined in. Lines longer than a workgroup holds are
// taken in rounds with a carry. Short lines share a workgroup.

import { CompilerBug } from '../../../errors.ts';
import type { Node } from '../../../ir/graph.ts';
import { addIndex, axisIndex, scaleIndex, type IndexExpr } from '../../../ir/index-algebra/expr.ts';
import { addInts, both, builtin, constant, less, mulInts, operation, splat } from '../../loop/builder.ts';
import { rounded } from '../../expression/convert.ts';
import { laneAtom, Lowering, quadIndex, registerOf } from '../../expression/lowering.ts';
import type { Loop, LoopBuffer, Value } from '../../loop/loop.ts';
import { bufferName, finish, foldGrid, groupNumber, openBuilder, type Frame } from '../shared/frame.ts';
import { combine, identity } from '../shared/monoid.ts';
import { storeAt } from '../shared/store-value.ts';

const totals = 'totals';

/** The Loop of a scan kernel whose lines are shared by `parts` invocations each, a power of two. */
export function sharedScanLoop(frame: Frame, parts: number): Loop {
  const { kernel, target } = frame;
  const { body } = kernel;
  if (body.kind !== 'scan') throw new CompilerBug('shared scan template', `got a ${body.kind} kernel`);
  const { line, position, monoid, reverse, exclusive } = body;
  const type = registerOf(body.node.dtype);
  const length = position.extent;
  const quads = Math.ceil(length / 4);
  const rounds = Math.ceil(quads / parts);
  const rows = Math.max(1, Math.floor(target.workgroupSize / parts));
  const grid = foldGrid(Math.ceil(line.extent / rows), target);
  // Workgroup memory has no bool.
  const stored = type === 'bool' ? 'u32' : type;
  const shared: LoopBuffer = {
    name: totals,
    space: 'workgroup',
    dtype: stored,
    size: 2 * parts * rows,
    access: 'read_write',
  };
  const b = openBuilder(frame, [totals]);
  const convert = (value: Value, to: Value['type']): Value =>
    value.type === to ? value : { kind: 'op', op: 'cast', args: [value], type: to, width: value.width };
  const none = identity(monoid, type, 1);

  const part = builtin('local', 0);
  const row = rows === 1 ? constant(0) : builtin('local', 1);
  const asked = addInts(mulInts(groupNumber(grid), constant(rows)), row);
  // All invocations must reach the barriers: lines past the end repeat the last, and store nothing.
  const exact = grid[0] * grid[1] * rows === line.extent;
  const nearest = exact ? asked : operation('min', [b.let(asked, 'asked'), constant(line.extent - 1)], 'i32');
  const unit = b.let(nearest, 'line');
  const present = exact ? constant(1, 'bool') : b.let(less(asked, constant(line.extent)), 'present');
  const base = b.let(addInts(mulInts(row, constant(2 * parts)), part), 'base');
  const totalAt = (index: Value): Value =>
    convert({ kind: 'load', buffer: totals, index, aligned: true, type: stored, width: 1 }, type);

  const lineAtom = axisIndex('unit', line.extent);
  const quadAtom = quadIndex('quad', length);
  const place = addIndex(scaleIndex(quadAtom, 4), laneAtom);
  const substitution = new Map<IndexExpr, IndexExpr>([[position.atom, place]]);
  if (line.extent > 1) substitution.set(line.atom, lineAtom);
  const carry = rounds > 1 ? b.var('carry', none) : none;

  const eachRound = (round: Value): void => {
    const turn = b.let(addInts(round, part), 'turn');
    const inLine = quads === rounds * parts ? constant(1, 'bool') : b.let(less(turn, constant(quads)), 'in');
    const kept = quads === rounds * parts ? turn : operation('min', [turn, constant(quads - 1)], 'i32');
    const quad = b.let(reverse ? operation('sub', [constant(quads - 1), kept], 'i32') : kept, 'quad');
    const atoms = new Map<IndexExpr, Value>([
      [lineAtom, unit],
      [quadAtom, quad],
    ]);
    const lowering = new Lowering(b, kernel.pool, { substitution, atoms }, bufferName(frame));
    const within =
      length % 4 === 0
        ? inLine
        : both(splat(inLine, 4), less(lowering.index(place), constant(length, 'i32', 4)));
    const value = splat(lowering.value(body.value), 4);
    const used =
      within.kind === 'constant' ? value : operation('where', [within, value, splat(none, 4)], type);
    const found = b.let(used, 'found');

    // For each lane, the combination of the lanes up to it in its group of four.
    const order = reverse ? [3, 2, 1, 0] : [0, 1, 2, 3];
    const own: Value[] = [];
    order.forEach((lane, i) => {
      const element: Value = { kind: 'lane', arg: found, lane, type, width: 1 };
      own[lane] = b.let(i === 0 ? element : combine(monoid, own[order[i - 1]!]!, element), 'sum');
    });
    let from = 0;
    b.store(totals, base, convert(own[order[3]!]!, stored), true);
    b.barrier();
    for (let reach = 1; reach < parts; reach *= 2, from = parts - from) {
      const ownTotal = b.let(totalAt(addInts(base, constant(from))), 'mine');
      const total = b.var('total', ownTotal);
      b.if(operation('le', [constant(reach), part], 'bool'), () =>
        b.assign(total, combine(monoid, totalAt(addInts(base, constant(from - reach))), ownTotal)),
      );
      b.store(totals, addInts(base, constant(parts - from)), convert(total, stored), true);
      b.barrier();
    }
    const before = b.var('before', none);
    b.if(less(constant(0), part), () => b.assign(before, totalAt(addInts(base, constant(from - 1)))));
    const prefix = b.let(rounds > 1 ? combine(monoid, carry, before) : before, 'prefix');
    const results: Value[] = [];
    order.forEach((lane, i) => {
      const inner = exclusive ? (i === 0 ? undefined : own[order[i - 1]!]!) : own[lane]!;
      results[lane] = inner === undefined ? prefix : combine(monoid, prefix, inner);
    });
    if (rounds > 1) {
      const last = addInts(mulInts(row, constant(2 * parts)), constant(from + parts - 1));
      b.assign(carry, combine(monoid, carry, totalAt(last)));
      b.barrier();
    }
    const result = rounded({ kind: 'vector', args: results, type, width: 4 }, body.node.dtype);
    lowering.results.set(body.node as Node, b.let(result, 'result'));
    b.if(both(present, inLine), () => {
      const values = kernel.writes.map((write) => lowering.value(write.value));
      kernel.writes.forEach((write, i) =>
        storeAt(b, lowering, bufferName(frame)(write.node), write, values[i]!, position),
      );
    });
  };
  if (rounds === 1) eachRound(constant(0));
  else b.for('round', constant(0), constant(rounds * parts), parts, eachRound);
  const workgroup = [parts, rows, 1] as const;
  const note = `${line.extent} lines of ${length}, ${parts} invocations a line, ${rounds} round(s)`;
  return finish(frame, b, grid, workgroup, note, [shared]);
}
