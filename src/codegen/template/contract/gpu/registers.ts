// The barrier-free form of dot and conv: each invocation keeps a tile of sums in registers and reads the operands straight
// from memory, one step of k at a time.

import { constant, less, mulInts } from '../../../loop/builder.ts';
import type { Loop } from '../../../loop/loop.ts';
import type { Contract } from '../problem.ts';
import type { ContractSchedule } from '../schedule.ts';
import { finish, foldGrid, invocation, openBuilder, type Frame } from '../../shared/frame.ts';
import { accumulators, divideInts, multiplyAdd, span, TileLowering } from '../tile.ts';
import { sharesWork } from '../../../../schedule/machine.ts';

export function registerLoop(
  frame: Frame,
  body: Contract,
  schedule: Extract<ContractSchedule, { kind: 'registers' }>,
): Loop {
  const { target } = frame;
  const { batch, m, n, k } = body;
  const { rows: height, columns } = schedule;
  const b = openBuilder(frame);
  const width = columns / 4;
  const [tilesM, quadsN] = [Math.ceil(m.extent / height), Math.ceil(n.extent / 4)];
  const tilesN = Math.ceil(quadsN / width);
  const total = batch.extent * tilesM * tilesN;
  // Few tiles: small workgroups, so that every core gets some.
  const size = sharesWork(target) ? target.workgroupSize : total <= 32 ? 4 : 8;
  const grid = foldGrid(Math.ceil(total / size), target);
  const id = invocation(b, grid, size);
  const tile = (): void => {
    const [rest, tileN] = divideInts(b, id, tilesN, ['tile', 'tile_n']);
    const [group, tileM] =
      batch.extent === 1 ? [constant(0), rest] : divideInts(b, rest, tilesM, ['batch', 'tile_m']);
    const rows = span(b, mulInts(tileM, constant(height)), height, m.extent, m.extent % height === 0, 'm');
    const quads = span(b, mulInts(tileN, constant(width)), width, quadsN, quadsN % width === 0, 'quad');
    const points = new TileLowering(b, frame, body, group);
    const sums = accumulators(b, body, height, width);
    b.for('k', constant(0), constant(k.extent), 1, (step) => {
      const left = rows.map((row) => points.at({ row: row.index, step }).value(body.lhs));
      // Column by column: a quad of the right side is used up before the next one is read.
      quads.forEach((quad, j) => {
        const right = points.at({ quad: quad.index, step }).value(body.rhs);
        left.forEach((row, i) => b.assign(sums[i]![j]!, multiplyAdd(row, right, sums[i]![j]!)));
      });
    });
    rows.forEach((row, i) => {
      b.if(row.inside, () =>
        quads.forEach((quad, j) =>
          b.if(quad.inside, () => points.write(row.index, quad.index, sums[i]![j]!)),
        ),
      );
    });
  };
  if (grid[0] * grid[1] * size === total) tile();
  else b.if(less(id, constant(total)), tile);
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent}, ${height}x${columns} a register tile`;
  return finish(frame, b, grid, [size, 1, 1], note);
}
