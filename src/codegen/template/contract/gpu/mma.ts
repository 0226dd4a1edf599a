// The form of dot and conv for matrix units (tensor cores): a workgroup computes a tileM × tileN tile, its subgroups blocks of
// rows × columns of that, in fragments of 16 × 8 sums. Tiles of both operands travel through `stages` slots of workgroup memory
// (gpu/mma-stage.ts), so that the next ones are on their way while one is multiplied. Sums leave as quads of neighbouring columns:
// invocations exchange halves with their neighbour, and the epilogue is the same as for every other form. Workgroups are numbered
// in bands of tile rows, so that those which run at a time share operands in the cache.

import { CompilerBug } from '../../../../errors.ts';
import type { Expr } from '../../../../schedule/body/expr.ts';
import { addInts, builtin, constant, less, mulInts, operation } from '../../../loop/builder.ts';
import type { Loop, Value } from '../../../loop/loop.ts';
import type { Contract } from '../problem.ts';
import { matrixOperands, narrowed } from '../problem.ts';
import type { ContractSchedule } from '../schedule.ts';
import { fragment, lanes, pairOf } from '../../shared/fragment.ts';
import { finish, openBuilder, type Frame } from '../../shared/frame.ts';
import { Stage } from './mma-stage.ts';
import { FragmentWriter, tileAt } from '../tile-write.ts';
import { divideInts, place, TileLowering } from '../tile.ts';

type Tensor = Extract<ContractSchedule, { kind: 'tensor' }>;

/** Tile rows of a band. */
const band = 8;

export function tensorLoop(frame: Frame, body: Contract, schedule: Tensor): Loop {
  const { batch, m, n, k } = body;
  const { rows, columns, tileM, tileN, tileK, stages } = schedule;
  const operand = matrixOperands(body);
  if (operand === undefined) throw new CompilerBug('tensor template', 'no matrix unit has such operands');
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
  const stage = new Stage(b, frame, {
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
  const writer = new FragmentWriter(b, body, points, lane, { m: tileM, n: tileN });
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
