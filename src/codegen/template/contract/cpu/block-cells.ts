// Products of few rows with rows of blocks, on cores whose registers take several vectors of four lanes (block-rows.ts has
// those of four): the same whole numbers, but laid out so that cells of sixteen bytes of codes that follow each other are taken
// by the same operations on neighbouring memory. Scales stay in registers. In registers of four lanes this takes twice as long.

import { planeOffsets, rowWords } from '../../../../ir/blocks/sizes.ts';
import { dims } from '../../../../ir/graph.ts';
import { sizeOf } from '../../../../ir/shape.ts';
import {
  addInts,
  arithmetic,
  constant,
  mulInts,
  operation,
  type LoopBuilder,
} from '../../../loop/builder.ts';
import type { Loop, LoopBuffer, RegisterType, Value } from '../../../loop/loop.ts';
import { blockRows, type BlockRows } from '../rows-of-blocks.ts';
import type { Contract } from '../problem.ts';
import type { Tile } from '../strategy.ts';
import { finish, foldGrid, groupNumber, openBuilder, bufferName, type Frame } from '../../shared/frame.ts';
import { lanesAdded, multiplyAdd, span, TileLowering } from '../tile.ts';
import { divideInts } from '../../../loop/integers.ts';
import { CompilerBug } from '../../../../errors.ts';
import { isCoded, type CodedFormat } from './block-codes.ts';
import { cellCodes, type CellCodes, type Scales } from './cell-codes.ts';
import { cellRoom, quantiseCells, type CellRoom } from './cell-values.ts';

/** Words of workgroup memory that the rows of the left side take. */
export function cellWords(m: number, k: number, format: CodedFormat): number {
  const { codes, steps, starts, sums } = cellRoom(cellCodes[format], k);
  return m * (codes + steps + starts + sums);
}

/** Codes, values and scales of a unit's cells, with which sums go on. */
interface Cells {
  readonly unit: Value;
  readonly first: number;
  readonly count: number;
}

/** What a sum goes on with: products of whole numbers, and their scale. */
type Sink = (column: number, row: number, cell: number, dots: Value, scale: Value) => void;

/** Words between those that are multiplied and those that memory is asked for, and words of a cache line. */
const wordsAhead = 2048;
const lineWords = 16;

type CodedRows = BlockRows & { readonly format: CodedFormat };

/** What a workgroup keeps, and its loops. */
class BlockCellsLoop {
  readonly b: LoopBuilder;
  readonly #body: Contract;
  readonly #points: TileLowering;
  readonly #rows: CodedRows;
  readonly #codes: CellCodes;
  readonly #room: CellRoom;
  readonly #words: string;
  readonly #beside: number;
  /** Vectors of four in a register of the machine: cells that have sums of their own. */
  readonly #wide: number;

  constructor(frame: Frame, b: LoopBuilder, body: Contract, rows: CodedRows, beside: number, group: Value) {
    this.b = b;
    this.#body = body;
    this.#rows = rows;
    this.#codes = cellCodes[rows.format];
    this.#room = cellRoom(this.#codes, body.k.extent);
    this.#words = bufferName(frame)(rows.words);
    this.#beside = beside;
    this.#wide = (frame.target.vectors?.lanes ?? 4) / 4;
    this.#points = new TileLowering(b, frame, body, group);
  }

