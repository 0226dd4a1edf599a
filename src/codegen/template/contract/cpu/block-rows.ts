// Products of few rows with rows of blocks, on cores: a workgroup makes whole numbers of 16 bits of
// its rows once, a group of values under one scale, so that a group's products with codes are summed
// exactly, two by two, and one multiplication brings in both scales. Rounding a value to a 32,767th
// of the greatest in its group moves a result by some hundred thousandths of it at most.

import { packsOperands } from '../../../../schedule/machine.ts';
import type { Target } from '../../../../schedule/target.ts';
import { planeOffsets } from '../../../../ir/blocks/sizes.ts';
import {
  addInts,
  arithmetic,
  constant,
  mulInts,
  operation,
  type LoopBuilder,
} from '../../../loop/builder.ts';
import type { Loop, LoopBuffer, RegisterType, Value } from '../../../loop/loop.ts';
import { blockRows, type BlockRows } from '../blocks.ts';
import { flippedProblem, type Contract } from '../problem.ts';
import { roundedUp } from '../size.ts';
import type { Strategy, Tile } from '../strategy.ts';
import { bufferName, type Frame } from '../../shared/frame.ts';
import { multiplyAdd, span, TileLowering } from '../tile.ts';
import { laneOf } from '../../../loop/register.ts';
import { CompilerBug } from '../../../../errors.ts';
import { blockCellsLoop, cellWords, rowsByBlocks } from './block-cells.ts';
import { blockCodes, isCoded, type BlockCodes } from './block-codes.ts';
import { groupRoom, quantiseRows } from './block-values.ts';
import { cpu, shared } from './costs.ts';

export interface BlockRowsTiling extends Tile {
  /** Rows are multiplied with rows of blocks as whole numbers; `columns` are those of a workgroup. */
  readonly kind: 'block-rows';
  /** Columns that are summed side by side. */
  readonly beside: number;
}

/** Rows of the result, at most: for more, blocks are decoded while they are packed. */
const mostRows = 16;

export const blockRowsStrategy: Strategy<BlockRowsTiling> = {
  *candidates(problem) {
    for (const flip of [false, true]) {
      const { m, n, blocks } = flip ? flippedProblem(problem) : problem;
      if (blocks?.side !== 'rhs' || m > mostRows) continue;
      for (const parts of [1, 2, 4, 8, 32]) {
        const columns = 4 * Math.ceil(n / 4 / parts);
        if (parts === 1 || columns >= 32)
          yield { kind: 'block-rows', flip, rows: Math.min(m, 4), columns, beside: m === 1 ? 2 : 1 };
      }
    }
  },
  isLegal({ rows, columns, beside }, { m, k, blocks, dtype }, target) {
    return (
      packsOperands(target) &&
      dtype === 'f32' &&
      blocks?.side === 'rhs' &&
      isCoded(blocks.format) &&
      m <= mostRows &&
      rows <= Math.min(m, 4) &&
      columns % 4 === 0 &&
      4 % beside === 0 &&
      4 * (hasWideRegisters(target) ? cellWords(m, k, blocks.format) : scratchWords(m, rows, beside, k)) <=
        target.limits.workgroupBytes
    );
  },
  time({ columns }, problem, target) {
    const { batch, m, n, k, epilogue } = problem;
    const width = roundedUp(Math.min(columns, n), 4);
    const codes = (k * width * (0.05 + 0.05 * m)) / 1;
    const block = codes + m * k * 1.2 + width * m * (0.1 * epilogue + 0.5) + cpu.workgroup;
    return shared(batch * Math.ceil(n / columns), problem, target) * block;
  },
  loop: (frame, body, tiling) =>
    (hasWideRegisters(frame.target) ? blockCellsLoop : blockRowsLoop)(frame, body, tiling),
};

/** Whether a register takes several vectors of four lanes. */
function hasWideRegisters({ vectors }: Target): boolean {
  return (vectors?.lanes ?? 4) > 4;
}

function scratchWords(m: number, rows: number, beside: number, k: number): number {
  return m * (k / 2) + 2 * m * groupRoom(k) + beside * rows * groupRoom(k);
}

