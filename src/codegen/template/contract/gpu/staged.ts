// The staged form of dot and conv, for adapters where barriers are cheap: a workgroup computes a
// tileM × tileN tile, tileK steps of k at a time. Both operand tiles are evaluated once per element
// into workgroup memory (this is where a prologue runs), laid out [k][m or n] in vectors of four,
// whichever way the operand lies; then every invocation adds to its block of rows × columns sums
// from there. Edges read as zero along k; rows and columns past the end repeat the last and are not
// stored. An invocation's quads of rows and columns stand a workgroup apart, so that neighbours
// read neighbouring banks.

import { sharesWork } from '../../../../schedule/machine.ts';
import { addInts, builtin, constant, less, mulInts, operation } from '../../../loop/builder.ts';
import { registerOf } from '../../../expression/lowering.ts';
import type { Loop, LoopBuffer, Value } from '../../../loop/loop.ts';
import type { Contract } from '../problem.ts';
import { fitsRegisters } from '../size.ts';
import type { Strategy, Tile } from '../strategy.ts';
import { Slot } from '../../../../slot.ts';
import { endOf, finish, openBuilder, type Frame, type Grid } from '../../shared/frame.ts';
import {
  accumulators,
  multiplyAdd,
  rowsAtOnce,
  sharedQuad,
  TileLowering,
  tileNeeded,
  type TilePlace,
} from '../tile.ts';
import { joinNames } from '../../shared/join.ts';
import { laneOf } from '../../../loop/register.ts';
import { place } from '../../../loop/integers.ts';
import type { ColumnFolder } from './column-folds.ts';
import { tileCosts } from './costs.ts';
import { TileStager } from './tile-stager.ts';

export interface StagedTiling extends Tile {
  /** A workgroup stages tiles of both operands in its memory, tileK steps of k at a time. */
  readonly kind: 'staged';
  readonly tileM: number;
  readonly tileN: number;
  readonly tileK: number;
}

const tiles = [
  [128, 128, 8, 8, 8],
  [128, 64, 16, 8, 8],
  [128, 64, 16, 8, 4],
  [64, 64, 16, 8, 8],
  [64, 64, 16, 4, 8],
  [64, 64, 16, 4, 4],
  [32, 64, 16, 4, 4],
  [32, 32, 32, 4, 4],
] as const;

export const staged: Strategy<StagedTiling> = {
  *candidates() {
    for (const [tileM, tileN, tileK, rows, columns] of tiles)
      yield { kind: 'staged', flip: false, rows, columns, tileM, tileN, tileK };
  },
  together: { folds: true },
  isLegal(tiling, problem, target) {
    const { limits } = target;
    const { rows, columns, tileM, tileN, tileK } = tiling;
    const { batch, m, n, folds } = problem;
    const [across, down] = [tileN / columns, tileM / rows];
    // A fold must have a tiling: the smallest may be unrolled to any size.
    const isSmallest = tileM === 32 && folds !== undefined;
    return (
      (isSmallest || fitsRegisters(tiling, problem)) &&
      (folds === undefined || (tileN % folds === 0 && folds % (4 * across) === 0)) &&
      sharesWork(target) &&
      rows % 4 === 0 &&
      tileK % 4 === 0 &&
      tileM % rows === 0 &&
      tileN % columns === 0 &&
      across * down <= limits.workgroupInvocations &&
      4 * tileK * (tileM + tileN) + (folds === undefined ? 0 : foldBytes(across * down)) <=
        limits.workgroupBytes &&
      Math.max(batch, Math.ceil(m / tileM), Math.ceil(n / tileN)) <= limits.workgroupsPerDimension
    );
  },
  time(tiling, problem, target) {
    const { rows, columns, tileM, tileN, tileK } = tiling;
    const { machine, tiles: count, turns, sums } = tileCosts(tiling, problem, target);
    const { load, shared, latency, barrier } = machine;
    const invocations = (tileM / rows) * (tileN / columns);
    const filled = (load * (tileM + tileN) * rows * columns) / (tileM * tileN);
    const round = (rows + columns) * shared + sums + filled;
    return (
      Math.ceil(problem.k / tileK) *
      (tileK * Math.max(latency / 4, turns(count(tileM, tileN), invocations) * round) + 2 * barrier)
    );
  },
  loop: stagedLoop,
};

/** What folds columns, where a graph may ask for it. */
export const columnFolder: Slot<typeof ColumnFolder> = new Slot('folds of columns');

/** Workgroup memory in which so many invocations join rows, in bytes: twice a float of each row. */
function foldBytes(invocations: number): number {
  return 2 * 4 * rowsAtOnce * invocations;
}

/** Steps of k between two turns of the inner loop. */
const innerSteps = 4;

