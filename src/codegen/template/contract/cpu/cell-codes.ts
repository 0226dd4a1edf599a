// How rows of blocks are multiplied in wide registers of a core, format by format. Sixteen bytes of codes that lie together, and what belongs to them in
// other planes, are a cell: vectors of four words, which become vectors of whole numbers of 16 bits, two a lane. Cells that follow each
// other do the same of neighbouring memory, so that wider registers take several of them.

import { planeOffsets } from '../../../../ir/blocks/sizes.ts';
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
import {
  and,
  bytes,
  down,
  lanes,
  named,
  nibbles,
  product,
  spread,
  word,
  type CodedFormat,
  type Load,
} from './block-codes.ts';

/** Where sixteen values of a group are multiplied: by vectors of a run from `first` on. */
export interface CellSeat {
  readonly cell: Value;
  readonly run: Value;
  readonly first: number;
}

/** What the codes of a unit are multiplied with. */
export interface Scales {
  /** The scale of one run of a cell of the unit, in four lanes. */
  at(cell: number, run: number): Value;
  /** What the sums of values are multiplied with and taken away, group by group, four a vector. */
  readonly offsets?: readonly Value[];
}

export interface CellCodes {
  /** Values a group: those under one scale. */
  readonly group: 16 | 32;
  /** Cells that have their scales together, and the groups that these are. */
  readonly cells: number;
  readonly groups: number;
  /** Words of a cell. */
  readonly words: number;
  /** Runs of a cell, each of one group, and the vectors of codes that a run has. */
  readonly runs: number;
  readonly vectors: number;
  /** What is taken away from every code. */
  readonly middle: number;
  /** Whether groups have offsets. */
  readonly hasOffsets: boolean;
  /** Where the values of a group, its first sixteen or its second, are multiplied. */
  seat(group: Value, sixteen: number): CellSeat;
  /** The codes of a cell, run by run. In words they are in turn: one vector has the even bytes, the next one the odd ones. */
  codes(b: LoopBuilder, load: (words: number) => Value): readonly (readonly Value[])[];
  /** The scales of one unit of a row of `columns`. */
  scales(b: LoopBuilder, columns: number, load: Load, unit: Value): Scales;
}

const part = (x: Value, by: number): Value => operation('div', [x, constant(by)], 'i32');
const rest = (x: Value, by: number): Value => operation('mod', [x, constant(by)], 'i32');

/** A scale of 16 bits for every block of 32: eight of them in four words. `each`: cells of a block. */
const halves =
  (each: 1 | 2): CellCodes['scales'] =>
  (b, _, load, unit) => {
    const pairs = b.let(load.four(mulInts(unit, constant(4))), 'pairs');
    const low = named(b, 'unpackF16', [pairs], 'f32');
    const high = named(b, 'unpackF16', [down(b, pairs, 16)], 'f32');
    const four = (from: number): Value => {
      const pair = [low, high].map((x) => [x, from] as const);
      return lanes(b, [...pair, ...pair.map(([x]) => [x, from + 1] as const)], 'f32');
    };
    return {
      at: (cell) => {
        const group = Math.floor(cell / each);
        return spread(b, four(group < 4 ? 0 : 2), group % 4);
      },
    };
  };

/** One byte of every word, with its sign, as a float. */
function signedByte(b: LoopBuilder, words: Value, byte: number): Value {
  const high = byte === 3 ? words : named(b, 'shl', [words, word(24 - 8 * byte)], 'u32');
  const signed = named(b, 'bitcast', [high], 'i32');
  return b.let(operation('cast', [named(b, 'shr', [signed, constant(24, 'i32', 4)], 'i32')], 'f32'), 'byte');
}

