// The barrier-free form of dot and conv: each invocation keeps a tile of sums in registers and
// reads the operands straight from memory, one step of k at a time.

import { sharesWork } from '../../../../schedule/machine.ts';
import { constant, less, mulInts } from '../../../loop/builder.ts';
import type { Loop } from '../../../loop/loop.ts';
import type { Target } from '../../../../schedule/target.ts';
import { cpu, shared } from '../cpu/costs.ts';
import { flipsOf, isSearched, type Contract, type ContractProblem } from '../problem.ts';
import { fitsRegisters, statements } from '../size.ts';
import type { Strategy, Tile } from '../strategy.ts';
import { endOf, finish, foldGrid, invocation, openBuilder, type Frame } from '../../shared/frame.ts';
import { accumulators, multiplyAdd, span, TileLowering, tileNeeded, type AxisSpan } from '../tile.ts';
import { divideInts } from '../../../loop/integers.ts';
import { tileCosts, toCompile } from './costs.ts';

export interface RegisterTiling extends Tile {
  /** Operands are read straight from memory; no barriers. */
  readonly kind: 'registers';
}

const tiles = [8, 4, 2, 1].flatMap((rows) =>
  [64, 32, 16, 12, 8, 4]
    .filter((columns) => rows * columns <= 128)
    .map((columns) => [rows, columns] as const),
);

export const registers: Strategy<RegisterTiling> = {
  *candidates(problem) {
    for (const flip of flipsOf(problem))
      for (const [rows, columns] of tiles) yield { kind: 'registers', flip, rows, columns };
  },
  isLegal: fitsRegisters,
  time(tiling, problem, target) {
    if (target.machine === 'cpu') return timeOnCpu(tiling, problem, target);
    const { rows, columns } = tiling;
    const { machine, tiles: count, turns, direct } = tileCosts(tiling, problem, target);
    const { latency, statement, workgroup } = machine;
    const round = Math.max(latency, turns(count(rows, columns) / workgroup, workgroup) * direct);
    return problem.k * round + statement * statements(rows, columns, toCompile(problem.epilogue));
  },
  loop: registerLoop,
};

function timeOnCpu({ rows, columns }: RegisterTiling, problem: ContractProblem, target: Target): number {
  const { batch, m, n, k, rhs, epilogue } = problem;
  const quads = (rows * columns) / 4;
  const live = quads + rows + columns / 4;
  const spilled = live > cpu.registers ? live * cpu.spill : 0;
  const lines = rhs === 'n' ? (k * n > cpu.nearElements ? cpu.far : 0) : columns * cpu.single;
  const gathered = isSearched(problem) ? columns * cpu.searched : lines;
  const step = cpu.turn + quads * cpu.multiplyAdd + spilled + gathered;
  const count = batch * Math.ceil(m / rows) * Math.ceil(n / columns);
  const tile = k * step + quads * 0.25 * epilogue + 20;
  return shared(count / 8, problem, target) * 8 * tile + cpu.statement * statements(rows, columns, epilogue);
}

function registerLoop(frame: Frame, body: Contract, tiling: RegisterTiling): Loop {
  const { target } = frame;
  const { batch, m, n, k } = body;
  const { rows: height, columns } = tiling;
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
    b.if(tileNeeded(b, frame, body, group, rows[0]!.index, quads[0]!.index), () =>
      sumUp(rows, quads, points),
    );
  };
  const sumUp = (rows: AxisSpan, quads: AxisSpan, points: TileLowering): void => {
    const sums = accumulators(b, body, height, width);
    b.for('k', constant(0), endOf(b, frame, k.extent, body.bound), 1, (step) => {
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
