// The gradient of a convolution of 3 × 3 taps by its weights: Winograd's F(4,3) transposed
// (winograd-transforms.ts). Such a gradient is a convolution whose results are the 3 × 3 weights, and
// whose taps are the gradient of the results. A workgroup has a block of the channels of both sides.
// It goes over all images by a few lines of tiles at a time: it brings 6 × 6 pixels of the input and
// 4 × 4 of the gradient in with channels for lanes (cpu/channel-lines.ts), transforms both into 36
// points, and adds to the sums of each point the product of channels × tiles by tiles × channels. At
// the end it transforms the sums into 3 × 3 weights. What is not finite in a channel makes all its
// weights NaN.

import { axisIndex, addIndex, constantIndex, scaleIndex } from '../../../../ir/index-algebra/expr.ts';
import { packsOperands } from '../../../../schedule/machine.ts';
import type { Target } from '../../../../schedule/target.ts';
import { CompilerBug } from '../../../../errors.ts';
import { addInts, arithmetic, constant, less, mulInts, operation, splat } from '../../../loop/builder.ts';
import type { Loop, Value } from '../../../loop/loop.ts';
import { divideInts, place } from '../../../loop/integers.ts';
import type { Contract, ContractProblem, Window } from '../problem.ts';
import { roundedUp } from '../size.ts';
import type { Strategy, Tile } from '../strategy.ts';
import { finish, foldGrid, groupNumber, type Frame } from '../../shared/frame.ts';
import { accumulators, multiplyAdd, TileLowering } from '../tile.ts';
import { openMemory } from './winograd-memory.ts';
import { multiplyAddTime, partOf, tilesOf } from './blocks.ts';
import { bringLine, type Pixels } from './channel-lines.ts';
import { cpu, shared } from './costs.ts';
import { difference, turned } from './panels.ts';
import {
  inputPoints,
  range,
  resultPoints,
  tileInputs,
  tilePoints,
  tileResults,
  twice,
  weightGradients,
} from './winograd-transforms.ts';

export interface WinogradWeightsTiling extends Tile {
  /** conv of 3 × 3 results: a block of output channels by one of inputs, so many lines of tiles at a time. */
  readonly kind: 'winograd-weights';
  readonly blockM: number;
  readonly blockN: number;
  readonly lines: number;
}

const taps = 3;
/** Tiles of a block, about: as many as keep panels of a point in the first cache. */
const usualTiles = 48;

/** Tiles in a line, and lines of tiles in an image. */
const tilesIn = ({ taps: width }: Window): number => Math.ceil(width / tileResults);
const tileLinesIn = ({ tapLines }: Window): number => Math.ceil(tapLines / tileResults);

/** Lines of tiles that are transformed before products are summed: sums depend on it, so sizes alone decide. */
function linesOf(window: Window, images: number): number {
  return Math.min(Math.max(1, Math.round(usualTiles / tilesIn(window))), images * tileLinesIn(window));
}

const imagesOf = ({ k }: ContractProblem, { taps, tapLines }: Window): number => k / (taps * tapLines);

export const winogradWeights: Strategy<WinogradWeightsTiling> = {
  *candidates(problem, target) {
    const { batch, m, window } = problem;
    if (window?.isGradient !== true) return;
    const lines = linesOf(window, imagesOf(problem, window));
    for (const [rows, columns] of tiles(target))
      for (const partsM of [1, 2, 4, 8])
        for (const partsN of [1, 2, 4, 8]) {
          const blockM = roundedUp(Math.ceil(m / partsM), unitOf(rows));
          const blockN = roundedUp(Math.ceil(batch / partsN), columns);
          yield { kind: 'winograd-weights', flip: false, rows, columns, blockM, blockN, lines };
        }
  },
  isLegal(tiling, { window }, target) {
    const { flip, rows, columns, blockM, blockN } = tiling;
    if (window?.isGradient !== true || flip || !packsOperands(target)) return false;
    if (rows !== 2 && (target.vectors === undefined || rows % 4 !== 0)) return false;
    if (columns % 4 !== 0 || blockM % unitOf(rows) !== 0 || blockN % columns !== 0) return false;
    const room = Object.values(roomOf(tiling, window)).reduce((a, b) => a + b);
    return 4 * room <= target.limits.workgroupBytes;
  },
  time(tiling, problem, target) {
    const { rows, columns, blockM, blockN, lines } = tiling;
    const { batch, m, epilogue, window } = problem;
    if (window === undefined) return Infinity;
    const allLines = imagesOf(problem, window) * tileLinesIn(window);
    const count = allLines * tilesIn(window);
    const sums =
      tilePoints * blockM * blockN * count * (multiplyAddTime(tiling, problem.dtype, target) / 4) +
      tilePoints * ((blockM * blockN) / (rows * columns)) * Math.ceil(allLines / lines) * cpu.tile;
    const wide = 4 / (target.vectors?.lanes ?? 4);
    const transforms = tilePoints * count * (blockM + blockN) * cpu.transformed * wide;
    const brought = count * tileResults * (tileInputs * blockN + tileResults * blockM) * cpu.packed;
    const left = blockM * blockN * (tilePoints * cpu.transformed + taps ** 2 * (0.4 + 0.05 * epilogue));
    const groups = Math.ceil(m / blockM) * Math.ceil(batch / blockN);
    const each = sums + transforms + brought + left + cpu.workgroup;
    return shared(groups, problem, target) * each;
  },
  loop: weightsLoop,
};