function stagedLoop(frame: Frame, body: Contract, tiling: StagedTiling): Loop {
  const { batch, m, n, k } = body;
  const { rows, columns, tileM, tileN, tileK } = tiling;
  const [threadsX, threadsY] = [tileN / columns, tileM / rows];
  const type = registerOf(body.node.dtype);
  const memory = (name: string, tile: number): LoopBuffer => ({
    name,
    space: 'workgroup',
    dtype: type === 'bool' ? 'u32' : type,
    size: tile * tileK,
    access: 'read_write',
  });
  const shared = [memory('tile_lhs', tileM), memory('tile_rhs', tileN)];
  const b = openBuilder(frame, ['tile_lhs', 'tile_rhs', ...joinNames]);
  const grid: Grid = [Math.ceil(n.extent / tileN), Math.ceil(m.extent / tileM), batch.extent];
  const [x, y] = [builtin('local', 0), builtin('local', 1)];
  const local = b.let(place(y, threadsX, x), 'local');
  const firstM = b.let(mulInts(builtin('workgroup', 1), constant(tileM)), 'first_m');
  const firstN = b.let(mulInts(builtin('workgroup', 0), constant(tileN)), 'first_n');
  const group: Value = batch.extent === 1 ? constant(0) : builtin('workgroup', 2);
  const stage = new TileStager(b, frame, body, group, local, threadsX * threadsY, tileK);
  const left = stage.side('tile_lhs', body.lhs, m, tileM, firstM, 0);
  const right = stage.side('tile_rhs', body.rhs, n, tileN, firstN, left.units);
  const sums = accumulators(b, body, rows, columns / 4);

  // The same for all of a workgroup, which meets at barriers.
  const firstQuad = mulInts(builtin('workgroup', 0), constant(tileN / 4));
  b.if(tileNeeded(b, frame, body, group, firstM, firstQuad), () => {
    b.for('k0', constant(0), endOf(b, frame, k.extent, body.bound), tileK, (k0) => {
      stage.fill(left, k0);
      stage.fill(right, k0);
      b.barrier();
      b.for('kk', constant(0), constant(tileK), innerSteps, (kk) => {
        for (let step = 0; step < innerSteps; step++) {
          const quad = (buffer: string, tile: number, at: Value): Value => {
            const line = mulInts(addInts(kk, constant(step)), constant(tile));
            return b.let(
              sharedQuad(buffer, addInts(line, mulInts(at, constant(4))), sums[0]![0]!),
              buffer.slice(5),
            );
          };
          const lhs = Array.from({ length: rows / 4 }, (_, i) =>
            quad('tile_lhs', tileM, addInts(y, constant(i * threadsY))),
          );
          const rhs = Array.from({ length: columns / 4 }, (_, j) =>
            quad('tile_rhs', tileN, addInts(x, constant(j * threadsX))),
          );
          sums.forEach((line, i) =>
            line.forEach((sum, j) => b.assign(sum, multiplyAdd(laneOf(lhs[i >> 2]!, i & 3), rhs[j]!, sum))),
          );
        }
      });
      b.barrier();
    });

    const points = new TileLowering(b, frame, body, group);
    const quads = Math.ceil(n.extent / 4);
    const isExact = { m: m.extent % tileM === 0, n: n.extent % tileN === 0 };
    const quadAt = (j: number): Value =>
      b.let(
        addInts(mulInts(builtin('workgroup', 0), constant(tileN / 4)), addInts(x, constant(j * threadsX))),
        'quad',
      );
    const rowAt = (i: number): Value => {
      const at = addInts(y, constant((i >> 2) * threadsY));
      return b.let(addInts(firstM, place(at, 4, constant(i & 3))), 'm');
    };
    const inQuads = (quad: Value): Value => (isExact.n ? constant(1, 'bool') : less(quad, constant(quads)));
    const inRows = (row: Value): Value => (isExact.m ? constant(1, 'bool') : less(row, constant(m.extent)));
    if (body.folds !== undefined) {
      const { width } = body.folds;
      const seats = { parts: threadsX, rows: threadsY, part: x, place: y };
      const folder = new columnFolder.value(b, frame, body, points, seats);
      const clamped = (at: Value, extent: number, isInside: boolean): Value =>
        isInside ? at : b.let(operation('min', [at, constant(extent - 1)], 'i32'), 'at');
      const each = width / (4 * threadsX);
      for (let part = 0; part < tileN / width; part++) {
        const column = b.let(addInts(firstN, constant(part * width)), 'n');
        const first = {
          index: column,
          inside: isExact.n ? constant(1, 'bool') : less(column, constant(n.extent)),
        };
        const own = Array.from({ length: each }, (_, j): TilePlace => {
          const quad = quadAt(part * each + j);
          return { index: clamped(quad, quads, isExact.n), inside: inQuads(quad) };
        });
        for (let i = 0; i < rows; i += rowsAtOnce) {
          const lines = Array.from({ length: rowsAtOnce }, (_, r): TilePlace => {
            const row = rowAt(i + r);
            return { index: clamped(row, m.extent, isExact.m), inside: inRows(row) };
          });
          const held = sums
            .slice(i, i + rowsAtOnce)
            .map((line) => line.slice(part * each, (part + 1) * each));
          folder.fold(lines, own, held, first);
        }
      }
      shared.push(...folder.buffers);
      return;
    }
    for (let j = 0; j < columns / 4; j++) {
      const quad = quadAt(j);
      b.if(inQuads(quad), () =>
        sums.forEach((line, i) => {
          const row = rowAt(i);
          b.if(inRows(row), () => points.write(row, quad, line[j]!));
        }),
      );
    }
  });
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent}, ${tileM}x${tileN}x${tileK} tiles in workgroup memory, ${rows}x${columns} an invocation`;
  return finish(frame, b, grid, [threadsX, threadsY, 1], note, shared);
}
