// Products of matrices in blocks (cpu/blocks.ts): which blocks are tried, how long they take, and
// the columns of a block.

import { groupsInRegister } from '../../../../schedule/machine.ts';
import { addInts, constant, mulInts, operation } from '../../../loop/builder.ts';
import type { Loop, Value } from '../../../loop/loop.ts';
import type { Target } from '../../../../schedule/target.ts';
import { flippedProblem, isSearched, type Contract, type ContractProblem } from '../problem.ts';
import { roundedUp } from '../size.ts';
import type { Strategy, Tile } from '../strategy.ts';
import type { Frame } from '../../shared/frame.ts';
import { neededOf } from '../../shared/needed.ts';
import { TileLowering } from '../tile.ts';
import { place } from '../../../loop/integers.ts';
import {
  blockLoop,
  filledPanel,
  isLegalBlock,
  mostSteps,
  multiplyAddTime,
  panelRoom,
  partOf,
  tilesOf,
  type BlockPlace,
  type BlockColumns,
  type Room,
} from './blocks.ts';
import { cpu, shared } from './costs.ts';
import { packPanels } from './panels.ts';

export interface PackedTiling extends Tile {
  /**
   * A workgroup packs panels of both operands, blockK steps of k at a time, and multiplies blockM
   * rows and blockN columns.
   */
  readonly kind: 'packed';
  readonly blockM: number;
  readonly blockN: number;
  readonly blockK: number;
}

export const packed: Strategy<PackedTiling> = {
  *candidates(problem, target) {
    for (const flip of [false, true])
      for (const tile of tilesOf(problem.dtype, target))
        yield* blocks(flip ? flippedProblem(problem) : problem, flip, tile);
  },
  isLegal(tiling, problem, target) {
    return (
      tiling.blockN % tiling.columns === 0 && isLegalBlock(tiling, roomOf(tiling, problem), problem, target)
    );
  },
  time(tiling, problem, target) {
    const { flip, rows, columns, blockM, blockN } = tiling;
    const { batch, m, n, k, epilogue } = problem;
    const [height, width] = [roundedUp(Math.min(blockM, m), rows), roundedUp(Math.min(blockN, n), columns)];
    const sums =
      (height * width * k * multiplyAddTime(tiling, problem.dtype, target)) / 4 +
      tileTurns(tiling, height * width, k, target);
    // Results lie along n: the other way round each is stored alone.
    const atOnce = flip ? 1 : groupsInRegister(target);
    const left = height * width * ((flip ? 0.4 : 0.1) + (0.05 * epilogue) / atOnce);
    // Lines along the free axis are copied as they are.
    const plain = (along: 'm' | 'n' | 'k' | 'none'): number =>
      target.vectors !== undefined && along !== 'k' && along !== 'none' ? cpu.copied : cpu.packed;
    const [tall, wide] = [plain(problem.lhs), plain(problem.rhs)].map((time, side) =>
      isSearched(problem) && side === (flip ? 0 : 1) ? cpu.searched : time,
    ) as [number, number];
    const decoded = problem.blocks === undefined ? 0 : problem.blocks.side === 'lhs' ? height : width;
    const block = sums + k * (height * tall + width * wide + decoded * cpu.decoded) + left + cpu.workgroup;
    return shared(batch * Math.ceil(m / blockM) * Math.ceil(n / blockN), problem, target) * block;
  },
  loop: packedLoop,
};

/** Blocks that divide the result evenly, and steps of k that divide k so. */
function* blocks(
  { m, n, k }: ContractProblem,
  flip: boolean,
  [rows, columns]: readonly [number, number],
): Generator<PackedTiling> {
  const evenly = (extent: number, parts: number, to: number): number =>
    roundedUp(Math.ceil(extent / parts), to);
  const blockK = evenly(k, Math.ceil(k / mostSteps), 4);
  const shares = (extent: number, least: number): readonly number[] =>
    [1, 2, 4, 8, 16, 32, 64].filter((parts) => parts === 1 || extent / parts >= least);
  for (const partsM of shares(m, 32))
    for (const partsN of shares(n, 64)) {
      const blockM = evenly(m, partsM, Math.max(4, rows));
      const blockN = evenly(n, partsN, columns);
      yield { kind: 'packed', flip, rows, columns, blockM, blockN, blockK };
    }
}

/**
 * Time of beginning and leaving tiles of sums, which counts where wide registers are through with a
 * tile sooner.
 */
function tileTurns(
  { rows, columns, blockK }: PackedTiling,
  sums: number,
  k: number,
  { vectors }: Target,
): number {
  return vectors === undefined ? 0 : (sums / (rows * columns)) * Math.ceil(k / blockK) * cpu.tile;
}

function roomOf(tiling: PackedTiling, { n, k }: ContractProblem): Room {
  return panelRoom(tiling, k, Math.ceil(Math.min(tiling.blockN, n) / tiling.columns));
}

function packedLoop(frame: Frame, body: Contract, tiling: PackedTiling, problem: ContractProblem): Loop {
  return blockLoop(frame, body, problem, {
    tiling,
    room: roomOf(tiling, problem),
    blocksN: Math.ceil(problem.n / tiling.blockN),
    blockN: tiling.blockN,
    size: String(tiling.blockN),
    columns: (at) => plainColumns(frame, body, tiling, at),
  });
}

/** Columns of a matrix. */
function plainColumns(
  frame: Frame,
  body: Contract,
  { columns: width, blockN: size }: PackedTiling,
  { b, group, block, right, sides }: BlockPlace,
): BlockColumns {
  const { extent } = body.n;
  const points = new TileLowering(b, frame, body, group);
  const first = b.let(mulInts(block, constant(size)), 'first_column');
  const isWhole = frame.target.vectors !== undefined && extent % width === 0;
  const columnOf = (panel: Value): Value => b.let(place(panel, width, first), 'column');
  const firstQuad = (panel: Value): Value =>
    b.let(operation('div', [columnOf(panel), constant(4)], 'i32'), 'first_quad');
  return {
    panels: partOf(b, first, size, extent, width, 'panels', neededOf(b, frame, body.n)),
    begin: () => {},
    pack: (panel, depth) =>
      packPanels(b, right, sides.right, width, columnOf(panel), constant(1), depth, isWhole),
    filled: (panel) =>
      filledPanel(b, extent % width === 0 ? constant(0) : firstQuad(panel), extent, width / 4),
    write: (panel) => {
      const first = firstQuad(panel);
      return (row, j, sum, isFull) => points.write(row, b.let(addInts(first, j), 'quad'), sum, [], isFull);
    },
  };
}
