// The form of dot and conv for targets where a workgroup is one invocation with fast memory of its own: a workgroup computes a block
// of the result. For each block of k it packs its rows of the left side, then panel by panel the columns of the right, and runs down
// the rows with a tile of sums in registers (the order of loops of Goto and van de Geijn, 2008). Sums wait in memory between blocks
// of k, and leave it through the epilogue.

import { addInts, constant, less, mulInts, operation, splat } from '../builder.ts';
import { registerOf } from '../lower.ts';
import type { Loop, LoopBuffer, Value } from '../loop.ts';
import {
  depthRoom,
  difference,
  packedRoom,
  packPanels,
  roundedUp,
  sidesOf,
  type Depth,
} from './contract-panels.ts';
import type { Contract, ContractProblem } from './contract-problem.ts';
import type { ContractSchedule } from './contract-schedule.ts';
import { finish, foldGrid, groupNumber, openBuilder, type Frame } from './frame.ts';
import { accumulators, divideInts, multiplyAdd, place, TileLowering } from './tile.ts';

type Packed = Extract<ContractSchedule, { kind: 'packed' }>;

/** Epilogues of more expressions than this are not written for every column of a panel. */
const mostUnrolled = 24;

export function packedLoop(frame: Frame, body: Contract, schedule: Packed, problem: ContractProblem): Loop {
  const { target } = frame;
  const { batch, m, n, k } = body;
  const { rows: height, columns: width, blockM, blockN, blockK } = schedule;
  const [blocksM, blocksN] = [Math.ceil(m.extent / blockM), Math.ceil(n.extent / blockN)];
  const total = batch.extent * blocksM * blocksN;
  const grid = foldGrid(total, target);
  const dtype = registerOf(body.node.dtype) as LoopBuffer['dtype'];
  const room = packedRoom(schedule, k.extent);
  const shared = (name: string, size: number): LoopBuffer => {
    return { name, space: 'workgroup', dtype, size, access: 'read_write' };
  };
  const left = shared('left', room.left);
  const right = shared('right', room.right);
  const waiting = shared('sums', room.sums);
  const buffers = [left, right, waiting];
  const b = openBuilder(
    frame,
    buffers.map(({ name }) => name),
  );
  const pairsRoom = roundedUp(blockM, 2 * height) / height;
  const quadsEach = width / 4;

  /** How much of a block lies inside: of all of its `size`, or in units of `unit`. */
  const within = (first: Value, size: number, extent: number, unit: number, hint: string): Value => {
    if (extent % size === 0) return constant(Math.ceil(size / unit));
    const rest = operation('sub', [constant(extent + unit - 1), first], 'i32');
    const units = unit === 1 ? rest : operation('div', [rest, constant(unit)], 'i32');
    return b.let(operation('min', [units, constant(Math.ceil(size / unit))], 'i32'), hint);
  };

  const block = (number: Value): void => {
    const [rest, blockAtN] = divideInts(b, number, blocksN, ['block', 'block_n']);
    const [group, blockAtM] =
      batch.extent === 1 ? [constant(0), rest] : divideInts(b, rest, blocksM, ['batch', 'block_m']);
    const firstRow = b.let(mulInts(blockAtM, constant(blockM)), 'first_row');
    const firstColumn = b.let(mulInts(blockAtN, constant(blockN)), 'first_column');
    const rows = within(firstRow, blockM, m.extent, 1, 'rows');
    const pairs = within(firstRow, blockM, m.extent, height, 'pairs');
    const panels = within(firstColumn, blockN, n.extent, width, 'panels');
    const sides = sidesOf(b, frame, body, group, problem);
    const points = new TileLowering(b, frame, body, group);

    const round = (depth: Depth, isFirst: Value, isLast: Value): void => {
      packPanels(b, left.name, sides.left, height, firstRow, pairs, depth);
      b.for('panel', constant(0), panels, 1, (panel) => {
        const column = b.let(place(panel, width, firstColumn), 'column');
        packPanels(b, right.name, sides.right, width, column, constant(1), depth);
        const firstSum =
          k.extent > blockK
            ? b.let(mulInts(panel, constant(pairsRoom * height * width)), 'first_sum')
            : constant(0);
        b.for('pair', constant(0), pairs, 1, (pair) => tile(pair, depth, isFirst, firstSum));
        b.if(isLast, () => leave(rows, firstRow, column, firstSum));
      });
    };

    const tile = (pair: Value, depth: Depth, isFirst: Value, firstSum: Value): void => {
      const slot = b.let(place(pair, height * width, firstSum), 'slot');
      const sums = accumulators(b, body, height, quadsEach);
      const each = (visit: (sum: Value, at: Value) => void): void =>
        sums.forEach((line, i) =>
          line.forEach((sum, j) => visit(sum, addInts(slot, constant(i * width + 4 * j)))),
        );
      const kept = (at: Value, sum: Value): Value => {
        return { kind: 'load', buffer: waiting.name, index: at, aligned: true, type: sum.type, width: 4 };
      };
      if (k.extent > blockK)
        b.if(operation('not', [isFirst], 'bool'), () => each((sum, at) => b.assign(sum, kept(at, sum))));
      b.for('k', constant(0), b.let(difference(depth.end, depth.first), 'steps'), 1, (step) => {
        const from = (buffer: string, index: Value, wide: 1 | 4): Value => {
          return { kind: 'load', buffer, index, aligned: true, type: sums[0]![0]!.type, width: wide };
        };
        const columns = Array.from({ length: quadsEach }, (_, j) =>
          b.let(from(right.name, place(step, width, constant(4 * j)), 4), 'b'),
        );
        sums.forEach((line, i) => {
          const at = addInts(
            mulInts(addInts(mulInts(pair, constant(depth.room)), step), constant(height)),
            constant(i),
          );
          const row = b.let(splat(from(left.name, at, 1), 4), 'a');
          line.forEach((sum, j) => b.assign(sum, multiplyAdd(row, columns[j]!, sum)));
        });
      });
      each((sum, at) => b.store(waiting.name, at, sum, true));
    };

    /** The finished sums of a panel go through the epilogue. */
    const leave = (rows: Value, firstRow: Value, column: Value, firstSum: Value): void => {
      const quadsN = Math.ceil(n.extent / 4);
      const firstQuad = b.let(operation('div', [column, constant(4)], 'i32'), 'first_quad');
      const one = (row: Value, j: Value): void => {
        const quad = b.let(addInts(firstQuad, j), 'quad');
        const inside = n.extent % width === 0 ? constant(1, 'bool') : less(quad, constant(quadsN));
        b.if(inside, () => {
          const at = addInts(firstSum, place(row, width, mulInts(j, constant(4))));
          const sum: Value = {
            kind: 'load',
            buffer: waiting.name,
            index: at,
            aligned: true,
            type: registerOf(body.node.dtype),
            width: 4,
          };
          points.write(b.let(addInts(firstRow, row), 'm'), quad, b.let(sum, 'sum'));
        });
      };
      if (problem.epilogue > mostUnrolled)
        b.for('quad_of', constant(0), constant(quadsEach), 1, (j) =>
          b.for('row', constant(0), rows, 1, (row) => one(row, j)),
        );
      else
        b.for('row', constant(0), rows, 1, (row) => {
          for (let j = 0; j < quadsEach; j++) one(row, constant(j));
        });
    };

    const depthOf = (first: Value, end: Value): Depth => {
      return { first, end, room: depthRoom(blockK, k.extent) };
    };
    const yes = constant(1, 'bool');
    if (k.extent <= blockK) round(depthOf(constant(0), constant(k.extent)), yes, yes);
    else
      b.for('first_k', constant(0), constant(k.extent), blockK, (first) => {
        const end = b.let(
          operation('min', [addInts(first, constant(blockK)), constant(k.extent)], 'i32'),
          'end_k',
        );
        const isFirst = b.let(operation('eq', [first, constant(0)], 'bool'), 'is_first');
        const isLast = b.let(operation('eq', [end, constant(k.extent)], 'bool'), 'is_last');
        round(depthOf(first, end), isFirst, isLast);
      });
  };
  const number = b.let(groupNumber(grid), 'group');
  if (grid[0] * grid[1] === total) block(number);
  else b.if(less(number, constant(total)), () => block(number));
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent}, blocks of ${blockM}x${blockN}, ${blockK} steps of k packed at a time, tiles of ${height}x${width}`;
  return finish(frame, b, grid, [1, 1, 1], note, buffers);
}