/** Tiles of sums: those of other products, and for few channels those that are a register wide. */
function tiles(target: Target): readonly (readonly [rows: number, columns: number])[] {
  const usual = tilesOf('f32', target);
  const lanes = target.vectors?.lanes ?? 4;
  if (lanes === 4) return usual;
  const [rows] = usual[0]!;
  return [...usual, [rows, lanes], [8, lanes]];
}

/** What rows of a block are a multiple of: of whole tiles, and of groups of four channels. */
const unitOf = (rows: number): number => (rows < 4 ? 4 : rows);

type Part = 'sums' | 'seen' | 'given' | 'pixels' | 'out';

/** Pixels of a line that tiles see. */
const lineRoom = (window: Window): number => tileResults * tilesIn(window) + taps - 1;

/**
 * What is kept of a point has a line of memory more than it needs: a power of two apart, all points would
 * meet in the same few lines of a cache.
 */
function strides({ blockM, blockN, lines }: WinogradWeightsTiling, window: Window): Apart {
  const count = lines * tilesIn(window);
  return { sums: blockM * blockN + 16, seen: count * blockN + 16, given: count * blockM + 16 };
}

type Apart = Readonly<Record<'sums' | 'seen' | 'given', number>>;

/** Elements that a workgroup keeps. */
function roomOf(tiling: WinogradWeightsTiling, window: Window): Readonly<Record<Part, number>> {
  const apart = strides(tiling, window);
  return {
    sums: tilePoints * apart.sums,
    seen: tilePoints * apart.seen,
    given: tilePoints * apart.given,
    pixels: tileInputs * lineRoom(window) * Math.max(tiling.blockM, tiling.blockN),
    out: 4 * roundedUp(taps ** 2, 4),
  };
}

/** One side of the products: pixels of which line of an image, and what becomes of them. */
interface Side {
  readonly pixels: Pixels;
  readonly part: 'seen' | 'given';
  /** Channels of the block, and the first. */
  readonly channels: number;
  readonly first: Value;
  /** Lines of pixels in a tile, and in an image; what lies beyond counts as zeros, or as the last line. */
  readonly lines: number;
  readonly inImage: number;
  readonly beyond: 'zeros' | 'last';
  readonly image: Pixels['row'];
  readonly line: Pixels['row'];
  readonly transform: typeof inputPoints;
}

