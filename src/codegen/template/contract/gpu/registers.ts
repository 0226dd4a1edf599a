// The barrier-free form of dot and conv: each invocation keeps a tile of sums in registers and
// reads the operands straight from memory, one step of k at a time.

import { sharesWork } from '../../../../schedule/machine.ts';
import { constant, less, mulInts } from '../../../loop/builder.ts';
import type { Loop, Value } from '../../../loop/loop.ts';
import type { Target } from '../../../../schedule/target.ts';
import { Slot } from '../../../../slot.ts';
import { cpu, shared } from '../cpu/costs.ts';
import { flipsOf, isSearched, type Contract, type ContractProblem } from '../problem.ts';
import { fitsRegisters, statements } from '../size.ts';
import type { Strategy, Tile } from '../strategy.ts';
import { endOf, finish, foldGrid, invocation, openBuilder, type Frame } from '../../shared/frame.ts';
import { accumulators, multiplyAdd, span, TileLowering, tileNeeded, type AxisSpan } from '../tile.ts';
import { divideInts } from '../../../loop/integers.ts';
import { tileCosts, toCompile } from './costs.ts';
import type { stageResults } from './stages.ts';

export interface RegisterTiling extends Tile {
  /** Operands are read straight from memory; no barriers. */
  readonly kind: 'registers';
}

/** What an invocation computes of its rows before it multiplies, where products repeat reductions. */
export const stagesOfRows: Slot<typeof stageResults> = new Slot('reductions that products repeat');

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
  together: { products: true, stages: true },
  // Where workgroups share sums, they share reductions of rows too (split-k).
  isLegal: (tiling, problem, target) =>
    fitsRegisters(tiling, problem) &&
    ((problem.products ?? problem.stages) === undefined || !sharesWork(target)),
  time(tiling, problem, target) {
    if (target.machine === 'cpu') return timeOnCpu(tiling, problem, target);
    const { rows, columns } = tiling;
    const { products = 1, stages = 0, epilogue } = problem;
    const all = { ...tiling, columns: products * columns };
    const { machine, tiles: count, turns, direct } = tileCosts(all, problem, target);
    const { latency, statement, workgroup, load, multiplyAdd } = machine;
    // Reduced rows are as long as k, about.
    const step = direct + stages * rows * (load + multiplyAdd);
    const round = Math.max(latency, turns(count(rows, columns) / workgroup, workgroup) * step);
    const others = (products - 1) * (1 + rows) * (columns / 4);
    return problem.k * round + statement * (statements(rows, columns, toCompile(epilogue)) + others);
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
  const { batch, m, n, k, siblings = [] } = body;
  const rights = [body.rhs, ...siblings.map(({ rhs }) => rhs)];
  const { rows: height, columns } = tiling;
  const b = openBuilder(frame);
  const width = columns / 4;
  const [tilesM, quadsN] = [Math.ceil(m.extent / height), Math.ceil(n.extent / 4)];
  const tilesN = Math.ceil(quadsN / width);
  const total = batch.extent * tilesM * tilesN;
  // Few tiles: small workgroups, so that every core gets some.
  const workgroup = sharesWork(target) ? target.workgroupSize : total <= 32 ? 4 : 8;
  const grid = foldGrid(Math.ceil(total / workgroup), target);
  const id = invocation(b, grid, workgroup);
  const tile = (): void => {
    const [rest, tileN] = divideInts(b, id, tilesN, ['tile', 'tile_n']);
    const [group, tileM] =
      batch.extent === 1 ? [constant(0), rest] : divideInts(b, rest, tilesM, ['batch', 'tile_m']);
    const rows = span(b, mulInts(tileM, constant(height)), height, m.extent, m.extent % height === 0, 'm');
    const quads = span(b, mulInts(tileN, constant(width)), width, quadsN, quadsN % width === 0, 'quad');
    const points = new TileLowering(b, frame, body, group);
    b.if(tileNeeded(b, frame, body, group, rows[0]!.index, quads[0]!.index), () =>
      sumUp(rows, quads, points, group),
    );
  };
  const sumUp = (rows: AxisSpan, quads: AxisSpan, points: TileLowering, group: Value): void => {
    const indices = rows.map(({ index }) => index);
    const alone = { group, rows: indices, part: constant(0), parts: 1, left: 0 };
    const ofRows = body.stages === undefined ? [] : stagesOfRows.value(b, frame, body, alone).ofRows;
    /** Of each product: a register for every row and quad of columns. */
    const sums = rights.map(() => accumulators(b, body, height, width));
    b.for('k', constant(0), endOf(b, frame, k.extent, body.bound), 1, (step) => {
      const left = rows.map((row, i) =>
        points.at({ row: row.index, step, results: ofRows[i] }).value(body.lhs),
      );
      // Column by column: a quad of a right side is used up before the next one is read.
      quads.forEach((quad, j) => {
        const at = points.at({ quad: quad.index, step });
        rights.forEach((rhs, p) => {
          const right = at.value(rhs);
          left.forEach((row, i) => b.assign(sums[p]![i]![j]!, multiplyAdd(row, right, sums[p]![i]![j]!)));
        });
      });
    });
    rows.forEach((row, i) => {
      b.if(row.inside, () =>
        quads.forEach((quad, j) =>
          b.if(quad.inside, () => {
            const [own, ...others] = sums.map((registers) => registers[i]![j]!);
            points.write(row.index, quad.index, own!, others);
          }),
        ),
      );
    });
  };
  if (grid[0] * grid[1] * workgroup === total) tile();
  else b.if(less(id, constant(total)), tile);
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent}, ${height}x${columns} a register tile`;
  return finish(frame, b, grid, [workgroup, 1, 1], note);
}
