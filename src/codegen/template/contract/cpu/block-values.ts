// The left side of products with quantized blocks, as 16-bit integers: each group of values has one scale,
// and is laid out like the codes that it is multiplied with. Beside it are the scale of each group, and the
// sum of its values, which replaces the offset that is subtracted from every code.

import {
  addInts,
  arithmetic,
  constant,
  mulInts,
  operation,
  type LoopBuilder,
} from '../../../loop/builder.ts';
import type { Value } from '../../../loop/loop.ts';
import type { Contract } from '../problem.ts';
import { roundedUp } from '../size.ts';
import { type TileLowering } from '../tile.ts';
import { laneOf } from '../../../loop/register.ts';
import { named, type BlockCodes } from './block-codes.ts';

/** Where a group's values are all smaller, they are taken for 0 in part. */
const leastScale = 1e-30;

/** Places for the groups of a row: those of formats with the most, and whole vectors of eight. */
export function groupRoom(k: number): number {
  return roundedUp(k / 16, 8);
}

/** Writes `codes`, `steps` and `sums` of all rows of the left side. */
export function quantiseRows(b: LoopBuilder, body: Contract, points: TileLowering, codes: BlockCodes): void {
  new Quantising(b, body, points, codes).rows();
}

class Quantising {
  readonly b: LoopBuilder;
  readonly #body: Contract;
  readonly #points: TileLowering;
  readonly #codes: BlockCodes;

  constructor(b: LoopBuilder, body: Contract, points: TileLowering, codes: BlockCodes) {
    this.b = b;
    this.#body = body;
    this.#points = points;
    this.#codes = codes;
  }

  get #k(): number {
    return this.#body.k.extent;
  }

  get #room(): number {
    return groupRoom(this.#k);
  }

  /** Makes whole numbers of every row of the left side, group by group. */
  rows(): void {
    const { b } = this;
    const m = this.#body.m.extent;
    const groups = this.#k / this.#codes.group;
    this.#each('row', m, (row) =>
      b.for('group', constant(0), constant(groups), 1, (group) => this.#quantiseGroup(row, group)),
    );
    // Vectors of scales go beyond the last group.
    const room = roundedUp(groups, 8);
    if (room > groups)
      this.#each('row', m, (row) => {
        for (let at = groups; at < room; at++)
          for (const buffer of ['steps', 'sums'])
            b.store(
              buffer,
              addInts(mulInts(row, constant(this.#room)), constant(at)),
              constant(0, 'f32'),
              true,
            );
      });
  }

  #quantiseGroup(row: Value, group: Value): void {
    const { b } = this;
    const { group: size, middle } = this.#codes;
    const { step, whole } = quantisedGroup(b, this.#body, this.#points, row, group, size);
    const place = b.let(this.#placeOf(group), 'place');
    const lanes = whole.reduce((x, y) => b.let(arithmetic('add', [x, y], 'i32'), 'all'));
    const [p, q, r, s] = [0, 1, 2, 3].map((i) => laneOf(lanes, i)) as [Value, Value, Value, Value];
    const add = (x: Value, y: Value): Value => arithmetic('add', [x, y], 'i32');
    const sum = operation('cast', [b.let(add(add(p, q), add(r, s)), 'all')], 'f32');
    const at = b.let(addInts(mulInts(row, constant(this.#room)), place), 'at');
    b.store('steps', at, step, true);
    if (middle !== 0) {
      const scaled = named(b, 'mul', [step, constant(middle, 'f32')], 'f32');
      b.store('sums', at, named(b, 'mul', [b.let(sum, 'sum'), scaled], 'f32'), true);
    }
    const first = addInts(mulInts(row, constant(this.#k / 2)), mulInts(place, constant(size / 2)));
    const begin = b.let(first, 'begin');
    for (let sixteen = 0; sixteen < size / 16; sixteen++) {
      const turned = transposed(b, whole.slice(4 * sixteen, 4 * sixteen + 4));
      ([0, 1] as const).forEach((odd) => {
        const at = addInts(begin, constant(8 * sixteen + 4 * odd));
        b.store('codes', at, pairOf(b, turned, odd), true);
      });
    }
  }

  /** Where a group's codes and scales lie. */
  #placeOf(group: Value): Value {
    if (this.#codes.order === undefined) return group;
    // Of eight groups the four even ones come first.
    const of = (op: 'div' | 'mod', x: Value, by: number): Value => operation(op, [x, constant(by)], 'i32');
    const eight = mulInts(of('div', group, 8), constant(8));
    const side = mulInts(of('mod', group, 2), constant(4));
    return addInts(addInts(eight, side), of('div', of('mod', group, 8), 2));
  }

  #each(hint: string, count: number, visit: (index: Value) => void): void {
    if (count === 1) visit(constant(0));
    else this.b.for(hint, constant(0), constant(count), 1, visit);
  }
}

/** A group of values of a row: whole numbers, in vectors of four, and what one of them is. */
export function quantisedGroup(
  b: LoopBuilder,
  { lhs }: Contract,
  points: TileLowering,
  row: Value,
  group: Value,
  size: number,
): { readonly step: Value; readonly whole: readonly Value[] } {
  const name = (op: 'abs' | 'max' | 'mul' | 'round' | 'div', args: readonly Value[]): Value =>
    named(b, op, args, 'f32');
  const quads = Array.from({ length: size / 4 }, (_, i) => {
    const stepQuad = b.let(addInts(mulInts(group, constant(size / 4)), constant(i)), 'kquad');
    return b.let(points.at({ row, stepQuad }).value(lhs), 'x');
  });
  const four = quads.map((x) => name('abs', [x])).reduce((x, y) => name('max', [x, y]));
  const [p, q, r, s] = [0, 1, 2, 3].map((i) => laneOf(four, i)) as [Value, Value, Value, Value];
  const most = name('max', [name('max', [p, q]), name('max', [r, s])]);
  const bound = name('max', [most, constant(leastScale, 'f32')]);
  const step = name('mul', [bound, constant(1 / 32767, 'f32')]);
  const inverse = name('div', [constant(32767, 'f32'), bound]);
  const whole = quads.map((x) =>
    b.let(operation('cast', [name('round', [name('mul', [x, inverse])])], 'i32'), 'q'),
  );
  return { step, whole };
}

/** Four vectors by their lanes: the first of all four, the second, … */
export function transposed(b: LoopBuilder, rows: readonly Value[]): readonly Value[] {
  const pick = (places: readonly (readonly [Value, number])[]): Value => {
    const args = places.map(([arg, lane]): Value => ({
      kind: 'lane',
      arg,
      lane,
      type: arg.type,
      width: 1,
    }));
    return b.let({ kind: 'vector', args, type: 'i32', width: 4 }, 'turned');
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

/** Two whole numbers a word, of sixteen that are turned: the even ones of every four, or the odd ones. */
export function pairOf(b: LoopBuilder, turned: readonly Value[], odd: 0 | 1): Value {
  const [low, high] = [turned[odd], turned[2 + odd]] as [Value, Value];
  const bits = (x: Value): Value => b.let(operation('bitcast', [x], 'u32'), 'bits');
  const lower = arithmetic('and', [bits(low), constant(0xffff, 'u32')], 'u32');
  const upper = arithmetic('shl', [bits(high), constant(16, 'u32')], 'u32');
  return b.let(arithmetic('or', [lower, upper], 'u32'), 'pair');
}
