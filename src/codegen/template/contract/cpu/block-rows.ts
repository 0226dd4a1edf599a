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
import { blockRows, type BlockRows } from '../rows-of-blocks.ts';
import { flippedProblem, type Contract } from '../problem.ts';
import { roundedUp } from '../size.ts';
import type { Strategy, Tile } from '../strategy.ts';
import { bufferName, type Frame } from '../../shared/frame.ts';
import { multiplyAdd, TileLowering } from '../tile.ts';
import { laneOf } from '../../../loop/register.ts';
import { CompilerBug } from '../../../../errors.ts';
import { blockCellsLoop, cellWords, rowsByBlocks } from './block-cells.ts';
import { blockCodes, isCoded, lanes, type BlockCodes, type Sixteen } from './block-codes.ts';
import { groupRoom, quantiseRows } from './block-values.ts';
import { cpu, shared } from './costs.ts';

export interface BlockRowsTiling extends Tile {
  /** Rows are multiplied with rows of blocks as whole numbers; `columns` are those of a workgroup. */
  readonly kind: 'block-rows';
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
        if (parts > 1 && columns < 32) continue;
        yield { kind: 'block-rows', flip, rows: Math.min(m, 4), columns };
      }
    }
  },
  isLegal({ rows, columns }, { m, k, blocks, dtype }, target) {
    return (
      packsOperands(target) &&
      dtype === 'f32' &&
      blocks?.side === 'rhs' &&
      isCoded(blocks.format) &&
      m <= mostRows &&
      rows <= Math.min(m, 4) &&
      columns % 4 === 0 &&
      4 * (hasWideRegisters(target) ? cellWords(m, k, blocks.format) : scratchWords(m, rows, k)) <=
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

function scratchWords(m: number, rows: number, k: number): number {
  return m * (k / 2) + 2 * m * groupRoom(k) + 4 * rows * (groupRoom(k) + 1);
}

/** What a workgroup keeps, and its loops. */
class BlockRowsLoop {
  readonly b: LoopBuilder;
  readonly #body: Contract;
  readonly #points: TileLowering;
  readonly #rows: BlockRows;
  readonly #codes: BlockCodes;
  readonly #words: string;
  readonly #height: number;

  constructor(frame: Frame, b: LoopBuilder, body: Contract, rows: BlockRows, height: number, group: Value) {
    if (!isCoded(rows.format)) throw new CompilerBug('block rows', `no codes of ${rows.format}`);
    this.b = b;
    this.#body = body;
    this.#rows = rows;
    this.#codes = blockCodes[rows.format];
    this.#words = bufferName(frame)(rows.words);
    this.#height = height;
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
    // Vectors of scales go beyond the last group.
    const groups = this.#k / this.#codes.group;
    for (let row = 0; row < this.#height; row++)
      for (let group = groups; group < roundedUp(groups, 4); group++)
        this.b.store('dots', constant(4 * (row * this.#room + group)), constant(0, 'i32', 4), true);
  }

  /** Results of `rows` rows from `first` on, for four columns. */
  quad(first: Value, rows: number, quad: Value): void {
    const { b } = this;
    const { n } = this.#body;
    b.for('column', constant(0), constant(4), 1, (column) => {
      const place = b.let(addInts(mulInts(quad, constant(4)), column), 'n');
      // Columns behind the last one are computed in vain.
      const last = operation('min', [place, constant(n.extent - 1)], 'i32');
      const inside = n.extent % 4 === 0 ? place : b.let(last, 'n');
      this.#sums(first, rows, inside).forEach((sum, row) => {
        b.store('results', addInts(column, constant(4 * row)), sum, true);
      });
    });
    for (let row = 0; row < rows; row++) {
      const sums = b.let(this.#kept('results', constant(4 * row), 'f32'), 'sums');
      this.#points.write(b.let(addInts(first, constant(row)), 'row'), quad, sums);
    }
  }

  /**
   * Sums of some rows with a column. Memory is read in order, codes before scales: that is how processors foresee it. The sum of
   * each group is stored before more codes are read: V8 reads as early as it may, and would keep the codes of a whole turn.
   */
  #sums(first: Value, rows: number, column: Value): readonly Value[] {
    const { b } = this;
    const { words: stepWords, groups, group: size, middle, minima } = this.#codes;
    const point = this.#points.at({ column });
    const base = b.let(point.index(point.place(this.#rows.base)), 'base');
    const load = (index: Value, width: 1 | 4): Value => ({
      kind: 'load',
      buffer: this.#words,
      index,
      aligned: true,
      type: 'u32',
      width,
    });
    const rowAt = (row: number, by: number): Value =>
      b.let(mulInts(addInts(first, constant(row)), constant(by)), 'row_at');
    const slot = (row: number, group: Value): Value =>
      mulInts(addInts(group, constant(row * this.#room)), constant(4));
    const steps = this.#k / (groups * size);
    // Several steps a turn: what a turn itself takes is a third of a step.
    const each = [4, 3, 2].find((count) => steps % count === 0 && count * groups <= 4) ?? 1;
    b.for('steps', constant(0), constant(steps / each), 1, (turn) => {
      for (let part = 0; part < each; part++) {
        const step = addInts(mulInts(turn, constant(each)), constant(part));
        const begin = addInts(base, mulInts(step, constant(stepWords)));
        const codes = this.#codes.codes(b, (words) => b.let(load(addInts(begin, constant(words)), 4), 'w'));
        codes.forEach((sixteens, group) => {
          const place = addInts(mulInts(step, constant(groups)), constant(group));
          for (let row = 0; row < rows; row++) {
            const at = addInts(rowAt(row, this.#k / 2), mulInts(place, constant(size / 2)));
            b.store('dots', slot(row, place), this.#dots(at, sixteens), true);
          }
        });
      }
    });
    const zero = constant(0, 'f32', 4);
    const sums = Array.from({ length: rows }, () => b.var('sum', zero));
    const taken = minima === true ? sums.map(() => b.var('taken', zero)) : [];
    const from = b.let(
      addInts(base, constant(planeOffsets(this.#rows.format, this.#k)[1] ?? 0)),
      'scales_at',
    );
    const words = {
      four: (at: Value): Value => load(addInts(from, at), 4),
      one: (at: Value): Value => load(addInts(from, at), 1),
    };
    this.#codes.scales(b, this.#k, words, (group, scale, offset) =>
      sums.forEach((sum, row) => {
        const at = b.let(addInts(rowAt(row, this.#room), group), 'at');
        const four = [0, 1, 2, 3].map((i) =>
          b.let(this.#kept('dots', slot(row, addInts(group, constant(i))), 'i32'), 'dots'),
        );
        const whole = operation('cast', [gathered(b, four)], 'f32');
        const dots = this.#name('mul', [b.let(whole, 'whole'), this.#kept('steps', at, 'f32')]);
        const gone = taken[row];
        if (middle !== 0 && offset === undefined) {
          const rest = operation('sub', [dots, this.#kept('sums', at, 'f32')], 'f32');
          b.assign(sum, multiplyAdd(scale, b.let(rest, 'rest'), sum));
          return;
        }
        b.assign(sum, multiplyAdd(scale, dots, sum));
        if (offset !== undefined && gone !== undefined)
          b.assign(gone, multiplyAdd(offset, this.#kept('sums', at, 'f32'), gone));
      }),
    );
    return sums.map((sum, row) => {
      const gone = taken[row];
      const held = b.let(gone === undefined ? sum : operation('sub', [sum, gone], 'f32'), 'rest');
      const [p, q, r, s] = [0, 1, 2, 3].map((lane) => laneOf(held, lane)) as [Value, Value, Value, Value];
      return this.#name('add', [this.#name('add', [p, q]), this.#name('add', [r, s])]);
    });
  }

  /** The products of a group's codes with the values from `begin` on, summed to four lanes. */
  #dots(begin: Value, sixteens: readonly Sixteen[]): Value {
    const { b } = this;
    const products = sixteens.flatMap((pair, sixteen) =>
      pair.map((code, part) => {
        const values = this.#kept('codes', addInts(begin, constant(8 * sixteen + 4 * part)), 'u32');
        return b.let(arithmetic('dotI16', [code, b.let(values, 'a')], 'i32'), 'dot');
      }),
    );
    return products.reduce((x, y) => b.let(arithmetic('add', [x, y], 'i32'), 'dots'));
  }
}

/** The sums of the lanes of four vectors as one vector, so that one product brings in four scales. */
function gathered(b: LoopBuilder, [p, q, r, s]: readonly Value[]): Value {
  const add = (x: Value, y: Value): Value => b.let(arithmetic('add', [x, y], 'i32'), 'pair');
  const pick = (...places: readonly (readonly [Value, number])[]): Value => lanes(b, places, 'i32');
  const turned = (x: Value, y: Value): Value =>
    add(pick([x, 0], [y, 0], [x, 1], [y, 1]), pick([x, 2], [y, 2], [x, 3], [y, 3]));
  const [low, high] = [turned(p!, q!), turned(r!, s!)];
  return add(pick([low, 0], [low, 1], [high, 0], [high, 1]), pick([low, 2], [low, 3], [high, 2], [high, 3]));
}

function blockRowsLoop(frame: Frame, body: Contract, tiling: BlockRowsTiling): Loop {
  const { m, k } = body;
  const { rows: height } = tiling;
  const rows = blockRows(body.rhs, k);
  if (rows === undefined) throw new CompilerBug('block rows', 'the right side is no rows of blocks');
  const room = groupRoom(k.extent);
  const scratch = (name: string, dtype: 'f32' | 'u32' | 'i32', size: number): LoopBuffer => ({
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
    scratch('dots', 'i32', 4 * height * room),
    scratch('results', 'f32', 4 * height),
  ];
  return rowsByBlocks(frame, body, tiling, rows.format, 1, buffers, (b, group) => {
    return new BlockRowsLoop(frame, b, body, rows, height, group);
  });
}
