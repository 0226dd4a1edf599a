// How large blocks are, and rows of them on devices: what graphs have to know of formats. The rest is
// in format.ts, and in layout.ts, which says which bytes lie where.

import { CompilerBug } from '../../errors.ts';
import type { BlockFormat } from './format.ts';

/** Values a block, and the bytes that it has in each plane of a row. */
const sizes: Readonly<Record<BlockFormat, readonly [values: number, ...planes: number[]]>> = {
  q4_0: [32, 16, 2],
  q4_1: [32, 16, 4],
  q5_0: [32, 16, 4, 2],
  q5_1: [32, 16, 4, 4],
  q8_0: [32, 32, 2],
  q2_k: [256, 80, 4],
  q3_k: [256, 96, 12, 2],
  q4_k: [256, 128, 16],
  q5_k: [256, 128, 32, 16],
  q6_k: [256, 192, 16, 2],
  iq4_nl: [32, 16, 2],
  iq4_xs: [256, 128, 8],
  mxfp4: [32, 16, 1],
};

/** Whether a text names a format. */
export function namesBlocks(text: string): text is BlockFormat {
  return Object.hasOwn(sizes, text);
}

/** Values a block. */
export function blockValues(format: BlockFormat): number {
  return sizes[format][0];
}

/** Bytes that a block has in each plane. */
export function planeBytes(format: BlockFormat): readonly number[] {
  return sizes[format].slice(1);
}

/** The word of a row at which each plane begins, and where the last one ends: whole groups of four words. */
export function planeOffsets(format: BlockFormat, columns: number): readonly number[] {
  const blocks = columns / blockValues(format);
  if (!Number.isInteger(blocks)) throw new CompilerBug('blocks', `${columns} columns are no whole blocks`);
  const offsets = [0];
  for (const bytes of planeBytes(format))
    offsets.push((offsets.at(-1) ?? 0) + 4 * Math.ceil((blocks * bytes) / 16));
  return offsets;
}

/** Words that a row of so many columns, whole blocks, takes on a device. */
export function rowWords(format: BlockFormat, columns: number): number {
  return planeOffsets(format, columns).at(-1) ?? 0;
}
