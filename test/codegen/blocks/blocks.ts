// Blocks for tests: any codes and group scales, with scales of blocks that are ordinary floats.

import { blockFacts, type BlockFormat } from '../../../src/ir/blocks/format.ts';
import { f16ToBits } from '../../../src/ir/value.ts';
import { randomArray } from '../../support/random/values.ts';

/** Where the 16-bit floats of a block lie. */
const floats: Readonly<Record<BlockFormat, readonly number[]>> = {
  q4_0: [0],
  q4_1: [0, 2],
  q5_0: [0],
  q5_1: [0, 2],
  q8_0: [0],
  q2_k: [80, 82],
  q3_k: [108],
  q4_k: [0, 2],
  q5_k: [0, 2],
  q6_k: [208],
  iq4_nl: [0],
  iq4_xs: [0],
  mxfp4: [],
};

/** So many blocks, the same for the same seed. */
export function blocksOf(format: BlockFormat, count: number, seed: number = 1): Uint8Array {
  const { bytes } = blockFacts[format];
  const raw = Uint8Array.from(randomArray('u8', [count * bytes], seed, 'special').data as Uint8Array);
  const scales = randomArray('f32', [2 * count], seed + 1, 'tame').data as Float32Array;
  const view = new DataView(raw.buffer);
  for (let block = 0; block < count; block++) {
    floats[format].forEach((at, i) =>
      view.setUint16(block * bytes + at, f16ToBits(scales[2 * block + i]! / 64), true),
    );
    // Powers of two around 1, and one that makes subnormal floats.
    if (format === 'mxfp4') raw[block * bytes] = block % 5 === 4 ? 1 : 118 + (block % 7);
  }
  return raw;
}