  /** A vector of workgroup memory. */
  #kept(buffer: keyof CellRoom, row: Value, at: Value, type: RegisterType): Value {
    const index = addInts(mulInts(row, constant(this.#room[buffer])), at);
    return this.b.let({ kind: 'load', buffer, index, aligned: true, type, width: 4 }, buffer);
  }

  /** Words of the codes of a unit's cells. */
  get #unitWords(): number {
    return this.#codes.cells * this.#codes.words;
  }

  /** Makes whole numbers of every row of the left side. */
  quantise(): void {
    quantiseCells(this.b, this.#body, this.#points, this.#codes);
  }

  /** Results of `rows` rows from `first` on, for four columns. */
  quad(first: Value, rows: number, quad: Value): void {
    const { b } = this;
    const { n } = this.#body;
    const columns = span(b, mulInts(quad, constant(4)), 4, n.extent, n.extent % 4 === 0, 'n');
    const places = Array.from({ length: rows }, (_, row) => b.let(addInts(first, constant(row)), 'row'));
    const results: Value[][] = places.map(() => []);
    for (let from = 0; from < 4; from += this.#beside) {
      const beside = columns.slice(from, from + this.#beside).map(({ index }) => index);
      this.#sums(places, beside).forEach((sums, row) => results[row]?.push(...sums));
    }
    results.forEach((sums, row) => {
      this.#points.write(places[row]!, quad, lanesAdded(b, sums));
    });
  }

  /** Vectors whose lanes, added, are the products of some rows with some columns, row by row. */
  #sums(rows: readonly Value[], columns: readonly Value[]): readonly (readonly Value[])[] {
    const { b } = this;
    const { group, groups, cells, hasOffsets } = this.#codes;
    const zero = constant(0, 'f32', 4);
    const base = columns.map((column) => {
      const lowering = this.#points.at({ column });
      return b.let(lowering.index(lowering.place(this.#rows.base)), 'base');
    });
    const sums = rows.map(() =>
      columns.map(() => Array.from({ length: this.#wide }, () => b.var('sum', zero))),
    );
    const taken = rows.map(() => columns.map(() => (hasOffsets ? b.var('taken', zero) : zero)));
    const count = this.#body.k.extent / group;
    const [units, rest] = [Math.floor(count / groups), count % groups];
    const unitWords = this.#unitWords;
    base.forEach((at) =>
      this.#ahead(at, units * unitWords, rowWords(this.#rows.format, this.#body.k.extent)),
    );
    const add: Sink = (column, row, cell, dots, scale) => {
      const sum = sums[row]![column]![cell % this.#wide]!;
      b.assign(sum, multiplyAdd(dots, scale, sum));
    };
    b.for('unit', constant(0), constant(units), 1, (unit) => {
      base.forEach((at) => this.#ahead(addInts(at, mulInts(unit, constant(unitWords))), 0, unitWords));
      this.#unit(rows, base, unit, cells, taken, add);
    });
    // What is left has sums of its own, so that those above are all assigned alike.
    const left = rows.map(() => columns.map(() => new Map<number, Value>()));
    const addLeft: Sink = (column, row, cell, dots, scale) => {
      const own = left[row]![column]!;
      const before = own.get(cell % this.#wide);
      const product = before ? multiplyAdd(dots, scale, before) : arithmetic('mul', [dots, scale], 'f32');
      own.set(cell % this.#wide, b.let(product, 'left'));
    };
    this.#unit(rows, base, constant(units), (rest * cells) / groups, taken, addLeft);
    return sums.map((columns, row) =>
      columns.map((own, column) => {
        const all = [...own, ...left[row]![column]!.values()].map((sum) => b.let(sum, 'held'));
        const sum = all.reduce((x, y) => b.let(arithmetic('add', [x, y], 'f32'), 'all'));
        if (!hasOffsets) return sum;
        return b.let(operation('sub', [sum, taken[row]![column]!], 'f32'), 'rest');
      }),
    );
  }

  /** Goes on with the first `count` cells of a unit of every column. */
  #unit(
    rows: readonly Value[],
    base: readonly Value[],
    unit: Value,
    count: number,
    taken: readonly (readonly Value[])[],
    add: Sink,
  ): void {
    if (count === 0) return;
    const { b } = this;
    const { cells, groups } = this.#codes;
    const scalesAt = planeOffsets(this.#rows.format, this.#body.k.extent)[1] ?? 0;
    const scales = base.map((at) => {
      const from = b.let(addInts(at, constant(scalesAt)), 'scales_at');
      const words = {
        four: (place: Value): Value => this.#load(addInts(from, place), 4),
        one: (place: Value): Value => this.#load(addInts(from, place), 1),
      };
      return this.#codes.scales(b, this.#body.k.extent, words, unit);
    });
    scales.forEach(({ offsets = [] }, column) =>
      offsets.forEach((offset, four) =>
        rows.forEach((row, i) => {
          const at = addInts(mulInts(unit, constant(groups)), constant(4 * four));
          const gone = taken[i]![column]!;
          b.assign(gone, multiplyAdd(offset, this.#kept('sums', row, at, 'f32'), gone));
        }),
      ),
    );
    for (let first = 0; first < cells && first < count; first += 4)
      this.#cells(rows, base, { unit, first, count: Math.min(4, count - first) }, scales, add);
  }

  /** Asks for the words that lie as far behind these as memory needs time. Rows are short: on their own, processors are late. */
  #ahead(at: Value, from: number, to: number): void {
    if (sizeOf(dims(this.#rows.words)) + wordsAhead >= 2 ** 31) return;
    for (let word = from; word < to; word += lineWords)
      this.b.prefetch(this.#words, addInts(at, constant(word + wordsAhead)));
  }

  #load(index: Value, width: 1 | 4): Value {
    return { kind: 'load', buffer: this.#words, index, aligned: true, type: 'u32', width };
  }

  /** Goes on with up to four cells that follow each other. */
  #cells(
    rows: readonly Value[],
    base: readonly Value[],
    { unit, first, count }: Cells,
    scales: readonly Scales[],
    add: Sink,
  ): void {
    const { b } = this;
    const { words, cells, runs, vectors, middle } = this.#codes;
    const each = Array.from({ length: count }, (_, i) => i);
    const codes = base.map((at) =>
      each.map((cell) => {
        const begin = addInts(at, mulInts(unit, constant(this.#unitWords)));
        return this.#codes.codes(b, (word) =>
          b.let(this.#load(addInts(begin, constant((first + cell) * words + word)), 4), 'w'),
        );
      }),
    );
    // The place of a vector of these cells among the vectors that rows have for each.
    const place = (run: number, cell: number, many: number, vector: number): Value =>
      addInts(
        mulInts(unit, constant(4 * cells * runs * many)),
        constant(4 * first * runs * many + 16 * (run * many + vector) + 4 * cell),
      );
    for (let run = 0; run < runs; run++) {
      const spread = base.map((_, column) => each.map((cell) => scales[column]!.at(first + cell, run)));
      rows.forEach((row, i) => {
        const values = each.map((cell) =>
          Array.from({ length: vectors }, (_, v) =>
            this.#kept('codes', row, place(run, cell, vectors, v), 'u32'),
          ),
        );
        const steps = each.map((cell) => this.#kept('steps', row, place(run, cell, 1, 0), 'f32'));
        const starts =
          middle === 0
            ? undefined
            : each.map((cell) => this.#kept('starts', row, place(run, cell, 1, 0), 'i32'));
        base.forEach((_, column) => {
          const dots = each.map((cell) =>
            codes[column]![cell]![run]!.map((code, v) =>
              arithmetic('dotI16', [code, values[cell]![v]!], 'i32'),
            ).reduce<Value | undefined>(
              (sum, dot) => (sum === undefined ? dot : arithmetic('add', [sum, dot], 'i32')),
              starts?.[cell],
            ),
          );
          each.forEach((cell) => {
            const whole = b.let(dots[cell]!, 'dots');
            const real = b.let(operation('cast', [whole], 'f32'), 'real');
            const scale = b.let(arithmetic('mul', [spread[column]![cell]!, steps[cell]!], 'f32'), 'scale');
            add(column, i, cell, real, scale);
          });
        });
      });
    }
  }
}

/** The Loop of products with rows of blocks, for registers of more than four lanes. */
export function blockCellsLoop(frame: Frame, body: Contract, tiling: Tile): Loop {
  const { m, k } = body;
  const rows = blockRows(body.rhs, k);
  if (rows === undefined || !isCoded(rows.format))
    throw new CompilerBug(
      'block rows',
      'the right side is no rows of blocks that are multiplied as they are',
    );
  const coded = { ...rows, format: rows.format };
  const room = cellRoom(cellCodes[rows.format], k.extent);
  const scratch = (name: keyof CellRoom, dtype: LoopBuffer['dtype']): readonly LoopBuffer[] =>
    room[name] === 0
      ? []
      : [{ name, space: 'workgroup', dtype, size: m.extent * room[name], access: 'read_write' }];
  const buffers = [
    ...scratch('codes', 'u32'),
    ...scratch('steps', 'f32'),
    ...scratch('starts', 'i32'),
    ...scratch('sums', 'f32'),
  ];
  // Registers hold the sums of two columns of one row.
  const beside = m.extent === 1 ? 2 : 1;
  return rowsByBlocks(frame, body, tiling, rows.format, beside, buffers, (b, group) => {
    return new BlockCellsLoop(frame, b, body, coded, beside, group);
  });
}

/** What multiplies rows with rows of blocks: first it makes whole numbers of its own, then it computes quads of results. */
export interface RowMultiplier {
  quantise(): void;
  quad(first: Value, rows: number, quad: Value): void;
}

/** The Loop of products with rows of blocks: a workgroup takes some columns, and all rows of them. */
export function rowsByBlocks(
  frame: Frame,
  body: Contract,
  { rows: height, columns }: Tile,
  format: string,
  beside: number,
  buffers: readonly LoopBuffer[],
  open: (b: LoopBuilder, group: Value) => RowMultiplier,
): Loop {
  const { batch, m, n, k } = body;
  const quadsN = Math.ceil(n.extent / 4);
  const quadsEach = columns / 4;
  const blocksN = Math.ceil(quadsN / quadsEach);
  const grid = foldGrid(batch.extent * blocksN, frame.target);
  const b = openBuilder(
    frame,
    buffers.map(({ name }) => name),
  );
  const number = b.let(groupNumber(grid), 'workgroup');
  const [group, blockN] =
    batch.extent === 1 ? [constant(0), number] : divideInts(b, number, blocksN, ['batch', 'block_n']);
  const first = b.let(mulInts(blockN, constant(quadsEach)), 'first_quad');
  const end = b.let(
    operation('min', [addInts(first, constant(quadsEach)), constant(quadsN)], 'i32'),
    'end_quad',
  );
  const part = open(b, group);
  part.quantise();
  const [tiles, rest] = [Math.floor(m.extent / height), m.extent % height];
  b.for('quad', first, end, 1, (quad) => {
    if (tiles === 1) part.quad(constant(0), height, quad);
    else
      b.for('tile', constant(0), constant(tiles), 1, (tile) =>
        part.quad(b.let(mulInts(tile, constant(height)), 'first'), height, quad),
      );
    if (rest > 0) part.quad(constant(tiles * height), rest, quad);
  });
  const note = `[${batch.extent}] ${m.extent}x${k.extent} by ${k.extent}x${n.extent} in ${format}, whole numbers of ${height} rows, ${columns} columns a workgroup, ${beside} side by side`;
  return finish(frame, b, grid, [1, 1, 1], note, buffers);
}
