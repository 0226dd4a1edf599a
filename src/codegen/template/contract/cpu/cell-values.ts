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
import { named } from './block-codes.ts';
import { pairOf, quantisedGroup, transposed } from './block-values.ts';
import type { CellCodes, CellSeat } from './cell-codes.ts';

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
    const { step, whole } = quantisedGroup(b, this.#body, this.#points, row, group, size);
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
      b.store('sums', at, named(b, 'mul', [sum, step], 'f32'), true);
    }
    const seats = Array.from({ length: size / 16 }, (_, sixteen) => this.#codes.seat(group, sixteen));
    const turned = seats.map((_, i) => transposed(b, whole.slice(4 * i, 4 * i + 4)));
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
      const to = addInts(begin, constant(16 * (seat.first + odd)));
      b.store('codes', to, pairOf(b, turned, odd), true);
    });
  }
}
