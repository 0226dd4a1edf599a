// Convolutions of 3 × 3 taps by Winograd's F(4,3) (winograd-transforms.ts): a quarter of the products.
// A workgroup transforms its weights, then goes from block to block of output lines: it brings the
// padded input in a channel at a time (cpu/image-window.ts), transforms it into a panel of 16 tiles
// for each of 36 points, multiplies panels as products in blocks do, and transforms the sums back.
// What is not finite in the input or the weights makes whole tiles of 4 × 4 results NaN.

import { packsOperands } from '../../../../schedule/machine.ts';
import type { Target } from '../../../../schedule/target.ts';
import { CompilerBug } from '../../../../errors.ts';
import { addInts, both, constant, less, mulInts, operation, splat } from '../../../loop/builder.ts';
import type { Loop, Value } from '../../../loop/loop.ts';
import type { Contract, ContractProblem, Window } from '../problem.ts';
import { roundedUp } from '../size.ts';
import type { Strategy, Tile } from '../strategy.ts';
import { finish, foldGrid, groupNumber, type Frame } from '../../shared/frame.ts';
import { multiplyAddTime, partOf } from './blocks.ts';
import { cpu, shared } from './costs.ts';
import { imageLines, quadsOf } from './image-lines.ts';
import { ImageWindow } from './image-window.ts';
import { turned } from './panels.ts';
import { accumulators, multiplyAdd, TileLowering } from '../tile.ts';
import { openMemory } from './winograd-memory.ts';
import { divideInts, place } from '../../../loop/integers.ts';
import {
  inputPoints,
  range,
  results,
  tileInputs,
  tilePoints,
  tileResults,
  twice,
  weightPoints,
} from './winograd-transforms.ts';

export interface WinogradTiling extends Tile {
  /** conv of 3 × 3 taps: blocks of rows and of output lines, so many of the latter a workgroup. */
  readonly kind: 'winograd';
  readonly blockM: number;
  readonly lines: number;
  readonly blocks: number;
}

/** Columns of a tile of sums, as in other products in blocks: a panel of tiles. */
const width = 16;

/** Rows of a tile of sums: eight registers of sums keep both units busy, and 16 are slower. */
function rowsFor({ vectors }: Target): number {
  return ((vectors?.lanes ?? 4) * 8) / width;
}
const taps = 3;
/** Channels on either side, at least: with fewer, transforms take longer than the products they save. */
const leastChannels = 8;

export const winograd: Strategy<WinogradTiling> = {
  *candidates({ batch, m, window }, target) {
    if (window?.isPlain !== true) return;
    const rows = rowsFor(target);
    for (const partsM of [1, 2, 4, 8, 16, 32].filter((parts) => parts === 1 || m / parts >= 8))
      for (const lines of [1, 2, 4].map((count) => count * tileResults)) {
        const blocks = batch * Math.ceil(window.lines / lines);
        for (const shares of [1, 2, 8, 16].filter((count) => count <= blocks))
          yield {
            kind: 'winograd',
            flip: false,
            rows,
            columns: width,
            blockM: roundedUp(Math.ceil(m / partsM), Math.max(4, rows)),
            lines,
            blocks: Math.ceil(blocks / shares),
          };
      }
  },
  isLegal(tiling, { k, m, dtype, window }, target) {
    if (window?.isPlain !== true || tiling.flip || dtype !== 'f32' || !packsOperands(target)) return false;
    const { rows, columns, lines, blockM } = tiling;
    const channels = k / taps ** 2;
    if (columns !== width || (rows !== 2 && (target.vectors === undefined || rows % 4 !== 0))) return false;
    if (lines % tileResults !== 0 || blockM % Math.max(4, rows) !== 0) return false;
    if (Math.min(channels, m) < leastChannels) return false;
    const room = Object.values(roomOf(tiling, channels, window)).reduce((a, b) => a + b);
    return 4 * room <= target.limits.workgroupBytes;
  },
  time(tiling, problem, target) {
    const { blockM, lines, blocks } = tiling;
    const { batch, m, k, epilogue, window } = problem;
    if (window === undefined) return Infinity;
    const [channels, rows] = [k / taps ** 2, Math.min(blockM, m)];
    const columns = width * panelsOf(tiling, window);
    const sums =
      (tilePoints *
        roundedUp(rows, tiling.rows) *
        columns *
        channels *
        multiplyAddTime(tiling, problem.dtype, target)) /
      4;
    const seen = tilePoints * channels * columns * cpu.transformed;
    const left = tileResults ** 2 * rows * columns * (0.9 + 0.05 * epilogue);
    const weights = tilePoints * rows * channels * 2 * cpu.transformed;
    const all = batch * Math.ceil(window.lines / lines);
    const workgroup = blocks * (sums + seen + left) + weights + cpu.workgroup;
    return shared(Math.ceil(m / blockM) * Math.ceil(all / blocks), problem, target) * workgroup;
  },
  loop: winogradLoop,
};

