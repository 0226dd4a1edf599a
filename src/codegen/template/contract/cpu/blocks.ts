// Products in blocks, for targets where a workgroup is one invocation with fast memory of its own:
// a workgroup computes a block of the result. For each block of k it packs its rows of the left
// side, then panel by panel the columns of the right, and runs down the rows with a tile of sums in
// registers (the order of loops of Goto and van de Geijn, 2008). Sums wait in memory between blocks
// of k, and leave it through the epilogue tile by tile, while they are in the first cache.
// What the columns of a block are, the strategy says: those of a matrix (cpu/packed.ts), or
// positions of a convolution (cpu/image.ts).

import { groupsInRegister, packsOperands } from '../../../../schedule/machine.ts';
import { isWide } from '../../../../ir/dtype.ts';
import type { Target } from '../../../../schedule/target.ts';
import {
  addInts,
  constant,
  less,
  mulInts,
  operation,
  splat,
  type LoopBuilder,
} from '../../../loop/builder.ts';
import { registerOf } from '../../../expression/lowering.ts';
import type { Loop, LoopBuffer, Value } from '../../../loop/loop.ts';
import { depthRoom, difference, packPanels, sidesOf, type Depth, type ProductSide } from './panels.ts';
import type { Contract, ContractProblem } from '../problem.ts';
import { roundedUp } from '../size.ts';
import type { Tile } from '../strategy.ts';
import { cpu } from './costs.ts';
import { endOf, finish, foldGrid, groupNumber, openBuilder, type Frame } from '../../shared/frame.ts';
import { neededOf } from '../../shared/needed.ts';
import { accumulators, eachOf, multiplyAdd, tileNeeded } from '../tile.ts';
import { divideInts, place } from '../../../loop/integers.ts';

/**
 * What a block has along n, in panels: columns of the right side, or positions of a convolution.
 */
export interface BlockColumns {
  readonly panels: Value;
  /** What a block of k needs before its first panel. */
  readonly begin: (depth: Depth) => void;
  readonly pack: (panel: Value, depth: Depth) => void;
  /** Groups of four columns of a panel. */
  readonly filled: (panel: Value) => FilledPanel;
  /** How four finished sums of a row, the `quad`th of a panel, leave. */
  readonly write: (panel: Value) => (row: Value, quad: Value, sum: Value, isFull: boolean) => void;
}

export interface FilledPanel {
  /** Groups whose columns all count: a constant where that is so of all groups of all panels. */
  readonly full: Value;
  /** Whether one follows of whose columns some count; absent where there is none. */
  readonly hasRest?: Value;
}

/** What is filled of a panel that so many groups of four lie before, of a block of `columns`; groups where those are not known. */
export function filledPanel(
  b: LoopBuilder,
  first: Value,
  columns: number | { readonly groups: Value },
  inPanel: number,
): FilledPanel {
  const isKnown = typeof columns === 'number';
  if (isKnown && columns % (4 * inPanel) === 0) return { full: constant(inPanel) };
  const groups = isKnown ? constant(Math.floor(columns / 4)) : columns.groups;
  const left = b.let(difference(groups, first), 'left');
  const full = b.let(operation('min', [left, constant(inPanel)], 'i32'), 'full');
  if (!isKnown || columns % 4 === 0) return { full };
  return { full, hasRest: less(left, constant(inPanel)) };
}

/** A tiling in blocks: rows and steps of k. */
export interface BlockTiling extends Tile {
  readonly blockM: number;
  readonly blockK: number;
}

/**
 * Elements that a workgroup keeps: rows and a panel of columns for a block of k, the sums of the
 * panels that wait, and the part of a padded input.
 */
export interface Room {
  readonly left: number;
  readonly right: number;
  readonly sums: number;
  readonly image: number;
}

/** Where a block is, and where its workgroup keeps panels. */
export interface BlockPlace {
  readonly b: LoopBuilder;
  readonly group: Value;
  readonly block: Value;
  /** Names of workgroup memory. */
  readonly right: string;
  readonly image: string;
  readonly sides: { readonly left: ProductSide; readonly right: ProductSide };
}

