// jacobi-rows: the rows of matrices are rotated in pairs, in the result itself, until any two are
// orthogonal. On a core one invocation takes a matrix and walks the pairs row by row: a row stays in
// the nearest cache while the others pass it. On a GPU a workgroup takes a matrix: a tournament
// (R. Brent, F. Luk, 1985) names n/2 pairs a round that share no row, and a few invocations share a
// pair. Sweeps end when none has turned anything; invocations go through the barriers of those that
// are left, since they may not part there.

import { CompilerBug } from '../../../errors.ts';
import type { Node } from '../../../ir/graph.ts';
import { sharesWork } from '../../../schedule/machine.ts';
import { addInts, both, builtin, constant, less, mulInts, operation } from '../../loop/builder.ts';
import type { Loop, LoopBuffer, Value } from '../../loop/loop.ts';
import { bufferName, finish, foldGrid, groupNumber, openBuilder, type Frame } from '../shared/frame.ts';
import { copyRows } from './copy.ts';
import { Pair, tolerances, type RowsBody } from './pair.ts';

/** Sweeps over all pairs at most; six to ten do. */
const sweeps = 30;

/** The Loop of a kernel that rotates rows. */
export function jacobiRowsLoop(frame: Frame): Loop {
  const { body } = frame.kernel;
  if (body.kind !== 'jacobi-rows') throw new CompilerBug('jacobi template', `got a ${body.kind} kernel`);
  return sharesWork(frame.target) ? sharedLoop(frame, body) : serialLoop(frame, body);
}

function serialLoop(frame: Frame, body: RowsBody): Loop {
  const b = openBuilder(frame);
  const grid = foldGrid(body.matrix.extent, frame.target);
  const n = body.row.extent;
  b.if(grid[1] === 1 ? constant(1, 'bool') : less(groupNumber(grid), constant(body.matrix.extent)), () => {
    const matrix = b.let(groupNumber(grid), 'matrix');
    copyRows(frame, b, body, matrix, constant(0), 1);
    const out = bufferName(frame)(body.node as Node);
    const start = b.let(mulInts(matrix, constant(n * body.column.extent)), 'start');
    const rowAt = (i: Value): Value => b.let(addInts(start, mulInts(i, constant(body.column.extent))), 'row');
    const active = b.var('active', constant(1));
    b.for('sweep', constant(0), constant(sweeps), 1, () =>
      b.if(operation('ne', [active, constant(0)], 'bool'), () => {
        b.assign(active, constant(0));
        b.for('p', constant(0), constant(n - 1), 1, (p) => {
          const x = rowAt(p);
          const square = new Pair(b, body, out, x, x, constant(0), 1).square();
          b.for('q', addInts(p, constant(1)), constant(n), 1, (q) => {
            const pair = new Pair(b, body, out, x, rowAt(q), constant(0), 1);
            pair.turn(pair.products(square), () => b.assign(active, constant(1)), square);
          });
        });
      }),
    );
  });
  const note = `${body.matrix.extent} matrices of ${n} rows, one an invocation`;
  return finish(frame, b, grid, [1, 1, 1], note);
}

/** Invocations that share a pair of rows at most: each adds up what all have found. */
const mostPerPair = 16;

/** How many pairs there are in a round, how many invocations share one, and how many there are in all. */
function teamsOf(frame: Frame, body: RowsBody): { pairs: number; team: number; size: number } {
  const pairs = Math.max(1, Math.ceil(body.row.extent / 2));
  const most = Math.min(256, frame.target.limits.workgroupInvocations);
  // Workgroup memory, through which a team adds up, holds no f64.
  const shares = body.node.dtype === 'f64' ? 1 : mostPerPair;
  const slots = Math.min(most, 2 ** Math.ceil(Math.log2(pairs)));
  const team = Math.max(1, Math.min(shares, most / slots));
  return { pairs, team, size: slots * team };
}