function weightsLoop(
  frame: Frame,
  body: Contract,
  tiling: WinogradWeightsTiling,
  problem: ContractProblem,
): Loop {
  const { batch, m, k, image } = body;
  const { window } = problem;
  if (window === undefined || image === undefined)
    throw new CompilerBug('winograd template', 'there is no padded input');
  const { rows: height, columns: width, blockM, blockN, lines } = tiling;
  const room = roomOf(tiling, window);
  const apart = strides(tiling, window);
  const { b, buffers, kept, keep } = openMemory(frame, room);
  const blocksN = Math.ceil(batch.extent / blockN);
  const total = Math.ceil(m.extent / blockM) * blocksN;
  const grid = foldGrid(total, frame.target);
  const zero = constant(0, 'f32', 4);
  const number = b.let(groupNumber(grid), 'group');
  const [blockAtM, blockAtN] = divideInts(b, number, blocksN, ['block_m', 'block_n']);
  const firstRow = b.let(mulInts(blockAtM, constant(blockM)), 'first_row');
  const firstColumn = b.let(mulInts(blockAtN, constant(blockN)), 'first_column');
  const images = imagesOf(problem, window);
  const [tileCount, tileLines] = [tilesIn(window), tileLinesIn(window)];
  /** Groups of four channels that a register holds, where a pixel has whole registers of them. */
  const inRegister = (channels: number): number => {
    let count = (frame.target.vectors?.lanes ?? 4) / 4;
    while ((channels / 4) % count !== 0) count /= 2;
    return count;
  };
  const zeros = (part: Part, from: Value, count: number): void =>
    b.for('zero', constant(0), constant(count / 4), 1, (i) => keep(part, place(i, 4, from), zero));

  const lineAxis = axisIndex('tap_line', window.tapLines);
  const imageAxis = axisIndex('tap_image', images);
  const sides: readonly Side[] = [
    {
      pixels: {
        value: image.value,
        channel: batch,
        column: image.spatial[1]!,
        row: constantIndex(0),
        width: window.taps + taps - 1,
      },
      part: 'seen',
      channels: blockN,
      first: firstColumn,
      lines: tileInputs,
      inImage: window.tapLines + taps - 1,
      beyond: 'last',
      image: image.channel.atom,
      line: image.spatial[0]!.atom,
      transform: inputPoints,
    },
    {
      pixels: {
        value: body.lhs,
        channel: m,
        column: k,
        row: addIndex(
          scaleIndex(imageAxis, window.tapLines * window.taps),
          scaleIndex(lineAxis, window.taps),
        ),
        width: window.taps,
      },
      part: 'given',
      channels: blockM,
      first: firstRow,
      lines: tileResults,
      inImage: window.tapLines,
      beyond: 'zeros',
      image: imageAxis,
      line: lineAxis,
      transform: resultPoints,
    },
  ];

  /** Brings a line of tiles in, and transforms it along both axes: its first tile is number `tile`. */
  const points = (side: Side, imageNumber: Value, tileLine: Value, tile: Value): void => {
    const { pixels, part, channels, first, transform } = side;
    const line = lineRoom(window) * channels;
    b.for('y', constant(0), constant(side.lines), 1, (y) => {
      const at = b.let(place(tileLine, tileResults, y), 'line');
      const to = b.let(mulInts(y, constant(line)), 'to');
      const last = constant(side.inImage - 1);
      const inside = side.beyond === 'last' ? b.let(operation('min', [at, last], 'i32'), 'line_inside') : at;
      const atoms = [
        [side.image, imageNumber],
        [side.line, inside],
      ] as const;
      const isAlways = side.beyond === 'last' || window.tapLines % tileResults === 0;
      b.if(
        isAlways ? constant(1, 'bool') : less(at, constant(side.inImage)),
        () => {
          bringLine(
            b,
            frame,
            pixels,
            atoms.filter(([atom]) => atom.kind === 'axis'),
            first,
            { buffer: 'pixels', to, channels },
          );
          const rest = (lineRoom(window) - pixels.width) * channels;
          if (rest > 0) zeros('pixels', addInts(to, constant(pixels.width * channels)), rest);
        },
        () => zeros('pixels', to, line),
      );
    });
    const count = inRegister(channels);
    b.for('four', constant(0), constant(line / 4 / count), 1, (group) =>
      range(count).forEach((j) => {
        const x = place(group, 4 * count, constant(4 * j));
        const down = range(side.lines).map((y) => b.let(kept('pixels', addInts(x, constant(y * line))), 'd'));
        transform(b, down).forEach((value, y) => keep('pixels', addInts(x, constant(y * line)), value));
      }),
    );
    const perTile = tileResults * channels;
    b.for('row', constant(0), constant(tileInputs), 1, (row) => {
      const start = b.let(mulInts(row, constant(line)), 'start');
      const to = b.let(
        addInts(mulInts(row, constant(tileInputs * apart[part])), mulInts(tile, constant(channels))),
        'to_points',
      );
      b.for('tile', constant(0), constant(tileCount), 1, (inLine) =>
        b.for('four', constant(0), constant(channels / 4 / count), 1, (group) =>
          range(count).forEach((j) => {
            const channel = place(group, 4 * count, constant(4 * j));
            const from = addInts(place(inLine, perTile, start), channel);
            const goal = addInts(place(inLine, channels, to), channel);
            const along = range(side.lines).map((x) =>
              b.let(kept('pixels', addInts(from, constant(x * channels))), 'd'),
            );
            transform(b, along).forEach((value, x) =>
              keep(part, addInts(goal, constant(x * apart[part])), value),
            );
          }),
        ),
      );
    });
  };

  /** Adds products of `steps` tiles to a tile of sums at a point. */
  const tileOfSums = (point: Value, row: Value, panel: Value, steps: Value): void => {
    const sums = accumulators(b, body, height, width / 4);
    const seen = b.let(place(point, apart.seen, mulInts(panel, constant(width))), 'seen_at');
    const given = b.let(place(point, apart.given, mulInts(row, constant(height))), 'given_at');
    b.for('k', constant(0), steps, 1, (step) => {
      const columns = range(width / 4).map((j) =>
        b.let(kept('seen', addInts(place(step, blockN, seen), constant(4 * j))), 'b'),
      );
      sums.forEach((line, i) => {
        const one = b.let(splat(kept('given', addInts(place(step, blockM, given), constant(i)), 1), 4), 'a');
        line.forEach((sum, j) => b.assign(sum, multiplyAdd(one, columns[j]!, sum)));
      });
    });
    const to = b.let(
      addInts(
        place(point, apart.sums, mulInts(row, constant(height * blockN))),
        mulInts(panel, constant(width)),
      ),
      'to',
    );
    sums.forEach((line, i) =>
      line.forEach((sum, j) => {
        const at = addInts(to, constant(i * blockN + 4 * j));
        keep('sums', at, arithmetic('add', [kept('sums', at), sum], 'f32'));
      }),
    );
  };

  const block = (first: Value): void => {
    const all = images * tileLines;
    const count =
      all % lines === 0
        ? constant(lines)
        : b.let(operation('min', [difference(constant(all), first), constant(lines)], 'i32'), 'count');
    b.for('line', constant(0), count, 1, (line) => {
      const [imageNumber, tileLine] = divideInts(b, b.let(addInts(first, line), 'line_of'), tileLines, [
        'image_of',
        'tile_line',
      ]);
      const tile = b.let(mulInts(line, constant(tileCount)), 'first_tile');
      sides.forEach((side) => points(side, imageNumber, tileLine, tile));
    });
    const steps = b.let(mulInts(count, constant(tileCount)), 'steps');
    b.for('point', constant(0), constant(tilePoints), 1, (point) =>
      b.for('panel', constant(0), constant(blockN / width), 1, (panel) =>
        b.for('rows_of', constant(0), constant(blockM / height), 1, (row) =>
          tileOfSums(point, row, panel, steps),
        ),
      ),
    );
  };

  /** The finished weights of a row and four columns. */
  const leave = (row: Value, four: Value): void => {
    const from = b.let(place(row, blockN, mulInts(four, constant(4))), 'from');
    const square = twice(
      tileInputs,
      (y, x) => b.let(kept('sums', addInts(from, constant((y * tileInputs + x) * apart.sums))), 'm'),
      (line) => weightGradients(b, line),
    ).flat();
    const each = roundedUp(taps ** 2, 4);
    range(each / 4).forEach((quad) => {
      const four = range(4).map((i) => square[4 * quad + i] ?? square.at(-1)!);
      turned(b, four).forEach((value, lane) => keep('out', constant(lane * each + 4 * quad), value));
    });
    const at = b.let(addInts(firstRow, row), 'm');
    b.for('lane', constant(0), constant(4), 1, (lane) => {
      const column = b.let(addInts(firstColumn, place(four, 4, lane)), 'column');
      b.if(batch.extent % blockN === 0 ? constant(1, 'bool') : less(column, constant(batch.extent)), () => {
        const write = new TileLowering(b, frame, body, column);
        range(each / 4).forEach((quad) =>
          write.write(at, constant(quad), b.let(kept('out', place(lane, each, constant(4 * quad))), 'sum')),
        );
      });
    });
  };

  const all = (): void => {
    zeros('sums', constant(0), room.sums);
    b.for('first_line', constant(0), constant(images * tileLines), lines, block);
    const rows = partOf(b, firstRow, blockM, m.extent, 1, 'rows');
    const fours = partOf(b, firstColumn, blockN, batch.extent, 4, 'fours');
    b.for('row', constant(0), rows, 1, (row) =>
      b.for('four', constant(0), fours, 1, (four) => leave(row, four)),
    );
  };
  if (grid[0] * grid[1] === total) all();
  else b.if(less(number, constant(total)), all);
  const note = `${batch.extent} by ${m.extent} channels, 3x3 results of ${images}x${window.tapLines}x${window.taps} taps by 36 products a tile, blocks of ${blockM}x${blockN}, ${lines} lines of tiles at a time`;
  return finish(frame, b, grid, [1, 1, 1], note, buffers);
}
