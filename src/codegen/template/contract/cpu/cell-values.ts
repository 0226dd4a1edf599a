// The left side of products with quantized blocks, as 16-bit integers: each group of values has one scale,
// and is laid out like the codes that it is multiplied with. Beside it are the scale of each group, and the
// sum of its values, which replaces the offset that is subtracted from every code.

import {
  addInts,
  arithmetic,
  constant,
  mulInts,
  operation,
  splat,
  type LoopBuilder,
} from '../../../loop/builder.ts';
import type { Value } from '../../../loop/loop.ts';
import type { Contract } from '../problem.ts';
import { roundedUp } from '../size.ts';
import { type TileLowering } from '../tile.ts';
import { laneOf } from '../../../loop/register.ts';
import type { CellCodes, CellSeat } from './cell-codes.ts';

/** Where a group's values are all smaller, they are taken for 0 in part. */
const leastScale = 1e-30;

/** Words of workgroup memory that a row's values take in each buffer. */
export interface CellRoom {
  /** Values, two a word: vectors of a run, of four cells that follow each other, one behind the other. */
  readonly codes: number;
  /** What a run's sums are multiplied with, and what they begin with, in four lanes: of four cells, one behind the other. */
  readonly steps: number;
  readonly starts: number;
  /** Sums of groups, if there are offsets. */
  readonly sums: number;
}

export function cellRoom(codes: CellCodes, k: number): CellRoom {
  const groups = k / codes.group;
  const cells = roundedUp((groups * codes.cells) / codes.groups, 4);
  return {
    codes: 4 * cells * codes.runs * codes.vectors,
    steps: 4 * cells * codes.runs,
    starts: codes.middle === 0 ? 0 : 4 * cells * codes.runs,
    sums: codes.hasOffsets ? roundedUp(groups, 4) : 0,
  };
}

/** Writes `codes`, `steps`, `starts` and `sums` of all rows of the left side. */
export function quantiseCells(b: LoopBuilder, body: Contract, points: TileLowering, codes: CellCodes): void {
  new Quantising(b, body, points, codes).rows();
}

class Quantising {
  readonly b: LoopBuilder;
  readonly #body: Contract;
  readonly #points: TileLowering;
  readonly #codes: CellCodes;
  readonly #room: CellRoom;

  constructor(b: LoopBuilder, body: Contract, points: TileLowering, codes: CellCodes) {
    this.b = b;
    this.#body = body;
    this.#points = points;
    this.#codes = codes;
    this.#room = cellRoom(codes, body.k.extent);
  }