function sharedLoop(frame: Frame, body: RowsBody): Loop {
  const { pairs, team, size } = teamsOf(frame, body);
  const n = body.row.extent;
  const sums = tolerances(body).sums;
  const partials: LoopBuffer = {
    name: 'partials',
    space: 'workgroup',
    dtype: 'f32',
    size: sums * size,
    access: 'read_write',
  };
  const flag: LoopBuffer = {
    name: 'turned',
    space: 'workgroup',
    dtype: 'u32',
    size: 1,
    access: 'read_write',
  };
  const b = openBuilder(frame, [partials.name, flag.name]);
  const grid = foldGrid(body.matrix.extent, frame.target);
  const item = builtin('local', 0);
  const out = bufferName(frame)(body.node as Node);
  const [zero, one] = [constant(0, 'u32'), constant(1, 'u32')];
  const first = operation('eq', [item, constant(0)], 'bool');
  b.if(grid[1] === 1 ? constant(1, 'bool') : less(groupNumber(grid), constant(body.matrix.extent)), () => {
    const matrix = b.let(groupNumber(grid), 'matrix');
    copyRows(frame, b, body, matrix, item, size);
    const start = b.let(mulInts(matrix, constant(n * body.column.extent)), 'start');
    const rowAt = (i: Value): Value => b.let(addInts(start, mulInts(i, constant(body.column.extent))), 'row');
    const slot = b.let(operation('div', [item, constant(team)], 'i32'), 'slot');
    const place = b.let(operation('mod', [item, constant(team)], 'i32'), 'place');
    b.if(first, () => b.store(flag.name, constant(0), one, true));
    const players = 2 * pairs;
    b.for('sweep', constant(0), constant(sweeps), 1, () => {
      b.barrier();
      const active = b.let(
        operation(
          'ne',
          [
            { kind: 'load', buffer: flag.name, index: constant(0), aligned: true, type: 'u32', width: 1 },
            zero,
          ],
          'bool',
        ),
        'active',
      );
      b.barrier();
      b.if(first, () => b.store(flag.name, constant(0), zero, true));
      b.for('round', constant(0), constant(players - 1), 1, (round) =>
        b.for('base', constant(0), constant(pairs), size / team, (base) => {
          const number = b.let(addInts(base, slot), 'number');
          // Player number players − 1 stays, the others move round the table.
          const turn = (by: Value): Value =>
            operation('mod', [by, constant(Math.max(1, players - 1))], 'i32');
          const left = b.let(turn(addInts(round, number)), 'left');
          const opposite = turn(addInts(operation('sub', [round, number], 'i32'), constant(players - 1)));
          const right = b.let(
            operation(
              'where',
              [operation('eq', [number, constant(0)], 'bool'), constant(players - 1), opposite],
              'i32',
            ),
            'right',
          );
          const p = b.let(operation('min', [left, right], 'i32'), 'p');
          const q = b.let(operation('max', [left, right], 'i32'), 'q');
          const plays = b.let(
            both(active, both(less(number, constant(pairs)), less(q, constant(n)))),
            'plays',
          );
          const pair = new Pair(b, body, out, rowAt(p), rowAt(q), place, team);
          const whenTurned = (): void => b.atomic('or', flag.name, constant(0), one);
          b.barrier();
          if (team === 1) {
            b.if(plays, () => pair.turn(pair.products(), whenTurned));
            return;
          }
          b.if(plays, () =>
            pair.products().forEach((sum, s) => {
              const at = addInts(mulInts(item, constant(sums)), constant(s));
              b.store(partials.name, at, sum, true);
            }),
          );
          b.barrier();
          b.if(plays, () => {
            const totals = Array.from({ length: sums }, () => b.var('total', constant(0, 'f32')));
            b.for('other', constant(0), constant(team), 1, (other) => {
              const mate = addInts(mulInts(slot, constant(team)), other);
              totals.forEach((total, s) => {
                const index = addInts(mulInts(mate, constant(sums)), constant(s));
                const found: Value = {
                  kind: 'load',
                  buffer: partials.name,
                  index,
                  aligned: true,
                  type: 'f32',
                  width: 1,
                };
                b.assign(total, operation('add', [total, found], 'f32'));
              });
            });
            pair.turn(totals, whenTurned);
          });
        }),
      );
    });
  });
  const note = `${body.matrix.extent} matrices of ${n} rows, ${team} invocation(s) a pair`;
  return finish(frame, b, grid, [size, 1, 1], note, team === 1 ? [flag] : [partials, flag]);
}
