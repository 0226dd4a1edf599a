// Convolutions in blocks (cpu/blocks.ts) whose columns are positions: which blocks are tried, how
// long they take, and panels of four groups of four positions, copied tap by tap from the padded
// input in memory (cpu/image-window.ts).

import { CompilerBug } from '../../../../errors.ts';
import { groupsInRegister } from '../../../../schedule/machine.ts';
import { addInts, constant, mulInts, operation } from '../../../loop/builder.ts';
import { registerOf } from '../../../expression/lowering.ts';
import type { Loop, Value } from '../../../loop/loop.ts';
import { difference } from './panels.ts';
import type { Contract, ContractProblem, Window } from '../problem.ts';
import { roundedUp } from '../size.ts';
import type { Strategy, Tile } from '../strategy.ts';
import type { Frame } from '../../shared/frame.ts';
import {
  blockLoop,
  filledPanel,
  isLegalBlock,
  mostSteps,
  multiplyAddTime,
  panelRoom,
  tilesOf,
  type BlockPlace,
  type BlockColumns,
  type Room,
} from './blocks.ts';
import { cpu, shared } from './costs.ts';
import { goesAcross, imageLines, quadsOf } from './image-lines.ts';
import { ImageWindow } from './image-window.ts';
import { divideInts, place } from '../../../loop/integers.ts';

export interface ImageTiling extends Tile {
  /** conv: blocks of rows, and of output lines for columns, from a part of the padded input. */
  readonly kind: 'image';
  readonly blockM: number;
  readonly lines: number;
  readonly blockK: number;
}

export const image: Strategy<ImageTiling> = {
  *candidates(problem, target) {
    for (const tile of tilesOf(problem.dtype, target)) yield* blocks(problem, tile);
  },
  isLegal(tiling, problem, target) {
    const { flip, lines, blockK } = tiling;
    const { window } = problem;
    if (window?.plane === undefined || flip) return false;
    // Blocks of k are whole channels.
    if (lines > window.lines || blockK % (window.taps * window.tapLines) !== 0) return false;
    return isLegalBlock(tiling, roomOf(tiling, problem.k, window), problem, target);
  },
  time(tiling, problem, target) {
    const { rows, columns, blockM, blockK, lines } = tiling;
    const { batch, m, k, epilogue, window } = problem;
    if (window === undefined) return Infinity;
    const height = roundedUp(Math.min(blockM, m), rows);
    const panels = panelsOf(tiling, window);
    const { image: brought } = roomOf({ ...tiling, blockK: k }, k, window);
    const sums = (height * panels * columns * k * multiplyAddTime(tiling, problem.dtype, target)) / 4;
    const left = height * panels * columns * (0.1 + (0.05 * epilogue) / groupsInRegister(target));
    const tiles = (Math.ceil(k / blockK) * panels * height) / rows;
    const seen = (goesAcross(lines, window) ? 0.16 : 0.08) * k * panels * columns + cpu.filled * brought;
    const block = sums + cpu.packed * k * height + seen + 8 * tiles + left + cpu.workgroup;
    return shared(batch * Math.ceil(m / blockM) * Math.ceil(window.lines / lines), problem, target) * block;
  },
  loop: imageLoop,
};

/** Blocks of lines and of whole channels. */
function* blocks(
  { m, k, window }: ContractProblem,
  [rows, columns]: readonly [number, number],
): Generator<ImageTiling> {
  if (window?.plane === undefined) return;
  const taps = window.taps * window.tapLines;
  const channels = k / taps;
  const pieces = Math.ceil(k / mostSteps);
  // Where there are several, each begins at a multiple of four.
  const inBlock = pieces === 1 ? channels : 4 * Math.max(1, Math.floor(channels / pieces / 4));
  for (const partsM of [1, 2, 4].filter((parts) => parts === 1 || m / parts >= 32))
    for (const partsN of [1, 2, 4, 8, 16].filter((parts) => parts <= window.lines))
      yield {
        kind: 'image',
        flip: false,
        rows,
        columns,
        blockM: roundedUp(Math.ceil(m / partsM), Math.max(4, rows)),
        lines: Math.ceil(window.lines / partsN),
        blockK: taps * Math.min(channels, inBlock),
      };
}

/** Panels of a block. */
function panelsOf({ columns, lines }: ImageTiling, window: Window): number {
  const quads = goesAcross(lines, window) ? Math.ceil((lines * window.width) / 4) : lines * quadsOf(window);
  return Math.ceil((4 * quads) / columns);
}

