// Attention on a CPU core, which has memory of its own. A workgroup takes some rows of a batch. Their scores
// are products of packed panels, as in contractions (cpu/panels.ts), and are kept in memory. Then each row
// folds its scores and stores the weights of its keys. The weighted sums are products of panels again. All
// rows see every key that one of them uses; masks remove the others. Where memory has no room for the scores of
// all keys, this is done for a block of keys at a time, and the sums wait in memory.

import { addIndex, scaleIndex } from '../../../../ir/index-algebra/expr.ts';
import type { Expr } from '../../../../schedule/expression/expr.ts';
import type { Axis, InnerProduct } from '../../../../schedule/kernel.ts';
import { groupsInRegister } from '../../../../schedule/machine.ts';
import type { Target } from '../../../../schedule/target.ts';
import { addInts, constant, less, mulInts, operation, splat } from '../../../loop/builder.ts';
import { rounded } from '../../../expression/convert.ts';
import { laneAtom, quadIndex } from '../../../expression/lowering.ts';
import type { Loop, LoopBuffer, Value } from '../../../loop/loop.ts';
import { BlockedRow, sizeOfState, type Shrink } from './blocked-row.ts';
import { bytesOf, coreRows, isForCore, scratch, scratchAt } from './core.ts';
import { columnGroups, recall, writeColumns, type ColumnGroup } from './columns.ts';
import { coreRow, sizeOfStatistics, statisticsOf, type CoreMemory, type Statistics } from './packed-row.ts';
import type { Attention, AttentionRows } from '../rows.ts';
import { depthRoom, packPanels, type Depth, type ProductSide } from '../../contract/cpu/panels.ts';
import { contiguousReads } from '../../contract/problem.ts';
import { roundedUp } from '../../contract/size.ts';
import type { FittingStrategy } from '../../shared/first-fit.ts';
import { finish, type Frame } from '../../shared/frame.ts';
import { eachOf, multiplyAdd } from '../../contract/tile.ts';
import { place } from '../../../loop/integers.ts';

/** Rows and columns of tiles of sums, the tallest first: eight registers at least, so that no sum waits for the one before. */
function tilesFor({ vectors }: Target): readonly (readonly [rows: number, columns: number])[] {
  if (vectors === undefined) return [[2, 16]];
  const columns = 2 * vectors.lanes;
  return (vectors.registers === 32 ? [8, 4] : [4]).map((rows) => [rows, columns]);
}
/** Bytes of scratch memory that a workgroup fills: half of the second level of a cache. */
const mostBytes = 524_288;
/** Rows of a workgroup: packed keys serve all of them, but masked ones see keys in vain. */
const mostRows = { all: 32, some: 16 };
/** Wider tiles are faster than what packs their keys. */
const mostWideRows = { all: 64, some: 32 };
/** Rows are packed four at a time. */
const leastRows = 4;

/** Keys of a block, where all are too many, the most first. */
const blocks = [512, 256, 128];

interface CoreTiling {
  readonly rows: number;
  /** Keys that there is room for. */
  readonly room: number;
  /** All keys are one block. */
  readonly isWhole: boolean;
  /** Rows and columns of a tile of sums in registers. */
  readonly height: number;
  readonly width: number;
  readonly memory: readonly LoopBuffer[];
  readonly statistics: Statistics;
}

/**
 * Rows of a batch at a time, on a core that has room for them, where everything is computed in f32.
 */
export const packed: FittingStrategy<Attention> = {
  loop(frame, body) {
    const tiling = coreTiling(body, statisticsOf(body, frame.kernel.writes), frame.target);
    return tiling === undefined ? undefined : new CoreAttention(frame, body, tiling).loop();
  },
};