/** What a strategy in blocks adds. */
export interface BlockForm {
  readonly tiling: BlockTiling;
  readonly room: Room;
  /** Blocks along n, and the size of one along n for the note. */
  readonly blocksN: number;
  /** Elements of a block along n, a multiple of four, where blocks follow each other there. */
  readonly blockN?: number;
  readonly size: string;
  readonly columns: (place: BlockPlace) => BlockColumns;
}

/** Steps of k of which two panels stay in the first cache. */
export const mostSteps = 320;

/**
 * Sums of a tile of two rows are eight vectors of 128 bits: with what else is at hand they fill the
 * registers.
 */
export function panelColumns(dtype: ContractProblem['dtype']): number {
  return dtype === 'f64' ? 8 : 16;
}

/** Rows and columns of tiles of sums that registers have room for, the largest first. */
export function tilesOf(
  dtype: ContractProblem['dtype'],
  { vectors }: Target,
): readonly (readonly [rows: number, columns: number])[] {
  const columns = panelColumns(dtype);
  if (vectors === undefined || vectors.lanes === 4) return [[2, columns]];
  // Two or three vectors of sums a row, as many of columns, and one row's element at a time.
  const two = (vectors.lanes / 8) * columns;
  if (vectors.registers === 32) return [12, 8, 4].map((rows) => [rows, two]);
  return [two * 1.5, two].map((wide) => [4, wide]);
}

/**
 * How long a multiply-add of four lanes takes. With few sums each waits for the one before it.
 */
export function multiplyAddTime(
  { rows, columns }: Tile,
  dtype: ContractProblem['dtype'],
  { vectors }: Target,
): number {
  if (vectors === undefined) return cpu.multiplyAdd;
  const sums = (rows * columns * (dtype === 'f64' ? 2 : 1)) / vectors.lanes;
  return ((cpu.multiplyAdd * 4) / vectors.lanes) * Math.max(1, cpu.sumsToFill / sums);
}

/** Rows that panels of a block have room for: panels of two rows are packed two at a time. */
function rowsRoom(blockM: number, rows: number): number {
  return roundedUp(blockM, rows < 4 ? 2 * rows : rows);
}

/** The room of a tiling with so many panels in a block. */
export function panelRoom(tiling: BlockTiling, k: number, panels: number): Room {
  const { rows, columns, blockM, blockK } = tiling;
  const depth = depthRoom(blockK, k);
  const height = rowsRoom(blockM, rows);
  const waiting = k > blockK ? panels * height : rows;
  return { left: height * depth, right: columns * depth, sums: waiting * columns, image: 0 };
}

/** Whether blocks of this form can be computed on the target. */
export function isLegalBlock(
  tiling: BlockTiling,
  room: Room,
  { k, dtype }: ContractProblem,
  target: Target,
): boolean {
  const { rows, columns, blockM, blockK } = tiling;
  const elements = room.left + room.right + room.sums + room.image;
  return (
    packsOperands(target) &&
    !isWide(dtype) &&
    (rows === 2 || (target.vectors !== undefined && rows % 4 === 0)) &&
    columns % 4 === 0 &&
    blockM % 4 === 0 &&
    (blockK % 4 === 0 || blockK >= k) &&
    (dtype === 'f64' ? 8 : 4) * elements <= target.limits.workgroupBytes
  );
}

/** Epilogues of more expressions than this are not written for every column of a panel. */
const mostUnrolled = 24;

