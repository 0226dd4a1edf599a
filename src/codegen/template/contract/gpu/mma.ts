// The form of dot and conv for matrix units (tensor cores): a workgroup computes a tileM × tileN
// tile, its subgroups blocks of rows × columns of that, in fragments of 16 × 8 sums. Tiles of both
// operands travel through `stages` slots of workgroup memory (gpu/mma-stage.ts), so that the next
// ones are on their way while one is multiplied. Sums leave as quads of neighbouring columns:
// invocations exchange halves with their neighbour, and the epilogue is the same as for every other
// form. Workgroups are numbered in bands of tile rows, so that those which run at a time share
// operands in the cache.

import { CompilerBug } from '../../../../errors.ts';
import type { Expr } from '../../../../schedule/expression/expr.ts';
import { addInts, builtin, constant, less, mulInts, operation } from '../../../loop/builder.ts';
import type { Loop, Value } from '../../../loop/loop.ts';
import { matrixOperands, narrowed, type Contract } from '../problem.ts';
import { matrixLimit } from '../size.ts';
import type { Strategy, Tile } from '../strategy.ts';
import { fragment, lanes, pairOf } from '../../shared/fragment.ts';
import { finish, openBuilder, type Frame } from '../../shared/frame.ts';
import { MmaStage } from './mma-stage.ts';
import { FragmentWriter, tileAt } from './tile-write.ts';
import { TileLowering } from '../tile.ts';
import { divideInts, place } from '../../../loop/integers.ts';
import { tileCosts } from './costs.ts';

export interface MmaTiling extends Tile {
  /**
   * Subgroups multiply tiles of 16-bit operands on matrix units, `stages` of them in workgroup
   * memory.
   */
  readonly kind: 'mma';
  readonly tileM: number;
  readonly tileN: number;
  readonly tileK: number;
  readonly stages: number;
}

/** Tile rows of a band. */
const band = 8;

const tiles = [
  [128, 256, 64, 64, 64, 3],
  [256, 128, 64, 64, 64, 3],
  [128, 128, 64, 64, 64, 3],
  [128, 128, 32, 64, 32, 4],
  [128, 128, 32, 64, 32, 2],
  [128, 64, 32, 64, 32, 3],
  [64, 128, 32, 32, 64, 3],
  [64, 64, 64, 32, 32, 3],
  [64, 64, 32, 32, 32, 3],
  [32, 64, 32, 16, 32, 3],
  [16, 64, 32, 16, 16, 3],
] as const;

export const mma: Strategy<MmaTiling> = {
  *candidates({ matrix }) {
    if (matrix === undefined) return;
    for (const [tileM, tileN, tileK, rows, columns, stages] of tiles)
      yield { kind: 'mma', flip: false, rows, columns, tileM, tileN, tileK, stages };
  },
  together: { folds: true },
  isLegal(tiling, { m, n, batch, matrix, folds = 1, epilogue }, { limits, matrixUnits = [] }) {
    const { flip, rows, columns, tileM, tileN, tileK, stages } = tiling;
    const subgroups = (tileM / rows) * (tileN / columns);
    return (
      !flip &&
      matrix !== undefined &&
      matrixUnits.includes(matrix) &&
      rows % 16 === 0 &&
      columns % 16 === 0 &&
      columns % folds === 0 &&
      tileK % 16 === 0 &&
      tileM % rows === 0 &&
      tileN % columns === 0 &&
      stages >= 2 &&
      32 * subgroups <= limits.workgroupInvocations &&
      // Lines may lie either way, and are eight elements longer than they need be.
      (matrix === 'tf32' ? 4 : 2) *
        stages *
        (Math.max(tileM * (tileK + 8), (tileM + 8) * tileK) +
          Math.max(tileN * (tileK + 8), (tileN + 8) * tileK)) <=
        limits.workgroupBytes &&
      ((rows * columns) / 128) * (1 + epilogue) <= matrixLimit &&
      Math.max(Math.ceil(m / tileM) * Math.ceil(n / tileN), batch) <= limits.workgroupsPerDimension
    );
  },
  time(tiling, problem, target) {
    const { rows, columns, tileM, tileN, tileK, stages } = tiling;
    const { machine, cores, tiles: count } = tileCosts(tiling, problem, target);
    const { lanes: inSubgroup, groups: atOnce, load, latency, barrier } = machine;
    // A core's matrix units do 512 multiply-adds of 16 bits a clock; what they read comes 16 bytes
    // at a time.
    const wide = problem.matrix === 'tf32' ? 2 : 1;
    const fragments = (wide * tileM * tileN) / 512;
    const staged = ((tileM + tileN) * load) / (inSubgroup * atOnce);
    const read = (wide * ((tileM * tileN) / rows + (tileM * tileN) / columns)) / 64;
    const groups = Math.ceil(count(tileM, tileN) / cores);
    const round = tileK * (fragments + staged + read) + barrier / stages;
    return Math.ceil(problem.k / tileK) * Math.max(latency, groups * round) + 2 * stages * latency;
  },
  loop: mmaLoop,
};