/** Groups of four tiles that lie in a line. */
const groupsOf = (window: Window): number => Math.ceil(window.width / (4 * tileResults));

function panelsOf({ lines }: WinogradTiling, window: Window): number {
  return Math.ceil(((lines / tileResults) * groupsOf(window)) / 4);
}

/** Elements of a line of input after the first transform: whole groups, and what the last tile sees beyond. */
const lineRoom = (window: Window): number => 4 * tileResults * groupsOf(window) + 4;

/**
 * What is kept of a point has a line of memory more than it needs: a power of two apart, all points would
 * meet in the same few lines of a cache.
 */
function strides(blockM: number, channels: number): Readonly<Record<'weights' | 'points' | 'sums', number>> {
  return {
    weights: blockM * roundedUp(channels, 2) + width,
    points: (channels + 1) * width,
    sums: (blockM + 1) * width,
  };
}

type Part = 'weights' | 'points' | 'sums' | 'image' | 'between' | 'out';

/** Elements that a workgroup keeps. */
function roomOf(tiling: WinogradTiling, channels: number, window: Window): Readonly<Record<Part, number>> {
  const { plane } = window;
  if (plane === undefined) throw new CompilerBug('winograd template', 'there is no padded input');
  const each = strides(tiling.blockM, channels);
  return {
    weights: tilePoints * each.weights,
    points: panelsOf(tiling, window) * tilePoints * each.points,
    sums: tilePoints * each.sums,
    image: imageLines(tiling.lines, plane) * plane.line,
    between: tileInputs * lineRoom(window),
    out: tileResults * width,
  };
}