  #name(op: 'abs' | 'max' | 'mul' | 'round' | 'div', args: readonly Value[]): Value {
    return this.b.let(arithmetic(op, args, 'f32'), op);
  }

  /** Makes whole numbers of every row of the left side, group by group. */
  rows(): void {
    const { b } = this;
    const { m, k } = this.#body;
    const groups = constant(k.extent / this.#codes.group);
    const visit = (row: Value): void =>
      b.for('group', constant(0), groups, 1, (group) => this.#quantiseGroup(row, group));
    if (m.extent === 1) visit(constant(0));
    else b.for('row', constant(0), constant(m.extent), 1, visit);
  }

  #quantiseGroup(row: Value, group: Value): void {
    const { b } = this;
    const { group: size, middle, hasOffsets } = this.#codes;
    const quads = Array.from({ length: size / 4 }, (_, i) => {
      const stepQuad = b.let(addInts(mulInts(group, constant(size / 4)), constant(i)), 'kquad');
      return b.let(this.#points.at({ row, stepQuad }).value(this.#body.lhs), 'x');
    });
    const four = quads.map((x) => this.#name('abs', [x])).reduce((x, y) => this.#name('max', [x, y]));
    const two = [0, 1, 2, 3].map((i) => laneOf(four, i)) as [Value, Value, Value, Value];
    const most = this.#name('max', [
      this.#name('max', [two[0], two[1]]),
      this.#name('max', [two[2], two[3]]),
    ]);
    const bound = this.#name('max', [most, constant(leastScale, 'f32')]);
    const step = this.#name('mul', [bound, constant(1 / 32767, 'f32')]);
    const inverse = this.#name('div', [constant(32767, 'f32'), bound]);
    const whole = quads.map((x) =>
      b.let(operation('cast', [this.#name('round', [this.#name('mul', [x, inverse])])], 'i32'), 'q'),
    );
    if (hasOffsets) {
      const [p, q, r, s] = [0, 1, 2, 3].map((i) => laneOf(this.#sum(whole), i)) as [
        Value,
        Value,
        Value,
        Value,
      ];
      const all = this.#sum([p, r, q, s]);
      const sum = b.let(operation('cast', [all], 'f32'), 'sum');
      const at = addInts(mulInts(row, constant(this.#room.sums)), group);
      b.store('sums', at, this.#name('mul', [sum, step]), true);
    }
    const seats = Array.from({ length: size / 16 }, (_, sixteen) => this.#codes.seat(group, sixteen));
    const turned = seats.map((_, i) => this.#transposed(whole.slice(4 * i, 4 * i + 4)));
    seats.forEach((seat, i) => this.#pairs(row, seat, turned[i]!));
    // Sixteens that follow each other in one run have the same seat but for `first`.
    const runs = seats.flatMap((seat, i) =>
      seat.first === 0
        ? [{ seat, turned: turned.slice(i, seats[i + 1]?.first === 0 ? i + 1 : undefined).flat() }]
        : [],
    );
    for (const { seat, turned: all } of runs) {
      const at = this.#place(seat, 1);
      b.store('steps', addInts(mulInts(row, constant(this.#room.steps)), at), splat(step, 4), true);
      if (middle !== 0) {
        const begun = arithmetic('mul', [this.#sum(all), constant(-middle, 'i32', 4)], 'i32');
        b.store('starts', addInts(mulInts(row, constant(this.#room.starts)), at), begun, true);
      }
    }
  }

  #sum(values: readonly Value[]): Value {
    return values.reduce((x, y) => this.b.let(arithmetic('add', [x, y], 'i32'), 'all'));
  }

  /** Where the first vector of a seat's run lies, among the row's runs of so many vectors. */
  #place({ cell, run }: CellSeat, vectors: number): Value {
    const { b } = this;
    const { runs } = this.#codes;
    const fours = operation('div', [cell, constant(4)], 'i32');
    const four = operation('mod', [cell, constant(4)], 'i32');
    const first = mulInts(addInts(mulInts(fours, constant(runs)), run), constant(16 * vectors));
    return b.let(addInts(first, mulInts(four, constant(4))), 'place');
  }

  /** Stores sixteen values, of which a vector has the even ones of every four, and another one the odd ones. */
  #pairs(row: Value, seat: CellSeat, turned: readonly Value[]): void {
    const { b } = this;
    const { vectors } = this.#codes;
    const at = addInts(mulInts(row, constant(this.#room.codes)), this.#place(seat, vectors));
    const begin = b.let(at, 'begin');
    ([0, 1] as const).forEach((odd) => {
      const [low, high] = [turned[odd], turned[2 + odd]] as [Value, Value];
      const bits = (x: Value): Value => b.let(operation('bitcast', [x], 'u32'), 'bits');
      const lower = arithmetic('and', [bits(low), constant(0xffff, 'u32')], 'u32');
      const upper = arithmetic('shl', [bits(high), constant(16, 'u32')], 'u32');
      const pair = b.let(arithmetic('or', [lower, upper], 'u32'), 'pair');
      b.store('codes', addInts(begin, constant(16 * (seat.first + odd))), pair, true);
    });
  }

  /** Four vectors by their lanes: the first of all four, the second, … */
  #transposed(rows: readonly Value[]): readonly Value[] {
    const pick = (places: readonly (readonly [Value, number])[]): Value => {
      const args = places.map(([arg, lane]): Value => ({
        kind: 'lane',
        arg,
        lane,
        type: arg.type,
        width: 1,
      }));
      return this.b.let({ kind: 'vector', args, type: 'i32', width: 4 }, 'turned');
    };
    const [r0, r1, r2, r3] = rows as readonly [Value, Value, Value, Value];
    const halves = ([0, 2] as const).map((from) => [
      pick([
        [r0, from],
        [r1, from],
        [r0, from + 1],
        [r1, from + 1],
      ]),
      pick([
        [r2, from],
        [r3, from],
        [r2, from + 1],
        [r3, from + 1],
      ]),
    ]) as readonly (readonly [Value, Value])[];
    return halves.flatMap(([x, y]) => [
      pick([
        [x, 0],
        [x, 1],
        [y, 0],
        [y, 1],
      ]),
      pick([
        [x, 2],
        [x, 3],
        [y, 2],
        [y, 3],
      ]),
    ]);
  }
}
