// Products on Hopper's matrix units: when warp groups can multiply tiles that are copied for them,
// which tiles are tried, and how long they take. The kernel is built in gpu/warpgroups.ts.

import type { ContractProblem } from '../problem.ts';
import { matrixLimit } from '../size.ts';
import type { Strategy } from '../strategy.ts';
import { tileCosts } from './costs.ts';
import { WarpgroupTemplate, type WgmmaTiling } from './warpgroups.ts';

export type { WgmmaTiling };

const tiles = [
  [128, 256, 64, 4],
  [256, 128, 128, 4],
  [128, 192, 64, 5],
  [128, 128, 64, 6],
  [128, 64, 64, 8],
  [64, 256, 64, 5],
  [64, 128, 64, 8],
  [64, 64, 64, 8],
] as const;

export const wgmma: Strategy<WgmmaTiling> = {
  *candidates({ tiled }) {
    if (tiled !== true) return;
    for (const [tileM, tileN, rows, stages] of tiles)
      yield { kind: 'wgmma', flip: false, rows, columns: tileN, tileM, tileN, tileK: 64, stages };
  },
  together: { folds: true },
  isLegal(tiling, { n, tiled, matrix, folds = 1, epilogue }, { limits, matrixUnits = [], warpgroups }) {
    const { flip, rows, columns, tileM, tileN, tileK, stages } = tiling;
    return (
      !flip &&
      warpgroups !== undefined &&
      tiled === true &&
      // Where there is one column, the lanes of a quad all write it: what is copied would have to
      // repeat it.
      n > 1 &&
      matrix !== undefined &&
      matrix !== 'tf32' &&
      matrixUnits.includes(matrix) &&
      columns === tileN &&
      columns % folds === 0 &&
      [rows, tileM, tileN].every((size) => size % 64 === 0 && size <= 256) &&
      tileK === 64 &&
      tileM % rows === 0 &&
      stages >= 2 &&
      // Half of an invocation's registers hold sums, at most.
      rows * columns <= 128 * 128 &&
      128 * (tileM / rows + 1) <= limits.workgroupInvocations &&
      // What is copied begins at a multiple of 1024 bytes.
      2 * stages * tileK * (tileM + tileN) + 24 * stages + 1024 <= limits.workgroupBytes &&
      ((rows * columns) / 512) * (1 + epilogue) <= matrixLimit
    );
  },
  time(tiling, problem, target) {
    const { tileM, tileN, tileK, stages } = tiling;
    const { machine, cores, tiles: count } = tileCosts(tiling, problem, target);
    const { lanes, latency } = machine;
    // 2048 multiply-adds a clock where a side is long enough that reading it is hidden; copies pass
    // by no invocation.
    const multiplied = (tileM * tileN) / (tileN < 128 ? 1024 : 2048);
    const staged = (tileM + tileN) / (2 * lanes);
    const round = tileK * Math.max(multiplied, staged) + 4 * latency;
    const groups = Math.ceil(count(tileM, tileN) / cores);
    const written = (tileM * tileN) / (2 * lanes);
    return groups * (roundsOf(problem, tileK) * round + written) + 2 * stages * latency;
  },
  loop: (frame, body, tiling) => new WarpgroupTemplate(frame, body, tiling).loop(),
};

/** Rounds of a tile: those of a convolution have the channels of one tap. */
function roundsOf({ k, window }: ContractProblem, tileK: number): number {
  const taps = window === undefined ? 1 : window.taps * window.tapLines;
  return taps * Math.ceil(k / taps / tileK);
}