function coreTiling(body: Attention, statistics: Statistics, target: Target): CoreTiling | undefined {
  if (!isForCore(body, target)) return undefined;
  const { first, last } = body.range;
  const most = target.vectors === undefined ? mostRows : mostWideRows;
  let rows = first === undefined && last === undefined ? most.all : most.some;
  while (rows > leastRows && rows / 2 >= body.row.extent) rows /= 2;
  const all = roundedUp(body.key.extent, tilesFor(target)[0]![1]);
  const limit = Math.min(mostBytes, target.limits.workgroupBytes);
  const fitting = (height: number, room: number): CoreTiling | undefined => {
    const tiling = tilingOf(body, statistics, target, height, room);
    return bytesOf(tiling.memory) <= limit ? tiling : undefined;
  };
  // Each pass over blocks computes the scores again.
  const passes = new Set([...body.stages, ...body.outers].map(({ pass }) => pass)).size;
  const isOnce = body.online !== undefined || passes === 1;
  for (let fewer = rows; fewer >= (isOnce ? rows : 8); fewer /= 2) {
    const whole = fitting(fewer, all);
    if (whole !== undefined) return whole;
  }
  for (; rows >= leastRows; rows /= 2)
    for (const room of blocks) {
      const blocked = room < all ? fitting(rows, room) : undefined;
      if (blocked !== undefined) return blocked;
    }
  return undefined;
}

function tilingOf(
  body: Attention,
  statistics: Statistics,
  target: Target,
  rows: number,
  room: number,
): CoreTiling {
  const [height, width] = tilesFor(target).find((tile) => tile[0] <= rows)!;
  const isWhole = room >= body.key.extent;
  const depths = body.inners.map(({ depth }) => depthRoom(depth.extent, depth.extent));
  const waiting = [
    ...body.outers.map(({ column }, i) => scratch(`sums_${i}`, rows * roundedUp(column.extent, width))),
    scratch('state', rows * sizeOfState(body)),
  ];
  const memory = [
    scratch('left', rows * Math.max(4, ...depths)),
    scratch('right', width * Math.max(4, ...depths)),
    ...body.inners.map((_, i) => scratch(`scores_${i}`, rows * room)),
    ...body.outers.map((_, i) => scratch(`weights_${i}`, rows * room)),
    ...body.outers.map((_, i) => scratch(`values_${i}`, width * room)),
    scratch('statistics', rows * Math.max(1, sizeOfStatistics(statistics))),
    ...(isWhole ? [] : waiting),
  ];
  return { rows, height, width, room, isWhole, memory, statistics };
}

class CoreAttention {
  readonly #frame: Frame;
  readonly #body: Attention;
  readonly #tiling: CoreTiling;
  readonly #rows: AttentionRows;

  constructor(frame: Frame, body: Attention, tiling: CoreTiling) {
    this.#frame = frame;
    this.#body = body;
    this.#tiling = tiling;
    this.#rows = coreRows(frame, body, tiling.rows, tiling.width / 4, tiling.memory);
  }