/** What a workgroup keeps, and its loops. */
class BlockRowsLoop {
  readonly b: LoopBuilder;
  readonly #body: Contract;
  readonly #points: TileLowering;
  readonly #rows: BlockRows;
  readonly #codes: BlockCodes;
  readonly #words: string;
  readonly #beside: number;

  constructor(frame: Frame, b: LoopBuilder, body: Contract, rows: BlockRows, beside: number, group: Value) {
    if (!isCoded(rows.format)) throw new CompilerBug('block rows', `no codes of ${rows.format}`);
    this.b = b;
    this.#body = body;
    this.#rows = rows;
    this.#codes = blockCodes[rows.format];
    this.#words = bufferName(frame)(rows.words);
    this.#beside = beside;
    this.#points = new TileLowering(b, frame, body, group);
  }

  get #k(): number {
    return this.#body.k.extent;
  }

  get #room(): number {
    return groupRoom(this.#k);
  }

  /** A vector of scratch memory. */
  #kept(buffer: string, index: Value, type: RegisterType): Value {
    return { kind: 'load', buffer, index, aligned: true, type, width: 4 };
  }

  #name(op: 'mul' | 'add', args: readonly Value[]): Value {
    return this.b.let(arithmetic(op, args, 'f32'), op);
  }

  /** Makes whole numbers of every row of the left side. */
  quantise(): void {
    quantiseRows(this.b, this.#body, this.#points, this.#codes);
  }

  /** Results of `rows` rows from `first` on, for four columns. */
  quad(first: Value, rows: number, quad: Value): void {
    const { b } = this;
    const { n } = this.#body;
    const columns = span(b, mulInts(quad, constant(4)), 4, n.extent, n.extent % 4 === 0, 'n');
    const results: Value[][] = Array.from({ length: rows }, () => []);
    for (let from = 0; from < 4; from += this.#beside) {
      const beside = columns.slice(from, from + this.#beside).map(({ index }) => index);
      this.#sums(first, rows, beside).forEach((sums, row) => results[row]?.push(...sums));
    }
    results.forEach((args, row) => {
      const sums = b.let({ kind: 'vector', args, type: 'f32', width: 4 }, 'sums');
      this.#points.write(b.let(addInts(first, constant(row)), 'row'), quad, sums);
    });
  }

  /** Sums of some rows with some columns, row by row. */
  #sums(first: Value, rows: number, columns: readonly Value[]): readonly (readonly Value[])[] {
    const { b } = this;
    const { words: stepWords, groups } = this.#codes;
    const offsets = planeOffsets(this.#rows.format, this.#k);
    const base = columns.map((column) => {
      const lowering = this.#points.at({ column });
      return b.let(lowering.index(lowering.place(this.#rows.base)), 'base');
    });
    const load = (index: Value, width: 1 | 4): Value => ({
      kind: 'load',
      buffer: this.#words,
      index,
      aligned: true,
      type: 'u32',
      width,
    });
    const slot = (column: number, row: number): number => (column * rows + row) * this.#room;
    const zero = constant(0, 'f32', 4);
    const rowAt = (row: number, by: number): Value =>
      b.let(mulInts(addInts(first, constant(row)), constant(by)), 'row_at');
    const taken = columns.map(() =>
      Array.from({ length: rows }, () => (this.#codes.middle === 0 ? zero : b.var('taken', zero))),
    );
    columns.forEach((_, j) => {
      const from = b.let(addInts(base[j]!, constant(offsets[1] ?? 0)), 'scales_at');
      const words = {
        four: (at: Value): Value => load(addInts(from, at), 4),
        one: (at: Value): Value => load(addInts(from, at), 1),
      };
      this.#codes.scales(b, this.#k, words, (group, scale, offset) => {
        for (let row = 0; row < rows; row++) {
          const at = b.let(addInts(rowAt(row, this.#room), group), 'at');
          const both = this.#name('mul', [scale, this.#kept('steps', at, 'f32')]);
          b.store('scales', addInts(group, constant(slot(j, row))), both, true);
          const gone = taken[j]?.[row];
          if (offset !== undefined && gone !== undefined)
            b.assign(gone, multiplyAdd(offset, this.#kept('sums', at, 'f32'), gone));
        }
      });
    });
    const sums = columns.map(() => Array.from({ length: rows }, () => b.var('sum', zero)));
    const steps = this.#k / (groups * this.#codes.group);
    b.for('step', constant(0), constant(steps), 1, (step) => {
      const codes = base.map((at) => {
        const begin = addInts(at, mulInts(step, constant(stepWords)));
        return this.#codes.codes(b, (words) => b.let(load(addInts(begin, constant(words)), 4), 'w'));
      });
      for (let group = 0; group < groups; group++)
        for (let row = 0; row < rows; row++)
          this.#group(rowAt(row, this.#k / 2), step, group, row, codes, sums, slot);
    });
    return Array.from({ length: rows }, (_, row) =>
      columns.map((_, j) => {
        const [sum, gone] = [sums[j]![row]!, taken[j]![row]!];
        const rest = this.#codes.middle === 0 ? sum : b.let(operation('sub', [sum, gone], 'f32'), 'rest');
        const held = b.let(rest, 'rest');
        const [p, q, r, s] = [0, 1, 2, 3].map((lane) => laneOf(held, lane)) as [Value, Value, Value, Value];
        return this.#name('add', [this.#name('add', [p, q]), this.#name('add', [r, s])]);
      }),
    );
  }

  /** One row's products with one group of every column. */
  #group(
    rowAt: Value,
    step: Value,
    group: number,
    row: number,
    codes: readonly (readonly (readonly (readonly [Value, Value])[])[])[],
    sums: readonly (readonly Value[])[],
    slot: (column: number, row: number) => number,
  ): void {
    const { b } = this;
    const { group: size, groups } = this.#codes;
    const begin = addInts(
      rowAt,
      addInts(mulInts(step, constant((groups * size) / 2)), constant((group * size) / 2)),
    );
    const values = Array.from({ length: size / 16 }, (_, sixteen) =>
      ([0, 4] as const).map((part) =>
        b.let(this.#kept('codes', addInts(begin, constant(8 * sixteen + part)), 'u32'), 'a'),
      ),
    );
    codes.forEach((column, j) => {
      const products = (column[group] ?? []).flatMap((pair, sixteen) =>
        pair.map((code, part) => b.let(arithmetic('dotI16', [code, values[sixteen]![part]!], 'i32'), 'dot')),
      );
      const sum = products.reduce((x, y) => b.let(arithmetic('add', [x, y], 'i32'), 'dots'));
      const index = addInts(mulInts(step, constant(groups)), constant(slot(j, row) + group));
      const scale: Value = { kind: 'load', buffer: 'scales', index, aligned: true, type: 'f32', width: 1 };
      const spread: Value = { kind: 'splat', arg: scale, type: 'f32', width: 4 };
      const held = sums[j]![row]!;
      b.assign(held, multiplyAdd(b.let(operation('cast', [sum], 'f32'), 'dots'), spread, held));
    });
  }
}

function blockRowsLoop(frame: Frame, body: Contract, tiling: BlockRowsTiling): Loop {
  const { m, k } = body;
  const { rows: height, beside } = tiling;
  const rows = blockRows(body.rhs, k);
  if (rows === undefined) throw new CompilerBug('block rows', 'the right side is no rows of blocks');
  const room = groupRoom(k.extent);
  const scratch = (name: string, dtype: 'f32' | 'u32', size: number): LoopBuffer => ({
    name,
    space: 'workgroup',
    dtype,
    size,
    access: 'read_write',
  });
  const buffers = [
    scratch('codes', 'u32', m.extent * (k.extent / 2)),
    scratch('steps', 'f32', m.extent * room),
    scratch('sums', 'f32', m.extent * room),
    scratch('scales', 'f32', beside * height * room),
  ];
  return rowsByBlocks(frame, body, tiling, rows.format, buffers, (b, group) => {
    return new BlockRowsLoop(frame, b, body, rows, beside, group);
  });
}
