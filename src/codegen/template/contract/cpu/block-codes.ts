// How rows of blocks are multiplied on a core, format by format: groups of values under one scale as
// whole numbers of 16 bits, in pairs of vectors of which one has the even and one the odd bytes, and
// the scales of four groups at a time. Groups are counted in the order in which their codes lie.

import type { BlockFormat } from '../../../../ir/blocks/format.ts';
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
import type { LoopOp, RegisterType, Value } from '../../../loop/loop.ts';

/** Sixteen codes: four words that have the even ones, two a word, and four that have the odd ones. */
export type Sixteen = readonly [even: Value, odd: Value];

/** Words of a row's scales, by their place among these: four from there on, or one. */
export interface Load {
  four(at: Value): Value;
  one(at: Value): Value;
}

/** What is found of four groups: what their codes are multiplied with, and with `minima` what their sums are. */
export type Sink = (group: Value, scale: Value, offset: Value | undefined) => void;

export interface BlockCodes {
  /** Values a group. */
  readonly group: 16 | 32;
  /** Groups whose codes are taken at a time, and words that these take. */
  readonly groups: number;
  readonly words: number;
  /** What is taken away from every code; sums of values are multiplied with it. */
  readonly middle: number;
  /** Whether sums are multiplied with scales of their own, not with those of the codes. */
  readonly minima?: true;
  /** Which group of values comes at each place among eight, where that is not their order. */
  readonly order?: 'sides';
  /** The codes of one step, group by group. */
  codes(b: LoopBuilder, load: (words: number) => Value): readonly (readonly Sixteen[])[];
  /** Visits all groups of a row of `columns`, four by four. */
  scales(b: LoopBuilder, columns: number, load: Load, sink: Sink): void;
}

/** Formats whose groups are multiplied as whole numbers. */
export type CodedFormat = Extract<BlockFormat, 'q4_0' | 'q8_0' | 'q4_k' | 'q6_k'>;

export const named = (b: LoopBuilder, op: LoopOp, args: readonly Value[], type: RegisterType): Value =>
  b.let(arithmetic(op, args, type), op.toLowerCase());
export const word = (value: number): Value => constant(value, 'u32', 4);
export const and = (b: LoopBuilder, x: Value, mask: number): Value => named(b, 'and', [x, word(mask)], 'u32');
export const down = (b: LoopBuilder, x: Value, by: number): Value =>
  by === 0 ? x : named(b, 'shr', [x, word(by)], 'u32');
export const product = (b: LoopBuilder, x: Value, y: Value): Value => named(b, 'mul', [x, y], 'f32');

/** Lanes of one vector or two as a vector. */
export function lanes(b: LoopBuilder, of: readonly (readonly [Value, number])[], type: RegisterType): Value {
  const args = of.map(([arg, lane]): Value => ({ kind: 'lane', arg, lane, type, width: 1 }));
  return b.let({ kind: 'vector', args, type, width: 4 }, 'lanes');
}

/** One lane of a vector in all lanes. */
export const spread = (b: LoopBuilder, x: Value, lane: number): Value =>
  lanes(
    b,
    [0, 1, 2, 3].map(() => [x, lane] as const),
    x.type,
  );

/** Four bits of every second byte of words, the lower or the upper ones: even bytes, and odd ones. */
export const nibbles = (b: LoopBuilder, x: Value, upper: 0 | 4): Sixteen => [
  and(b, down(b, x, upper), 0x000f000f),
  and(b, down(b, x, upper + 8), 0x000f000f),
];

/** A scale of 16 bits for every block of 32: eight of them in four words. */
const halves: BlockCodes['scales'] = (b, columns, load, sink) => {
  const visit = (eight: Value, count: number): void => {
    const pairs = b.let(load.four(mulInts(eight, constant(4))), 'pairs');
    const low = named(b, 'unpackF16', [pairs], 'f32');
    const high = named(b, 'unpackF16', [down(b, pairs, 16)], 'f32');
    for (let half = 0; 4 * half < count; half++) {
      const four = lanes(
        b,
        [
          [low, 2 * half],
          [high, 2 * half],
          [low, 2 * half + 1],
          [high, 2 * half + 1],
        ],
        'f32',
      );
      sink(addInts(mulInts(eight, constant(8)), constant(4 * half)), four, undefined);
    }
  };
  const blocks = columns / 32;
  const eights = Math.floor(blocks / 8);
  if (eights > 0) b.for('eight', constant(0), constant(eights), 1, (eight) => visit(eight, 8));
  if (blocks % 8 > 0) visit(constant(eights), blocks % 8);
};

const eachByte: Value = {
  kind: 'vector',
  args: [0, 1, 2, 3].map((byte) => constant(byte, 'u32')),
  type: 'u32',
  width: 4,
};