  loop(): Loop {
    const rows = this.#rows;
    const { b } = rows;
    const { batch, row, key } = this.#body;
    rows.begin((first) => {
      const last = operation(
        'min',
        [addInts(first, constant(this.#tiling.rows - 1)), constant(row.extent - 1)],
        'i32',
      );
      const lastRow =
        row.extent % this.#tiling.rows === 0 ? addInts(first, constant(this.#tiling.rows - 1)) : last;
      const [startQuad, endQuad] = rows.bounds(first, b.let(lastRow, 'last_row'));
      const count = addInts(operation('sub', [lastRow, first], 'i32'), constant(1));
      const whole = this.#block(first, startQuad, endQuad);
      if (this.#tiling.isWhole) {
        const [start, end] = this.#keysOf(whole);
        this.#body.inners.forEach((inner, i) => this.#scores(inner, i, whole));
        const all = b.let(count, 'rows');
        this.#eachRow(first, all, (offset) => coreRow(rows, whole, offset));
        this.#fillTile(whole, all);
        this.#products(whole, start, b.let(end, 'end_key'), lastRow);
      } else this.#inBlocks(whole, b.let(count, 'rows'));
    });
    const shape = `[${batch.extent}] ${row.extent} rows over ${key.extent} keys`;
    const { rows: height, room, isWhole } = this.#tiling;
    const by = isWhole ? '' : ` by ${room} keys`;
    const note = `${shape}, ${height} rows${by} a workgroup, tiles of ${this.#tiling.height}x${this.#tiling.width}`;
    return finish(this.#frame, b, rows.grid, rows.workgroup, note, this.#tiling.memory);
  }

  /** Rows are multiplied by tiles: those that the last tile lacks are rows that weigh nothing. */
  #fillTile({ startQuad, endQuad, slotOf }: CoreMemory, count: Value): void {
    const { b } = this.#rows;
    const { row, outers } = this.#body;
    const { height } = this.#tiling;
    if (row.extent % height === 0) return;
    const fill = (offset: Value): void =>
      b.for('quad', startQuad, endQuad, 1, (quad) =>
        outers.forEach((_, i) => b.store(`weights_${i}`, slotOf(offset, quad), constant(0, 'f32', 4), true)),
      );
    if (height === 2) {
      const left = operation('mod', [count, constant(2)], 'i32');
      b.if(operation('eq', [left, constant(1)], 'bool'), () => fill(count));
      return;
    }
    const tiles = operation('div', [addInts(count, constant(height - 1)), constant(height)], 'i32');
    b.for('none', count, b.let(mulInts(tiles, constant(height)), 'filled'), 1, fill);
  }

  /** Scores and weights of the keys from one quad to behind another. */
  #block(first: Value, startQuad: Value, endQuad: Value): CoreMemory {
    const { b } = this.#rows;
    const { room, statistics } = this.#tiling;
    const slotOf = (offset: Value, quad: Value): Value => {
      const line = b.let(mulInts(offset, constant(room / 4)), 'line');
      return mulInts(addInts(line, operation('sub', [quad, startQuad], 'i32')), constant(4));
    };
    return { first, room, startQuad, endQuad, statistics, slotOf };
  }

  /** The first key of a block, and that behind its last. */
  #keysOf({ startQuad, endQuad }: CoreMemory): readonly [start: Value, end: Value] {
    const { b } = this.#rows;
    const { extent } = this.#body.key;
    const start = b.let(mulInts(startQuad, constant(4)), 'first_key');
    const behind = mulInts(endQuad, constant(4));
    const end = extent % 4 === 0 ? behind : operation('min', [behind, constant(extent)], 'i32');
    return [start, end];
  }

  /** Visits the rows of the workgroup, by their numbers in it. */
  #eachRow(first: Value, count: Value, visit: (offset: Value) => void): void {
    const { b } = this.#rows;
    b.for('row_of', constant(0), count, 1, (offset) => {
      this.#rows.stand(b.let(addInts(first, offset), 'row'));
      visit(offset);
    });
  }