function roomOf(tiling: ImageTiling, k: number, window: Window): Room {
  const room = panelRoom(tiling, k, panelsOf(tiling, window));
  const { plane } = window;
  if (plane === undefined) return room;
  const { blockK, lines } = tiling;
  const channels = Math.min(blockK, k) / (window.taps * window.tapLines);
  // A group of four that begins with the last position of a line looks beyond it.
  const beyond = goesAcross(lines, window) ? 4 : 0;
  return { ...room, image: channels * imageLines(lines, plane) * plane.line + beyond };
}

function imageLoop(frame: Frame, body: Contract, tiling: ImageTiling, problem: ContractProblem): Loop {
  const { window, k } = problem;
  if (window === undefined) throw new CompilerBug('image template', 'there are no windows');
  return blockLoop(frame, body, problem, {
    tiling,
    room: roomOf(tiling, k, window),
    blocksN: Math.ceil(window.lines / tiling.lines),
    size: `${tiling.lines} lines`,
    columns: (at) => imageColumns(frame, body, tiling, at),
  });
}

/** Taps that are written one after another in the packing of a channel. */
const mostTaps = 12;

function imageColumns(
  frame: Frame,
  body: Contract,
  { columns: width, lines }: ImageTiling,
  at: BlockPlace,
): BlockColumns {
  const { b } = at;
  const padded = new ImageWindow(b, frame, body, lines, at);
  const { window, planeSize } = padded;
  const taps = window.taps * window.tapLines;
  const across = goesAcross(lines, window);
  const quads = across
    ? constant(Math.ceil((lines * window.width) / 4))
    : b.let(mulInts(padded.lines, constant(padded.quads)), 'quads');
  const inPanel = width / 4;
  const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
  /** Where a group of four positions stands: its line in the block, its place in the line. */
  const positionOf = (quad: Value): readonly [y: Value, x: Value] => {
    const [y, x] = divideInts(b, quad, padded.quads, ['y', 'x']);
    return padded.quads === 1 ? [quad, constant(0)] : [y, x];
  };
  const quotient = (value: Value, by: number): Value => {
    if (value.kind === 'constant') return constant(Math.floor(value.value / by));
    return by === 1 ? value : operation('div', [value, constant(by)], 'i32');
  };
  const panels =
    quads.kind === 'constant'
      ? constant(Math.ceil(quads.value / inPanel))
      : b.let(quotient(addInts(quads, constant(inPanel - 1)), inPanel), 'panels');
  return {
    panels,
    begin: ({ first, end }) => {
      const firstChannel = b.let(quotient(first, taps), 'first_channel');
      const channels = b.let(difference(quotient(end, taps), firstChannel), 'channels');
      padded.begin(firstChannel, channels);
      // A group that begins with the last position of a line looks beyond it.
      const zeros = constant(0, registerOf(body.node.dtype), 4);
      if (across) b.store(at.image, mulInts(channels, constant(planeSize)), zeros, true);
    },
    pack: (panel, { first, end }) => {
      const views = range(inPanel).map((j) => {
        const last = addInts(quads, constant(-1));
        const quad = b.let(operation('min', [place(panel, inPanel, constant(j)), last], 'i32'), 'quad');
        return across ? padded.viewAcross(quad) : padded.viewOf(...positionOf(quad));
      });
      const channels = b.let(quotient(difference(end, first), taps), 'channels');
      const copy = (c: Value, tapLine: Value, tap: number, to: Value): void => {
        const from = b.let(addInts(mulInts(c, constant(planeSize)), padded.tapAt(tapLine, tap)), 'tap');
        views.forEach((view, j) => {
          b.store(at.right, place(to, width, constant(4 * j)), b.let(view(from), 'seen'), true);
        });
      };
      b.for('c', constant(0), channels, 1, (c) => {
        const first = mulInts(c, constant(taps));
        const line = (y: Value): void =>
          range(window.taps).forEach((x) =>
            copy(c, y, x, addInts(first, place(y, window.taps, constant(x)))),
          );
        if (taps <= mostTaps) range(window.tapLines).forEach((y) => line(constant(y)));
        else b.for('tap_line', constant(0), constant(window.tapLines), 1, line);
      });
    },
    filled: (panel) => {
      // Where groups do not go on in the next line, each line may end with one that is not full.
      const columns = across
        ? lines * window.width
        : quads.kind === 'constant'
          ? 4 * quads.value
          : { groups: quads };
      return filledPanel(b, mulInts(panel, constant(inPanel)), columns, inPanel);
    },
    write: (panel) => {
      const first = b.let(mulInts(panel, constant(inPanel)), 'first_quad');
      // Lines of whole groups follow each other without a gap.
      if (across || window.width % 4 === 0) return padded.writeAlong(first);
      return (row, j, sum) => padded.write(row, ...positionOf(b.let(addInts(first, j), 'quad')), sum);
    },
  };
}