function winogradLoop(frame: Frame, body: Contract, tiling: WinogradTiling, problem: ContractProblem): Loop {
  const { batch, m, k } = body;
  const { window } = problem;
  if (window?.plane === undefined) throw new CompilerBug('winograd template', 'there is no padded input');
  const { plane } = window;
  const { rows: height, blockM, lines, blocks } = tiling;
  const channels = k.extent / taps ** 2;
  const room = roomOf(tiling, channels, window);
  const apart = strides(blockM, channels);
  const { b, buffers, kept, keep } = openMemory(frame, room);
  const blocksM = Math.ceil(m.extent / blockM);
  const blocksEach = Math.ceil(window.lines / lines);
  const total = batch.extent * blocksEach;
  const grid = foldGrid(blocksM * Math.ceil(total / blocks), frame.target);
  const groups = groupsOf(window);
  const inRegister = (frame.target.vectors?.lanes ?? 4) / 4;
  const zero = constant(0, 'f32', 4);
  const number = b.let(groupNumber(grid), 'group');
  const [share, blockAtM] = divideInts(b, number, blocksM, ['share', 'block_m']);
  const firstRow = b.let(mulInts(blockAtM, constant(blockM)), 'first_row');
  const rows = partOf(b, firstRow, blockM, m.extent, 1, 'rows');
  const pairs = partOf(b, firstRow, blockM, m.extent, height, 'pairs');
  /** Where what belongs to a point begins in what is kept of all, by rows of so many elements. */
  const ofPoint = (point: Value, each: number): Value => mulInts(point, constant(each));

  const weights = (): void => {
    const points = new TileLowering(b, frame, body, constant(0));
    const inside = (index: Value, extent: number): Value =>
      b.let(operation('min', [index, constant(extent - 1)], 'i32'), 'at');
    // A vector is two rows at two channels, or four rows at one.
    const [across, along] = height < 4 ? [2, 2] : [4, 1];
    b.for('pair', constant(0), pairs, 1, (pair) =>
      b.for('quad', constant(0), constant(height / across), 1, (quad) => {
        const some = range(across).map((i) =>
          inside(addInts(firstRow, place(pair, height, place(quad, across, constant(i)))), m.extent),
        );
        b.for('some', constant(0), constant(Math.ceil(channels / along)), 1, (step) => {
          const near = range(along).map((i) => inside(place(step, along, constant(i)), channels));
          const weight = (tap: number): Value => {
            const args = near.flatMap((channel) =>
              some.map((row) => {
                const step = b.let(place(channel, taps ** 2, constant(tap)), 'step');
                return b.let(splat(points.at({ row, step }).value(body.lhs), 1), 'w');
              }),
            );
            return b.let({ kind: 'vector', args, type: 'f32', width: 4 }, 'weight');
          };
          const square = twice(
            taps,
            (y, x) => weight(y * taps + x),
            (line) => weightPoints(b, line),
          );
          const first = place(pair, roundedUp(channels, 2), mulInts(step, constant(along)));
          const at = b.let(place(first, height, mulInts(quad, constant(across))), 'to');
          square.flat().forEach((value, point) => {
            keep('weights', addInts(at, constant(point * apart.weights)), value);
          });
        });
      }),
    );
  };

  const block = (at: Value): void => {
    const [group, inImage] = divideInts(b, at, blocksEach, ['image_of', 'block']);
    const padded = new ImageWindow(b, frame, body, lines, { group, block: inImage, image: 'image' });
    const tileLines =
      padded.lines.kind === 'constant'
        ? constant(Math.ceil(padded.lines.value / tileResults))
        : b.let(
            operation(
              'div',
              [addInts(padded.lines, constant(tileResults - 1)), constant(tileResults)],
              'i32',
            ),
            'tile_lines',
          );
    const lastLine = addInts(padded.lines, constant(taps - 2));
    b.for('channel', constant(0), constant(channels), 1, (channel) => {
      padded.begin(channel, constant(1));
      b.for('tile_line', constant(0), tileLines, 1, (tileLine) => {
        const from = range(tileInputs).map((i) => {
          const line = place(tileLine, tileResults, constant(i));
          const isInside = window.lines % tileResults === 0 || i < taps;
          const seen = isInside ? line : b.let(operation('min', [line, lastLine], 'i32'), 'line');
          return b.let(mulInts(seen, constant(plane.line)), 'from');
        });
        const down = (x: Value): void => {
          const seen = from.map((start) => b.let(kept('image', addInts(start, x)), 'd'));
          inputPoints(b, seen).forEach((value, i) =>
            keep('between', addInts(x, constant(i * lineRoom(window))), value),
          );
        };
        // As many neighbours at a time as a register holds, then the rest.
        const quads = Math.min(plane.line, lineRoom(window)) / 4;
        const whole = Math.floor(quads / inRegister);
        b.for('quad', constant(0), constant(whole), 1, (quad) =>
          range(inRegister).forEach((j) => down(place(quad, 4 * inRegister, constant(4 * j)))),
        );
        if (quads > whole * inRegister)
          b.for('quad', constant(whole * inRegister), constant(quads), 1, (quad) =>
            down(mulInts(quad, constant(4))),
          );
        b.for('four', constant(0), constant(groups), 1, (four) => {
          const slot = b.let(place(tileLine, groups, four), 'slot');
          const [panel, inPanel] = divideInts(b, slot, width / 4, ['panel', 'in_panel']);
          const to = b.let(
            addInts(
              place(panel, tilePoints * apart.points, mulInts(channel, constant(width))),
              mulInts(inPanel, constant(4)),
            ),
            'to',
          );
          b.for('row', constant(0), constant(tileInputs), 1, (row) => {
            const start = b.let(
              place(row, lineRoom(window), mulInts(four, constant(4 * tileResults))),
              'start',
            );
            const quads = range(5).map((i) => b.let(kept('between', addInts(start, constant(4 * i))), 'd'));
            const near = turned(b, quads.slice(0, 4));
            const far = turned(b, quads.slice(1)).slice(0, 2);
            const first = b.let(addInts(to, ofPoint(row, tileInputs * apart.points)), 'first');
            inputPoints(b, [...near, ...far]).forEach((value, i) =>
              keep('points', addInts(first, constant(i * apart.points)), value),
            );
          });
        });
      });
    });
    const used = b.let(mulInts(tileLines, constant(groups)), 'used');
    const panels = b.let(operation('div', [addInts(used, constant(3)), constant(4)], 'i32'), 'panels');
    b.for('panel', constant(0), panels, 1, (panel) => {
      b.for('point', constant(0), constant(tilePoints), 1, (point) => {
        const right = b.let(mulInts(place(panel, tilePoints, point), constant(apart.points)), 'right');
        b.for('pair', constant(0), pairs, 1, (pair) => tile(point, pair, right));
      });
      b.for('row', constant(0), rows, 1, (row) =>
        b.for('four', constant(0), constant(width / 4), 1, (inPanel) => {
          const slot = b.let(place(panel, width / 4, inPanel), 'slot');
          b.if(less(slot, used), () => leave(padded, row, slot, inPanel));
        }),
      );
    });
  };

  /** A few rows by 16 tiles at a point. */
  const tile = (point: Value, pair: Value, right: Value): void => {
    const sums = accumulators(b, body, height, width / 4);
    const left = b.let(
      addInts(ofPoint(point, apart.weights), mulInts(pair, constant(height * roundedUp(channels, 2)))),
      'left',
    );
    b.for('k', constant(0), constant(channels), 1, (step) => {
      const columns = range(width / 4).map((j) =>
        b.let(kept('points', addInts(right, place(step, width, constant(4 * j)))), 'b'),
      );
      sums.forEach((line, i) => {
        const row = b.let(splat(kept('weights', addInts(left, place(step, height, constant(i))), 1), 4), 'a');
        line.forEach((sum, j) => b.assign(sum, multiplyAdd(row, columns[j]!, sum)));
      });
    });
    const to = b.let(addInts(ofPoint(point, apart.sums), mulInts(pair, constant(height * width))), 'to');
    sums.forEach((line, i) =>
      line.forEach((sum, j) => keep('sums', addInts(to, constant(i * width + 4 * j)), sum)),
    );
  };

  /** Four finished tiles of a row, which lie in a line. */
  const leave = (padded: ImageWindow, row: Value, slot: Value, inPanel: Value): void => {
    const from = b.let(addInts(mulInts(row, constant(width)), mulInts(inPanel, constant(4))), 'from');
    const [tileLine, four] = divideInts(b, slot, groups, ['tile_line', 'four']);
    const square = twice(
      tileInputs,
      (y, x) => b.let(kept('sums', addInts(from, constant((y * tileInputs + x) * apart.sums))), 'm'),
      (line) => results(b, line),
    );
    square.forEach((line, y) =>
      turned(b, line).forEach((tileRow, t) => keep('out', constant(y * width + 4 * t), tileRow)),
    );
    const at = b.let(addInts(firstRow, row), 'm');
    b.for('y', constant(0), constant(tileResults), 1, (y) => {
      const line = b.let(place(tileLine, tileResults, y), 'in_block');
      b.for('x', constant(0), constant(4), 1, (x) => {
        const quad = b.let(place(four, 4, x), 'quad');
        const sum = (): Value => b.let(kept('out', place(y, width, mulInts(x, constant(4)))), 'sum');
        const isInside = both(
          window.lines % tileResults === 0 ? constant(1, 'bool') : less(line, padded.lines),
          quadsOf(window) % 4 === 0 ? constant(1, 'bool') : less(quad, constant(quadsOf(window))),
        );
        b.if(isInside, () => padded.write(at, line, quad, sum()));
      });
    });
  };

  const all = (): void => {
    weights();
    for (let x = Math.min(plane.line, lineRoom(window)); x < lineRoom(window); x += 4)
      range(tileInputs).forEach((i) => keep('between', constant(i * lineRoom(window) + x), zero));
    // Tiles that no block has are multiplied like others, and left out.
    const isFull = ((lines / tileResults) * groups) % 4 === 0 && window.lines % lines === 0;
    if (!isFull)
      b.for('quad', constant(0), constant(room.points / 4), 1, (quad) =>
        keep('points', mulInts(quad, constant(4)), zero),
      );
    const first = b.let(mulInts(share, constant(blocks)), 'first');
    const past = addInts(first, constant(blocks));
    const end = total % blocks === 0 ? past : b.let(operation('min', [past, constant(total)], 'i32'), 'end');
    b.for('at', first, end, 1, block);
  };
  const shares = blocksM * Math.ceil(total / blocks);
  if (grid[0] * grid[1] === shares) all();
  else b.if(less(number, constant(shares)), all);
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${body.n.extent}, tiles of 4x4 results by 36 products, ${blocks} blocks of ${blockM}x${lines} lines`;
  return finish(frame, b, grid, [1, 1, 1], note, buffers);
}