  /** One side of an inner dot: its free axis is the row or the key. */
  #side(operand: Expr, free: Axis, depth: Axis): ProductSide {
    const rows = this.#rows;
    const [freeQuad, depthQuad] = [
      quadIndex('free_quad', free.extent),
      quadIndex('depth_quad', depth.extent),
    ];
    const alongK =
      depth.extent % 4 === 0 && contiguousReads(operand, depth) >= contiguousReads(operand, free);
    return {
      operand,
      extent: free.extent,
      alongK,
      at: ({ quad, column }, { step, stepQuad }) => {
        const lowering = rows.lowering(
          [
            ...(quad === undefined ? [] : [[freeQuad, quad] as const]),
            ...(column === undefined ? [] : [[free.atom, column] as const]),
            ...(step === undefined ? [] : [[depth.atom, step] as const]),
            ...(stepQuad === undefined ? [] : [[depthQuad, stepQuad] as const]),
          ],
          [
            ...(quad === undefined
              ? []
              : [[free.atom, addIndex(scaleIndex(freeQuad, 4), laneAtom)] as const]),
            ...(stepQuad === undefined
              ? []
              : [[depth.atom, addIndex(scaleIndex(depthQuad, 4), laneAtom)] as const]),
          ],
        );
        return splat(lowering.value(operand), step !== undefined && quad === undefined ? 1 : 4);
      },
    };
  }

  /** Scores of all rows with the keys that they look at. */
  #scores(
    { node, depth, ofRow, ofKey }: InnerProduct,
    i: number,
    { first, startQuad, endQuad, slotOf }: CoreMemory,
  ): void {
    const rows = this.#rows;
    const { b } = rows;
    const { row, key } = this.#body;
    const { height, width } = this.#tiling;
    const room = depthRoom(depth.extent, depth.extent);
    const all: Depth = { first: constant(0), end: constant(depth.extent), room };
    const pairs = this.#tiles(first);
    packPanels(b, 'left', this.#side(ofRow, row, depth), height, first, pairs, all);
    const keys = this.#side(ofKey, key, depth);
    b.for('quad', startQuad, endQuad, width / 4, (quad) => {
      const start = b.let(mulInts(quad, constant(4)), 'key');
      packPanels(b, 'right', keys, width, start, constant(1), all);
      b.for('pair', constant(0), pairs, 1, (pair) => {
        const sums = this.#tile(constant(depth.extent), 'right', (step, r) => {
          const at = addInts(
            mulInts(addInts(mulInts(pair, constant(room)), step), constant(height)),
            constant(r),
          );
          return scratchAt('left', at, 1);
        });
        sums.forEach((line, r) => {
          const offset = b.let(place(pair, height, constant(r)), 'offset');
          line.forEach((sum, j) => {
            const slot = slotOf(offset, addInts(quad, constant(j)));
            b.store(`scores_${i}`, slot, b.let(rounded(sum, node.dtype), 'score'), true);
          });
        });
      });
    });
  }

  /** Tiles of rows that the workgroup has. */
  #tiles(first: Value): Value {
    const { row } = this.#body;
    const { rows, height } = this.#tiling;
    if (row.extent % rows === 0) return constant(rows / height);
    const left = operation('sub', [constant(row.extent + height - 1), first], 'i32');
    const tiles = operation('div', [left, constant(height)], 'i32');
    return this.#rows.b.let(operation('min', [tiles, constant(rows / height)], 'i32'), 'pairs');
  }

  /** A tile of sums over `steps` of a packed panel, which begin with 0 by default. */
  #tile(
    steps: Value,
    panel: string,
    factor: (step: Value, row: number) => Value,
    first: (row: number, column: number) => Value = () => constant(0, 'f32', 4),
  ): Value[][] {
    const { b } = this.#rows;
    const { height, width } = this.#tiling;
    const sums = Array.from({ length: height }, (_, r) =>
      Array.from({ length: width / 4 }, (__, j) => b.var(`sum_${r}_${j}`, first(r, j))),
    );
    b.for('k', constant(0), steps, 1, (step) => {
      const columns = sums[0]!.map((_, j) =>
        b.let(scratchAt(panel, place(step, width, constant(4 * j)), 4), 'b'),
      );
      sums.forEach((line, r) => {
        const a = b.let(splat(factor(step, r), 4), 'a');
        line.forEach((sum, j) => b.assign(sum, multiplyAdd(a, columns[j]!, sum)));
      });
    });
    return sums;
  }

  /** The weighted sums of all keys, and what is written of them. */
  #products(memory: CoreMemory, start: Value, end: Value, lastRow: Value): void {
    const rows = this.#rows;
    const { b } = rows;
    const { first } = memory;
    const { height, width } = this.#tiling;
    for (const group of columnGroups(this.#body, this.#frame.kernel.writes)) {
      const quads = Math.ceil(group.column.extent / 4);
      this.#multiply(group, memory, start, end, undefined, (quad, pair, tiles) => {
        for (let r = 0; r < height; r++) {
          const at = b.let(addInts(first, place(pair, height, constant(r))), 'row');
          rows.stand(at);
          const offset = b.let(place(pair, height, constant(r)), 'offset');
          const isRow = r === 0 ? constant(1, 'bool') : operation('le', [at, lastRow], 'bool');
          b.if(isRow, () => {
            recall(rows, memory, offset);
            for (let j = 0; j < width / 4; j++) {
              const columnQuad = b.let(addInts(quad, constant(j)), 'column_quad');
              const inside =
                quads % (width / 4) === 0 ? constant(1, 'bool') : less(columnQuad, constant(quads));
              const sums = tiles.map((tile) => tile[r]![j]!);
              b.if(inside, () => writeColumns(rows, memory, group, offset, columnQuad, sums));
            }
          });
        }
      });
    }
  }

  /** Tiles of the weighted sums of some keys, those of all products over a column axis together. */
  #multiply(
    { column, products }: Pick<ColumnGroup, 'column' | 'products'>,
    { first, room }: CoreMemory,
    start: Value,
    end: Value,
    /** What the sums of a product are before; 0 by default. */
    before: ((product: number, offset: Value, quad: Value) => Value) | undefined,
    visit: (quad: Value, pair: Value, tiles: readonly (readonly (readonly Value[])[])[]) => void,
  ): void {
    const { b } = this.#rows;
    const { key } = this.#body;
    const { height, width } = this.#tiling;
    const quads = Math.ceil(column.extent / 4);
    const steps = b.let(operation('sub', [end, start], 'i32'), 'keys');
    const depth: Depth = { first: start, end, room };
    b.for('column_quad', constant(0), constant(quads), width / 4, (quad) => {
      const firstColumn = b.let(mulInts(quad, constant(4)), 'column');
      for (const { outer, i } of products) {
        const side = { ...this.#side(outer.value, outer.column, key), alongK: false };
        // Where vectors are merged, it pays that all columns are known to lie inside the axis.
        const isWhole = this.#frame.target.vectors !== undefined && column.extent % width === 0;
        packPanels(b, `values_${i}`, side, width, firstColumn, constant(1), depth, isWhole);
      }
      b.for('pair', constant(0), this.#tiles(first), 1, (pair) => {
        const tiles = products.map(({ i }) =>
          this.#tile(
            steps,
            `values_${i}`,
            (step, r) => {
              const line = place(pair, height, constant(r));
              return scratchAt(
                `weights_${i}`,
                addInts(b.let(mulInts(line, constant(room)), 'line'), step),
                1,
              );
            },
            before && ((r, j) => before(i, place(pair, height, constant(r)), addInts(quad, constant(j)))),
          ),
        );
        visit(quad, pair, tiles);
      });
    });
  }

  /** Walks over blocks of keys, once or in passes, and writes what is left in memory. */
  #inBlocks(whole: CoreMemory, count: Value): void {
    const rows = this.#rows;
    const { b } = rows;
    const { online, stages, outers } = this.#body;
    const { first } = whole;
    const eachRow = (visit: (row: BlockedRow, offset: Value) => void): void =>
      this.#eachRow(first, count, (offset) => visit(new BlockedRow(rows, offset), offset));
    const groups = columnGroups(this.#body, this.#frame.kernel.writes);
    outers.forEach((_, i) =>
      this.#eachSum(i, constant(0), constant(this.#tiling.rows), () => constant(0, 'f32', 4)),
    );
    eachRow((row) => row.open());
    if (online !== undefined) {
      const shrink: Shrink = (i, offset, factor) =>
        this.#eachSum(i, offset, addInts(offset, constant(1)), (sum) =>
          operation('mul', [sum, splat(factor, 4)], 'f32'),
        );
      this.#eachBlock(whole, (block) => {
        eachRow((row) => row.addOnline(block, online, shrink));
        this.#addProducts(groups, block, count);
      });
    } else {
      const last = Math.max(0, ...[...stages, ...outers].map(({ pass }) => pass));
      for (let pass = 0; pass <= last; pass++) {
        if (![...stages, ...outers].some((one) => one.pass === pass)) continue;
        const added = groups
          .map((group) => ({ ...group, products: group.products.filter(({ outer }) => outer.pass === pass) }))
          .filter(({ products }) => products.length > 0);
        this.#eachBlock(whole, (block) => {
          eachRow((row) => row.addPass(block, pass));
          this.#addProducts(added, block, count);
        });
        eachRow((row) => row.endPass(pass));
      }
    }
    eachRow((row) => row.close(whole));
    for (const group of groups)
      eachRow((_, offset) => {
        recall(rows, whole, offset);
        b.for('column_quad', constant(0), constant(Math.ceil(group.column.extent / 4)), 1, (quad) => {
          const sums = group.products.map(({ i }) => b.let(this.#sumAt(i, offset, quad), 'sum'));
          writeColumns(rows, whole, group, offset, quad, sums);
        });
      });
  }

  /** Visits the blocks, with the scores of their keys. */
  #eachBlock({ first, startQuad, endQuad, room }: CoreMemory, visit: (block: CoreMemory) => void): void {
    const { b } = this.#rows;
    b.for('block', startQuad, endQuad, room / 4, (from) => {
      const behind = operation('min', [addInts(from, constant(room / 4)), endQuad], 'i32');
      const block = this.#block(first, from, b.let(behind, 'end_of_block'));
      this.#body.inners.forEach((inner, i) => this.#scores(inner, i, block));
      visit(block);
    });
  }

  /** Adds the weighted sums of a block. */
  #addProducts(groups: readonly ColumnGroup[], block: CoreMemory, count: Value): void {
    const { b } = this.#rows;
    const { height } = this.#tiling;
    const [start, end] = this.#keysOf(block);
    this.#fillTile(block, count);
    for (const group of groups)
      this.#multiply(
        group,
        block,
        start,
        b.let(end, 'end_key'),
        (i, offset, quad) => this.#sumAt(i, offset, quad),
        (quad, pair, tiles) =>
          group.products.forEach(({ i }, p) =>
            tiles[p]!.forEach((line, r) =>
              line.forEach((sum, j) => {
                const offset = place(pair, height, constant(r));
                b.store(`sums_${i}`, this.#sumSlot(i, offset, addInts(quad, constant(j))), sum, true);
              }),
            ),
          ),
      );
  }

  /** Changes all sums of a product in some rows. */
  #eachSum(i: number, from: Value, to: Value, changed: (sum: Value) => Value): void {
    const { b, frame } = this.#rows;
    const quads = constant(this.#sumRoom(i) / 4);
    b.for('sums_of', from, to, 1, (offset) =>
      eachOf(
        b,
        constant(0),
        quads,
        groupsInRegister(frame.target),
      )((some) => {
        const values = some.map((quad) => changed(this.#sumAt(i, offset, quad)));
        values.forEach((value, j) => b.store(`sums_${i}`, this.#sumSlot(i, offset, some[j]!), value, true));
      }),
    );
  }

  /** Elements that the sums of a row have room for. */
  #sumRoom(i: number): number {
    return roundedUp(this.#body.outers[i]!.column.extent, this.#tiling.width);
  }

  #sumSlot(i: number, offset: Value, quad: Value): Value {
    const line = mulInts(offset, constant(this.#sumRoom(i) / 4));
    return mulInts(addInts(line, quad), constant(4));
  }

  #sumAt(i: number, offset: Value, quad: Value): Value {
    return scratchAt(`sums_${i}`, this.#sumSlot(i, offset, quad), 4);
  }
}
