// Where the bytes of blocks lie on devices. Blocks of 18, 34 or 210 bytes begin anywhere, and words
// of 32 bits cannot be read from there: so a row's blocks are taken apart once, when they are
// loaded, into planes that each begin at a multiple of 16 bytes, codes before scales. A row is whole
// planes, so rows may be cut and gathered as those of any tensor.

import { blockFacts, type BlockFormat } from './format.ts';
import { planeBytes, planeOffsets, rowWords } from './sizes.ts';

export { rowWords } from './sizes.ts';

/** A run of a block's bytes that lies behind that of the block before it. */
export interface BlockPlane {
  /** Where it begins in a block; sizes.ts says how many bytes it has. */
  readonly from: number;
  /** The order in which its bytes are laid out, where that is not theirs: which byte comes at each place. */
  readonly order?: readonly number[];
  /** Fifth bits of 32 values, which are dealt out so that four neighbours lie in one place of four bytes. */
  readonly dealt?: true;
}

/** For each half of a block and each side of it, in steps of 64 values: 32 bytes of low bits, and 16 of high ones. */
const sides: readonly (readonly [half: number, side: number])[] = [
  [0, 0],
  [0, 1],
  [1, 0],
  [1, 1],
];
/** Bytes of q6_k's codes, so that what belongs together lies together. */
const sixBitOrder: readonly number[] = sides.flatMap(([half, side]) =>
  [64 * half + 16 * side, 64 * half + 32 + 16 * side, 128 + 32 * half + 16 * side].flatMap((first) =>
    Array.from({ length: 16 }, (_, i) => first + i),
  ),
);
/** Its scales: those of a step's four runs of 16 values are a word. */
const sixBitScales: readonly number[] = sides.flatMap(([half, side]) =>
  [0, 1, 2, 3].map((run) => 8 * half + 2 * run + side),
);

/** The planes of every format. The first has the codes, or all of the block but its scale. */
export const blockPlanes: Readonly<Record<BlockFormat, readonly BlockPlane[]>> = {
  q4_0: [{ from: 2 }, { from: 0 }],
  q4_1: [{ from: 4 }, { from: 0 }],
  q5_0: [{ from: 6 }, { from: 2, dealt: true }, { from: 0 }],
  q5_1: [{ from: 8 }, { from: 4, dealt: true }, { from: 0 }],
  q8_0: [{ from: 2 }, { from: 0 }],
  q2_k: [{ from: 0 }, { from: 80 }],
  q3_k: [{ from: 0 }, { from: 96 }, { from: 108 }],
  q4_k: [{ from: 16 }, { from: 0 }],
  q5_k: [{ from: 48 }, { from: 16 }, { from: 0 }],
  q6_k: [{ from: 0, order: sixBitOrder }, { from: 192, order: sixBitScales }, { from: 208 }],
  iq4_nl: [{ from: 2 }, { from: 0 }],
  iq4_xs: [{ from: 8 }, { from: 0 }],
  mxfp4: [{ from: 1 }, { from: 0 }],
};

/** Bytes that a row of so many columns, whole blocks, takes in files. */
export function rowBytes(format: BlockFormat, columns: number): number {
  const { values, bytes } = blockFacts[format];
  return (columns / values) * bytes;
}

/** Whole rows of blocks as they lie in files, as they lie on devices. */
export function rowsToWords(format: BlockFormat, columns: number, bytes: Uint8Array): Uint32Array {
  const each = rowBytes(format, columns);
  const rows = each === 0 ? 0 : bytes.length / each;
  const words = new Uint32Array(rows * rowWords(format, columns));
  writeRows(format, columns, bytes, words, 0);
  return words;
}

/** Writes whole rows of blocks as they lie in files to their place among rows as they lie on devices. */
export function writeRows(
  format: BlockFormat,
  columns: number,
  bytes: Uint8Array,
  words: Uint32Array,
  firstRow: number,
): void {
  const { values, bytes: each } = blockFacts[format];
  const blocks = columns / values;
  const offsets = planeOffsets(format, columns);
  const width = 4 * rowWords(format, columns);
  const rows = blocks === 0 ? 0 : bytes.length / (blocks * each);
  const all = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
  const out = all.subarray(firstRow * width, (firstRow + rows) * width);
  const planes = blockPlanes[format];
  const lengths = planeBytes(format);
  for (let row = 0; row < rows; row++)
    planes.forEach((plane, i) => {
      let to = row * width + 4 * (offsets[i] ?? 0);
      for (let block = 0; block < blocks; block++, to += lengths[i] ?? 0)
        copyPlane(plane, lengths[i] ?? 0, bytes, (row * blocks + block) * each + plane.from, out, to, 'out');
    });
}

/** Rows as they lie on devices, as they lie in files. */
export function wordsToRows(format: BlockFormat, columns: number, words: Uint32Array): Uint8Array {
  const { values, bytes: each } = blockFacts[format];
  const blocks = columns / values;
  const offsets = planeOffsets(format, columns);
  const width = 4 * rowWords(format, columns);
  const from = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
  const rows = width === 0 ? 0 : from.length / width;
  const out = new Uint8Array(rows * blocks * each);
  const planes = blockPlanes[format];
  const lengths = planeBytes(format);
  for (let row = 0; row < rows; row++)
    planes.forEach((plane, i) => {
      let at = row * width + 4 * (offsets[i] ?? 0);
      for (let block = 0; block < blocks; block++, at += lengths[i] ?? 0)
        copyPlane(plane, lengths[i] ?? 0, from, at, out, (row * blocks + block) * each + plane.from, 'back');
    });
  return out;
}

/** Copies one block's part of a plane, to how it lies on devices or back. */
function copyPlane(
  { order, dealt }: BlockPlane,
  bytes: number,
  from: Uint8Array,
  at: number,
  out: Uint8Array,
  to: number,
  way: 'out' | 'back',
): void {
  if (order !== undefined) {
    order.forEach((place, i) => {
      const [source, target] = way === 'out' ? [place, i] : [i, place];
      out[to + target] = from[at + source] ?? 0;
    });
  } else if (dealt === true) {
    const word = new DataView(from.buffer, from.byteOffset).getUint32(at, true);
    new DataView(out.buffer, out.byteOffset).setUint32(to, way === 'out' ? deal(word) : collect(word), true);
  } else if (bytes <= 32) {
    // A loop is faster than a copy of so few bytes.
    for (let i = 0; i < bytes; i++) out[to + i] = from[at + i] ?? 0;
  } else out.set(from.subarray(at, at + bytes), to);
}

/** Bit 4·w + b goes to bit 8·b + w: word w of the codes finds its four bits w places up in each byte. */
function deal(bits: number): number {
  let dealt = 0;
  for (let i = 0; i < 32; i++) dealt |= ((bits >>> i) & 1) << (8 * (i & 3) + (i >> 2));
  return dealt >>> 0;
}

/** Undoes `deal`. */
function collect(dealt: number): number {
  let bits = 0;
  for (let i = 0; i < 32; i++) bits |= ((dealt >>> (8 * (i & 3) + (i >> 2))) & 1) << i;
  return bits >>> 0;
}
