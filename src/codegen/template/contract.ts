// dot and conv: result[b,m,n] = Σ_k lhs(b,m,k)·rhs(b,k,n). Two shapes of the same computation: register tiles without
// barriers (each invocation keeps a tile of results and reads operands straight from memory), and tiles staged in workgroup
// memory (contract-staged.ts). Operands are expressions, so casts, scalings and a convolution's padded window are read in place.

import { CompilerBug } from '../../errors.ts';
import type { Kernel } from '../../schedule/kernel.ts';
import type { Target } from '../../schedule/target.ts';
import { addInts, constant, less, mulInts, operation, type LoopBuilder } from '../builder.ts';
import type { Loop, Value } from '../loop.ts';
import { stagedLoop } from './contract-staged.ts';
import { finish, foldGrid, invocation, openBuilder, type Frame } from './frame.ts';
import { accumulators, multiplyAdd, TileLowering, type Contract } from './tile.ts';

/** Tile of one invocation: rows of m, columns of n (a multiple of 4, or 1). */
export interface TileSchedule {
  readonly staged: boolean;
  readonly rows: number;
  readonly columns: number;
}

/** Statements a kernel may unroll to: pipelines compile in about 0.1 ms a statement on the software adapter. */
const unrollLimit = 480;

/** The heuristic choice of tile. */
export function tileSchedule(kernel: Kernel, body: Contract, target: Target): TileSchedule {
  const [m, n, k] = [body.m.extent, body.n.extent, body.k.extent];
  if (
    target.cooperative &&
    m >= 32 &&
    n >= 32 &&
    k >= 16 &&
    body.batch.extent <= target.limits.workgroupsPerDimension
  ) {
    return { staged: true, rows: 4, columns: 4 };
  }
  const epilogue = Math.max(4, kernel.pool.size);
  const candidates = target.cooperative
    ? ([
        [4, 4],
        [2, 4],
        [1, 4],
      ] as const)
    : ([
        [8, 16],
        [8, 8],
        [4, 8],
        [4, 4],
        [2, 4],
        [1, 4],
      ] as const);
  for (const [rows, columns] of candidates) {
    if (rows > Math.max(1, m) || columns > Math.max(4, n) || (columns === 16 && n < 512)) continue;
    const invocations = body.batch.extent * Math.ceil(m / rows) * Math.ceil(n / columns);
    const wanted = Math.min(target.parallelism, target.cooperative ? target.parallelism : 64);
    const statements = rows * (columns / 4) * epilogue;
    if (statements <= unrollLimit && (invocations >= wanted || (rows <= 2 && columns <= 4)))
      return { staged: false, rows, columns };
  }
  return { staged: false, rows: 1, columns: 4 };
}

/** The Loop of a dot or conv kernel. */
export function contractLoop(frame: Frame): Loop {
  const { kernel, target } = frame;
  const { body } = kernel;
  if (body.kind !== 'contract') throw new CompilerBug('contract template', `got a ${body.kind} kernel`);
  const schedule = tileSchedule(kernel, body, target);
  return schedule.staged ? stagedLoop(frame, body) : registerLoop(frame, body, schedule);
}

function registerLoop(frame: Frame, body: Contract, schedule: TileSchedule): Loop {
  const { target } = frame;
  const { batch, m, n, k } = body;
  const b = openBuilder(frame);
  const quadsPerTile = schedule.columns / 4;
  const [tilesM, quadsN] = [Math.ceil(m.extent / schedule.rows), Math.ceil(n.extent / 4)];
  const tilesN = Math.ceil(quadsN / quadsPerTile);
  const total = batch.extent * tilesM * tilesN;
  const size = target.cooperative ? target.workgroupSize : Math.min(target.workgroupSize, 8);
  const grid = foldGrid(Math.ceil(total / size), target);
  const id = invocation(b, grid, size);
  const tile = (): void => {
    const tileN = b.let(operation('mod', [id, constant(tilesN)], 'i32'), 'tile_n');
    const rest = b.let(operation('div', [id, constant(tilesN)], 'i32'), 'tile');
    const tileM = b.let(operation('mod', [rest, constant(tilesM)], 'i32'), 'tile_m');
    const group = b.let(operation('div', [rest, constant(tilesM)], 'i32'), 'batch');
    const rows = span(b, tileM, schedule.rows, m.extent, 'm');
    const quads = span(b, tileN, quadsPerTile, quadsN, 'quad');
    const tileOf = new TileLowering(b, frame, body, group);
    const sums = accumulators(b, body, rows.length, quads.length);
    b.for('k', constant(0), constant(k.extent), 1, (step) => {
      const left = rows.map((row) => tileOf.at(row.index, undefined, step).value(body.lhs));
      const right = quads.map((quad) => tileOf.at(undefined, quad.index, step).value(body.rhs));
      sums.forEach((line, i) =>
        line.forEach((sum, j) => b.assign(sum, multiplyAdd(left[i]!, right[j]!, sum))),
      );
    });
    rows.forEach((row, i) => {
      b.if(row.inside, () =>
        quads.forEach((quad, j) =>
          b.if(quad.inside, () => tileOf.write(row.index, quad.index, sums[i]![j]!)),
        ),
      );
    });
  };
  if (grid[0] * grid[1] * size === total) tile();
  else b.if(less(id, constant(total)), tile);
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent}, ${schedule.rows}x${schedule.columns} a register tile`;
  return finish(frame, b, grid, [size, 1, 1], note);
}

/** Positions of a tile on an axis; those past the end repeat the last one and are not stored. */
function span(
  b: LoopBuilder,
  tile: Value,
  count: number,
  extent: number,
  hint: string,
): { index: Value; inside: Value }[] {
  const exact = extent % count === 0;
  return Array.from({ length: Math.min(count, extent) }, (_, i) => {
    const place = b.let(addInts(mulInts(tile, constant(count)), constant(i)), hint);
    if (exact) return { index: place, inside: constant(1, 'bool') };
    const index = b.let(operation('min', [place, constant(extent - 1)], 'i32'), hint);
    return { index, inside: less(place, constant(extent)) };
  });
}