function mmaLoop(frame: Frame, body: Contract, tiling: MmaTiling): Loop {
  const { batch, m, n, k } = body;
  const { rows, columns, tileM, tileN, tileK, stages } = tiling;
  const operand = matrixOperands(body);
  if (operand === undefined) throw new CompilerBug('mma template', 'no matrix unit has such operands');
  const steps = operand === 'tf32' ? 8 : fragment.k;
  const [acrossM, acrossN] = [tileM / rows, tileN / columns];
  const [tilesM, tilesN] = [Math.ceil(m.extent / tileM), Math.ceil(n.extent / tileN)];
  const rounds = Math.ceil(k.extent / tileK);

  const b = openBuilder(frame, ['tile_lhs', 'tile_rhs']);
  const group: Value = batch.extent === 1 ? constant(0) : builtin('workgroup', 1);
  const [tileRow, tileColumn] = tileAt(b, builtin('workgroup', 0), tilesM, tilesN, band);
  const firstM = b.let(mulInts(tileRow, constant(tileM)), 'first_m');
  const firstN = b.let(mulInts(tileColumn, constant(tileN)), 'first_n');
  const lane = builtin('local', 0);
  const [warpM, warpN] = divideInts(b, builtin('local', 1), acrossN, ['warp_m', 'warp_n']);
  const stage = new MmaStage(b, frame, {
    operand,
    atoms: [[batch.atom, group]],
    local: b.let(place(builtin('local', 1), lanes, lane), 'local'),
    threads: lanes * acrossM * acrossN,
  });
  const staged = (expr: Expr): Expr => (operand === 'tf32' ? expr : narrowed(expr));
  const deep = { k, depth: tileK, slots: stages };
  const left = stage.side('tile_lhs', staged(body.lhs), { free: m, tile: tileM, ...deep });
  const right = stage.side('tile_rhs', staged(body.rhs), { free: n, tile: tileN, ...deep });
  const bring = (round: Value, slot: Value, isWanted: Value): void => {
    b.if(isWanted, () => {
      const k0 = b.let(mulInts(round, constant(tileK)), 'k0');
      stage.bring(left, firstM, k0, slot);
      stage.bring(right, firstN, k0, slot);
    });
    stage.commit();
  };
  const sums = Array.from({ length: rows / fragment.m }, (_, i) =>
    Array.from({ length: columns / fragment.n }, (_, j) => b.var(`sum_${i}_${j}`, constant(0, 'f32', 4))),
  );

  for (let early = 0; early < stages - 1; early++)
    bring(constant(early), constant(early), constant(early < rounds ? 1 : 0, 'bool'));
  b.for('tile', constant(0), constant(rounds), 1, (tile) => {
    // All but the groups of later rounds.
    stage.await(stages - 2);
    b.barrier();
    const ahead = b.let(addInts(tile, constant(stages - 1)), 'ahead');
    const slot = (of: Value, hint: string): Value =>
      b.let(operation('mod', [of, constant(stages)], 'i32'), hint);
    bring(ahead, slot(ahead, 'next_slot'), less(ahead, constant(rounds)));
    const here = slot(tile, 'slot');
    b.for('step', constant(0), constant(tileK), steps, (step) => {
      const lhs = sums.map((_, i) =>
        stage.lhs(left, here, step, addInts(mulInts(warpM, constant(rows)), constant(fragment.m * i)), lane),
      );
      const rhs = Array.from({ length: columns / 16 }, (_, j) =>
        stage.rhs(right, here, step, addInts(mulInts(warpN, constant(columns)), constant(16 * j)), lane),
      );
      sums.forEach((line, i) =>
        line.forEach((sum, j) => {
          b.mma(sum, operand, lhs[i]!, pairOf(rhs[j >> 1]!, j & 1));
        }),
      );
    });
  });

  const points = new TileLowering(b, frame, body, group);
  const writer = new FragmentWriter(b, frame, body, points, lane, { m: tileM, n: tileN });
  const quad = addInts(operation('div', [firstN, constant(4)], 'i32'), mulInts(warpN, constant(columns / 4)));
  sums.forEach((line, i) => {
    const inTile = addInts(mulInts(warpM, constant(rows)), constant(fragment.m * i));
    writer.write(line, addInts(firstM, inTile), quad);
  });
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent} on matrix units (${operand}), ${tileM}x${tileN}x${tileK} tiles in ${stages} stages, ${rows}x${columns} a subgroup`;
  return finish(
    frame,
    b,
    [tilesM * tilesN, batch.extent, 1],
    [lanes, acrossM * acrossN, 1],
    note,
    stage.memory,
  );
}
