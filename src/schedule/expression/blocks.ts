// Which words of a row of blocks hold a value. Takes a format and a column, and returns the positions of the
// words in the row, codes before scales. codegen/expression/decode.ts computes the value of these words.

import type { BlockFormat } from '../../ir/blocks/format.ts';
import { planeOffsets } from '../../ir/blocks/sizes.ts';
import { divIndex, modIndex, weightedSum, type IndexExpr } from '../../ir/index-algebra/expr.ts';

/** Places of words for the column whose group of four is `quad`, in a row whose planes begin at `planes`. */
type Words = (quad: IndexExpr, planes: readonly number[]) => readonly IndexExpr[];

/** Four columns lie in one word, and share all others: everything follows from the group of four. */
const part = (quad: IndexExpr, columns: number): IndexExpr => divIndex(quad, columns / 4);
/** Which group of four it is among those of so many columns. */
const rest = (quad: IndexExpr, columns: number): IndexExpr => modIndex(quad, columns / 4);

const sum = (offset: number | undefined, ...terms: readonly (readonly [number, IndexExpr])[]): IndexExpr =>
  weightedSum(terms, offset ?? 0);

/** 32 codes of 4 bits: word w of a block's four has values 4·w and, above, 16 + 4·w. */
const nibbles = (quad: IndexExpr): IndexExpr => sum(0, [4, part(quad, 32)], [1, rest(quad, 16)]);
/** A scale of 16 bits a block. */
const halfOf =
  (values: number, plane: number): Words =>
  (quad, planes) => [sum(planes[plane], [1, part(quad, 2 * values)])];
/** A word a block. */
const wordOf =
  (values: number, plane: number): Words =>
  (quad, planes) => [sum(planes[plane], [1, part(quad, values)])];

/** Blocks of 256 columns that take so many words. */
const within = (
  quad: IndexExpr,
  words: number,
  offset: number,
  ...terms: readonly (readonly [number, IndexExpr])[]
) => sum(offset, [words, part(quad, 256)], ...terms);
/** Runs of 128 and of 64 columns, and the place in a run of 32, of which words are shared. */
const run = (quad: IndexExpr, columns: number): IndexExpr => part(rest(quad, 256), columns);

const words: Readonly<Record<BlockFormat, Words>> = {
  q4_0: (quad, planes) => [nibbles(quad), ...halfOf(32, 1)(quad, planes)],
  q4_1: (quad, planes) => [nibbles(quad), ...wordOf(32, 1)(quad, planes)],
  q5_0: (quad, planes) => [nibbles(quad), ...wordOf(32, 1)(quad, planes), ...halfOf(32, 2)(quad, planes)],
  q5_1: (quad, planes) => [nibbles(quad), ...wordOf(32, 1)(quad, planes), ...wordOf(32, 2)(quad, planes)],
  q8_0: (quad, planes) => [quad, ...halfOf(32, 1)(quad, planes)],
  // Codes, the byte of a group's scale and minimum, and the block's.
  q2_k: (quad, planes) => [
    within(quad, 20, 4, [8, run(quad, 128)], [1, rest(quad, 32)]),
    within(quad, 20, 0, [1, run(quad, 64)]),
    ...wordOf(256, 1)(quad, planes),
  ],
  // Two bits and the third, all twelve bytes of scales, and the block's.
  q3_k: (quad, planes) => [
    within(quad, 24, 8, [8, run(quad, 128)], [1, rest(quad, 32)]),
    within(quad, 24, 0, [1, rest(quad, 32)]),
    ...[0, 1, 2].map((i) => sum((planes[1] ?? 0) + i, [3, part(quad, 256)])),
    ...halfOf(256, 2)(quad, planes),
  ],
  // Codes, the block's scale and minimum, and all twelve bytes of the groups'.
  q4_k: (quad, planes) => [
    sum(0, [8, part(quad, 64)], [1, rest(quad, 32)]),
    ...[0, 1, 2, 3].map((i) => sum((planes[1] ?? 0) + i, [4, part(quad, 256)])),
  ],
  q5_k: (quad, planes) => [
    sum(0, [8, part(quad, 64)], [1, rest(quad, 32)]),
    sum(planes[1], [8, part(quad, 256)], [1, rest(quad, 32)]),
    ...[0, 1, 2, 3].map((i) => sum((planes[2] ?? 0) + i, [4, part(quad, 256)])),
  ],
  // Four bits, two more, the group's scale, and the block's. Twelve words have 64 values: those of
  // one side of four runs of 32, in a half of the block.
  q6_k: (quad, planes) => {
    const side = part(rest(quad, 32), 16);
    const step = sum(0, [24, part(quad, 128)], [12, side], [1, rest(quad, 16)]);
    return [
      sum(0, [1, step], [4, part(rest(quad, 64), 32)]),
      sum(8, [1, step]),
      sum(planes[1], [2, part(quad, 128)], [1, side]),
      ...halfOf(256, 2)(quad, planes),
    ];
  },
  iq4_nl: (quad, planes) => [nibbles(quad), ...halfOf(32, 1)(quad, planes)],
  iq4_xs: (quad, planes) => [
    nibbles(quad),
    ...[0, 1].map((i) => sum((planes[1] ?? 0) + i, [2, part(quad, 256)])),
  ],
  // Four scales of a byte a word.
  mxfp4: (quad, planes) => [nibbles(quad), sum(planes[1], [1, part(quad, 128)])],
};

/** The places in a row of the words that hold a column's value. */
export function wordsOf(format: BlockFormat, columns: number, column: IndexExpr): readonly IndexExpr[] {
  return words[format](divIndex(column, 4), planeOffsets(format, columns));
}