/** The bytes of a word as floats. */
export function bytes(b: LoopBuilder, scalar: Value, sign: 'byteU' | 'byteS'): Value {
  const args = [splat(scalar, 4), eachByte];
  const wide = named(b, sign, args, sign === 'byteU' ? 'u32' : 'i32');
  const signed = sign === 'byteU' ? named(b, 'bitcast', [wide], 'i32') : wide;
  return b.let(operation('cast', [signed], 'f32'), 'bytes');
}

export function isCoded(format: string): format is CodedFormat {
  return Object.hasOwn(blockCodes, format);
}

export const blockCodes: Readonly<Record<CodedFormat, BlockCodes>> = {
  q8_0: {
    group: 32,
    groups: 1,
    words: 8,
    middle: 0,
    codes: (b, load) => {
      const sixteen = (x: Value): Sixteen => [named(b, 'evenI8', [x], 'u32'), named(b, 'oddI8', [x], 'u32')];
      return [[sixteen(load(0)), sixteen(load(4))]];
    },
    scales: halves,
  },
  q4_0: {
    group: 32,
    groups: 1,
    words: 4,
    middle: 8,
    codes: (b, load) => {
      const x = load(0);
      return [[nibbles(b, x, 0), nibbles(b, x, 4)]];
    },
    scales: halves,
  },
  q4_k: {
    group: 32,
    groups: 2,
    words: 8,
    middle: 1,
    minima: true,
    codes: (b, load) => {
      const [x, y] = [load(0), load(4)];
      return ([0, 4] as const).map((upper) => [nibbles(b, x, upper), nibbles(b, y, upper)]);
    },
    scales: (b, columns, load, sink) => {
      b.for('block', constant(0), constant(columns / 256), 1, (block) => {
        const head = b.let(load.four(mulInts(block, constant(4))), 'head');
        const both = spread(b, head, 0);
        const [d, least] = [
          named(b, 'unpackF16', [both], 'f32'),
          named(b, 'unpackF16', [down(b, both, 16)], 'f32'),
        ];
        const lane = (at: number): Value =>
          b.let({ kind: 'lane', arg: head, lane: at, type: 'u32', width: 1 }, 'scales');
        const [low, high, rest] = [lane(1), lane(2), lane(3)];
        const mask = (x: Value, by: number, bits: number): Value => {
          const moved = by === 0 ? x : named(b, 'shr', [x, constant(by, 'u32')], 'u32');
          return named(b, 'and', [moved, constant(bits, 'u32')], 'u32');
        };
        const late = (x: Value, by: number): Value =>
          named(b, 'or', [mask(rest, by, 0x0f0f0f0f), mask(x, 2, 0x30303030)], 'u32');
        const four = (i: number, scale: Value, minimum: Value): void =>
          sink(
            addInts(mulInts(block, constant(8)), constant(4 * i)),
            product(b, d, bytes(b, scale, 'byteU')),
            product(b, least, bytes(b, minimum, 'byteU')),
          );
        four(0, mask(low, 0, 0x3f3f3f3f), mask(high, 0, 0x3f3f3f3f));
        four(1, late(low, 0), late(high, 4));
      });
    },
  },
  q6_k: {
    group: 16,
    groups: 4,
    words: 12,
    middle: 32,
    order: 'sides',
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
        const code = named(b, 'or', [four, two[run] ?? four], 'u32');
        return [[and(b, code, 0x00ff00ff), and(b, down(b, code, 8), 0x00ff00ff)]];
      });
    },
    scales: (b, columns, load, sink) => {
      const planes = planeOffsets('q6_k', columns);
      const from = (planes[2] ?? 0) - (planes[1] ?? 0);
      b.for('block', constant(0), constant(columns / 256), 1, (block) => {
        const scales = b.let(load.four(mulInts(block, constant(4))), 'scales');
        const pair = operation('div', [block, constant(2)], 'i32');
        const second = operation('mod', [block, constant(2)], 'i32');
        const by = operation('cast', [mulInts(second, constant(16))], 'u32');
        const half = b.let(arithmetic('shr', [load.one(addInts(pair, constant(from))), by], 'u32'), 'half');
        const d = named(b, 'unpackF16', [splat(half, 4)], 'f32');
        for (const step of [0, 1, 2, 3]) {
          const lane: Value = { kind: 'lane', arg: scales, lane: step, type: 'u32', width: 1 };
          const four = product(b, d, bytes(b, b.let(lane, 'four'), 'byteS'));
          sink(addInts(mulInts(block, constant(16)), constant(4 * step)), four, undefined);
        }
      });
    },
  },
};