export const cellCodes: Readonly<Record<CodedFormat, CellCodes>> = {
  q8_0: {
    group: 32,
    cells: 16,
    groups: 8,
    words: 4,
    runs: 1,
    vectors: 2,
    middle: 0,
    hasOffsets: false,
    seat: (group, sixteen) => ({
      cell: addInts(mulInts(group, constant(2)), constant(sixteen)),
      run: constant(0),
      first: 0,
    }),
    codes: (b, load) => {
      const x = load(0);
      return [[named(b, 'evenI8', [x], 'u32'), named(b, 'oddI8', [x], 'u32')]];
    },
    scales: halves(2),
  },
  q4_0: {
    group: 32,
    cells: 8,
    groups: 8,
    words: 4,
    runs: 1,
    vectors: 4,
    middle: 8,
    hasOffsets: false,
    seat: (group, sixteen) => ({ cell: group, run: constant(0), first: 2 * sixteen }),
    codes: (b, load) => {
      const x = load(0);
      return [[...nibbles(b, x, 0), ...nibbles(b, x, 4)]];
    },
    scales: halves(1),
  },
  q4_k: {
    group: 32,
    cells: 8,
    groups: 8,
    words: 4,
    runs: 2,
    vectors: 2,
    middle: 0,
    hasOffsets: true,
    // Two groups share their words: one has the lower bits, the other one the upper bits.
    seat: (group, sixteen) => ({
      cell: addInts(mulInts(part(group, 2), constant(2)), constant(sixteen)),
      run: rest(group, 2),
      first: 0,
    }),
    codes: (b, load) => {
      const x = load(0);
      return [nibbles(b, x, 0), nibbles(b, x, 4)];
    },
    scales: (b, _, load, unit) => {
      const head = b.let(load.four(mulInts(unit, constant(4))), 'head');
      const both = spread(b, head, 0);
      const [d, least] = [
        named(b, 'unpackF16', [both], 'f32'),
        named(b, 'unpackF16', [down(b, both, 16)], 'f32'),
      ];
      const lane = (at: number): Value =>
        b.let({ kind: 'lane', arg: head, lane: at, type: 'u32', width: 1 }, 'scales');
      const [low, high, top] = [lane(1), lane(2), lane(3)];
      const mask = (x: Value, by: number, bits: number): Value => {
        const moved = by === 0 ? x : named(b, 'shr', [x, constant(by, 'u32')], 'u32');
        return named(b, 'and', [moved, constant(bits, 'u32')], 'u32');
      };
      const late = (x: Value, by: number): Value =>
        named(b, 'or', [mask(top, by, 0x0f0f0f0f), mask(x, 2, 0x30303030)], 'u32');
      const fours = [mask(low, 0, 0x3f3f3f3f), late(low, 0)].map((x) => product(b, d, bytes(b, x, 'byteU')));
      return {
        at: (cell, run) => {
          const group = 2 * Math.floor(cell / 2) + run;
          return spread(b, fours[Math.floor(group / 4)]!, group % 4);
        },
        offsets: [mask(high, 0, 0x3f3f3f3f), late(high, 4)].map((x) =>
          product(b, least, bytes(b, x, 'byteU')),
        ),
      };
    },
  },
  q6_k: {
    group: 16,
    cells: 4,
    groups: 16,
    words: 12,
    runs: 4,
    vectors: 2,
    middle: 32,
    hasOffsets: false,
    // Of eight groups, one cell has the four even ones, and the next one the others.
    seat: (group) => ({
      cell: addInts(mulInts(part(group, 8), constant(2)), rest(group, 2)),
      run: part(rest(group, 8), 2),
      first: 0,
    }),
    codes: (b, load) => {
      const [x, y, top] = [load(0), load(4), load(8)];
      const low = [and(b, x, 0x0f0f0f0f), and(b, y, 0x0f0f0f0f)];
      const up = [x, y].map((word) => and(b, down(b, word, 4), 0x0f0f0f0f));
      const two = [
        named(b, 'shl', [top, word(4)], 'u32'),
        named(b, 'shl', [top, word(2)], 'u32'),
        top,
        down(b, top, 2),
      ].map((moved) => and(b, moved, 0x30303030));
      return [...low, ...up].map((four, run) => {
        const code = named(b, 'or', [four, two[run]!], 'u32');
        return [and(b, code, 0x00ff00ff), and(b, down(b, code, 8), 0x00ff00ff)];
      });
    },
    scales: (b, columns, load, unit) => {
      const planes = planeOffsets('q6_k', columns);
      const from = (planes[2] ?? 0) - (planes[1] ?? 0);
      const scales = b.let(load.four(mulInts(unit, constant(4))), 'scales');
      const pair = part(unit, 2);
      const by = operation('cast', [mulInts(rest(unit, 2), constant(16))], 'u32');
      const half = b.let(arithmetic('shr', [load.one(addInts(pair, constant(from))), by], 'u32'), 'half');
      const d = named(b, 'unpackF16', [splat(half, 4)], 'f32');
      return { at: (cell, run) => product(b, d, signedByte(b, spread(b, scales, cell), run)) };
    },
  },
};