/** The Loop of a product in blocks. */
export function blockLoop(frame: Frame, body: Contract, problem: ContractProblem, form: BlockForm): Loop {
  const { batch, m, n, k } = body;
  const { blocksN, room } = form;
  const { rows: height, columns: width, blockM, blockK } = form.tiling;
  const blocksM = Math.ceil(m.extent / blockM);
  const total = batch.extent * blocksM * blocksN;
  const grid = foldGrid(total, frame.target);
  const type = registerOf(body.node.dtype);
  const shared = (name: string, size: number): LoopBuffer => {
    return { name, space: 'workgroup', dtype: type as LoopBuffer['dtype'], size, access: 'read_write' };
  };
  const [left, right] = [shared('left', room.left), shared('right', room.right)];
  const waiting = shared('sums', room.sums);
  const image = shared('image', room.image);
  const buffers = [left, right, waiting, ...(room.image > 0 ? [image] : [])];
  const b = openBuilder(
    frame,
    buffers.map(({ name }) => name),
  );
  const pairsRoom = rowsRoom(blockM, height) / height;
  const quadsEach = width / 4;
  const inPieces = k.extent > blockK;
  // Where vectors are merged, it pays that all panels are known to lie inside the axis.
  const isWhole = frame.target.vectors !== undefined && m.extent % height === 0 && blockM % height === 0;

  const block = (number: Value): void => {
    const [rest, blockAtN] = divideInts(b, number, blocksN, ['block', 'block_n']);
    const [group, blockAtM] =
      batch.extent === 1 ? [constant(0), rest] : divideInts(b, rest, blocksM, ['batch', 'block_m']);
    const firstRow = b.let(mulInts(blockAtM, constant(blockM)), 'first_row');
    const needed = neededOf(b, frame, m);
    const rows = partOf(b, firstRow, blockM, m.extent, 1, 'rows', needed);
    const pairs = partOf(b, firstRow, blockM, m.extent, height, 'pairs', needed);
    const sides = sidesOf(b, frame, body, group, problem);
    const columns = form.columns({ b, group, block: blockAtN, right: right.name, image: image.name, sides });

    const round = (depth: Depth, isFirst: Value, isLast: Value): void => {
      columns.begin(depth);
      packPanels(b, left.name, sides.left, height, firstRow, pairs, depth, isWhole);
      b.for('panel', constant(0), columns.panels, 1, (panel) => {
        columns.pack(panel, depth);
        const firstSum = inPieces
          ? b.let(mulInts(panel, constant(pairsRoom * height * width)), 'first_sum')
          : constant(0);
        b.for('pair', constant(0), pairs, 1, (pair) => {
          const slot = inPieces ? b.let(place(pair, height * width, firstSum), 'slot') : constant(0);
          tile(pair, depth, isFirst, slot);
          b.if(isLast, () => {
            const above = b.let(mulInts(pair, constant(height)), 'above');
            leave(panel, b.let(addInts(firstRow, above), 'tile_row'), rowsOf(above), slot);
          });
        });
      });
    };

    /** Rows of the tile that has so many above it in the block. */
    const rowsOf = (above: Value): Value =>
      rows.kind === 'constant' && rows.value % height === 0
        ? constant(height)
        : b.let(operation('min', [difference(rows, above), constant(height)], 'i32'), 'tile_rows');

    const tile = (pair: Value, depth: Depth, isFirst: Value, slot: Value): void => {
      const sums = accumulators(b, body, height, quadsEach);
      const each = (visit: (sum: Value, at: Value) => void): void =>
        sums.forEach((line, i) =>
          line.forEach((sum, j) => visit(sum, addInts(slot, constant(i * width + 4 * j)))),
        );
      if (inPieces)
        b.if(operation('not', [isFirst], 'bool'), () => each((sum, at) => b.assign(sum, kept(waiting, at))));
      b.for('k', constant(0), b.let(difference(depth.end, depth.first), 'steps'), 1, (step) => {
        const lines = Array.from({ length: quadsEach }, (_, j) =>
          b.let(kept(right, place(step, width, constant(4 * j))), 'b'),
        );
        sums.forEach((line, i) => {
          const at = addInts(mulInts(place(pair, depth.room, step), constant(height)), constant(i));
          const row = b.let(splat(kept(left, at, 1), 4), 'a');
          line.forEach((sum, j) => b.assign(sum, multiplyAdd(row, lines[j]!, sum)));
        });
      });
      each((sum, at) => b.store(waiting.name, at, sum, true));
    };

    const kept = ({ name }: LoopBuffer, index: Value, wide: 1 | 4 = 4): Value => {
      return { kind: 'load', buffer: name, index, aligned: true, type, width: wide };
    };

    /**
     * The finished sums of so many rows of a panel, of which `first` is the first, go through the epilogue: row by row, so
     * that lines of memory are written once, while other tiles are computed.
     */
    const leave = (panel: Value, first: Value, count: Value, firstSum: Value): void => {
      const write = columns.write(panel);
      const { full, hasRest } = columns.filled(panel);
      const isUnrolled = problem.epilogue <= mostUnrolled;
      const areAllFull = full.kind === 'constant';
      const inRegister = Math.min(quadsEach, groupsInRegister(frame.target));
      const inLoop = isUnrolled && areAllFull ? undefined : eachOf(b, constant(0), full, inRegister);
      b.for('row', constant(0), count, 1, (row) => {
        const at = b.let(addInts(first, row), 'm');
        const one = (quad: Value, isFull: boolean): void => {
          const sum = kept(waiting, addInts(firstSum, place(row, width, mulInts(quad, constant(4)))));
          write(at, quad, b.let(sum, 'sum'), isFull);
        };
        const visit = (quads: readonly Value[]): void => quads.forEach((quad) => one(quad, true));
        const isFullPanel = areAllFull
          ? constant(1, 'bool')
          : operation('eq', [full, constant(quadsEach)], 'bool');
        b.if(
          isUnrolled ? isFullPanel : constant(0, 'bool'),
          () => visit(Array.from({ length: quadsEach }, (_, quad) => constant(quad))),
          () => inLoop?.(visit),
        );
        if (hasRest !== undefined) b.if(hasRest, () => one(full, false));
      });
    };

    const depthOf = (first: Value, end: Value): Depth => {
      return { first, end, room: depthRoom(blockK, k.extent) };
    };
    const yes = constant(1, 'bool');
    const last = lastStep(b, frame, body);
    if (!inPieces) {
      round(depthOf(constant(0), last), yes, yes);
      return;
    }
    b.for('first_k', constant(0), last, blockK, (first) => {
      const past = addInts(first, constant(blockK));
      const end = b.let(operation('min', [past, last], 'i32'), 'end_k');
      const isFirst = b.let(operation('eq', [first, constant(0)], 'bool'), 'is_first');
      const isLast = b.let(operation('eq', [end, last], 'bool'), 'is_last');
      round(depthOf(first, end), isFirst, isLast);
    });
  };
  const needed = (number: Value): void => {
    const [rest, blockAtN] = divideInts(b, number, blocksN, ['block', 'block_n']);
    const [group, blockAtM] =
      batch.extent === 1 ? [constant(0), rest] : divideInts(b, rest, blocksM, ['batch', 'block_m']);
    const row = mulInts(blockAtM, constant(blockM));
    const quad = mulInts(blockAtN, constant((form.blockN ?? 0) / 4));
    b.if(tileNeeded(b, frame, body, group, row, quad), () => block(number));
  };
  const number = b.let(groupNumber(grid), 'group');
  if (grid[0] * grid[1] === total) needed(number);
  else b.if(less(number, constant(total)), () => needed(number));
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent}, blocks of ${blockM}x${form.size}, ${blockK} steps of k packed at a time, tiles of ${height}x${width}`;
  return finish(frame, b, grid, [1, 1, 1], note, buffers);
}

/**
 * Behind the last step of k that counts. There is one at least: results leave with the last block
 * of k.
 */
function lastStep(b: LoopBuilder, frame: Frame, { k, bound }: Contract): Value {
  const end = endOf(b, frame, k.extent, bound);
  if (end.kind === 'constant') return end;
  return b.let(operation('max', [end, constant(Math.min(1, k.extent))], 'i32'), 'last_k');
}

/** How much of a block lies inside an axis, in units of `unit`. */
export function partOf(
  b: LoopBuilder,
  first: Value,
  size: number,
  extent: number,
  unit: number,
  hint: string,
  /** How much of the axis is needed, where a run says it; the block begins with what is. */
  needed?: Value,
): Value {
  if (extent % size === 0 && needed === undefined) return constant(Math.ceil(size / unit));
  const end = needed === undefined ? constant(extent + unit - 1) : addInts(needed, constant(unit - 1));
  const rest = difference(end, first);
  const units = unit === 1 ? rest : operation('div', [rest, constant(unit)], 'i32');
  return b.let(operation('min', [units, constant(Math.ceil(size / unit))], 'i32'), hint);
}
