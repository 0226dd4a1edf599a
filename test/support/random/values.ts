// Element values for random programs: tame ones that are exact in every float format, and special ones that find the edges.

import { isFloat, isInteger, type DType } from '../../../src/ir/dtype.ts';
import { sizeOf, type FixedShape } from '../../../src/ir/shape.ts';
import { hostArray, type HostArray, type Scalar, partCount } from '../../../src/ir/value.ts';

/** `tame`: small and exact in every format. `special`: with NaN, −0, infinities, denormals and the ends of the integers. `edges`: those
 *  too, for programs whose results are the same on every decent device. */
export type ValueKind = 'tame' | 'special' | 'edges';

/** A small generator of 32-bit words (mulberry32), for values that follow from a seed. */
export function wordsFrom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let word = Math.imul(state ^ (state >>> 15), 1 | state);
    word = (word + Math.imul(word ^ (word >>> 7), 61 | word)) ^ word;
    return (word ^ (word >>> 14)) >>> 0;
  };
}

export const specialFloats: readonly number[] = [
  0,
  -0,
  1,
  -1,
  NaN,
  Infinity,
  -Infinity,
  0.5,
  2,
  -2,
  2 ** -149,
  -(2 ** -140),
  2 ** -126,
  65504,
  -65520,
  3.4028234663852886e38,
  2 ** 24 + 2,
];
export const specialIntegers: readonly number[] = [
  0,
  1,
  -1,
  2,
  31,
  32,
  -(2 ** 31),
  2 ** 31 - 1,
  2 ** 32 - 1,
  255,
  128,
];

/** A constant worth trying: the neutral and absorbing elements and their neighbours. */
export function pickConstant(die: number, dtype: DType, kind: ValueKind): number {
  if (dtype === 'bool') return die % 2;
  const tame = [0, 1, 2, 3];
  if (isFloat(dtype)) tame.push(-0, -1, -2, 0.5, 0.25, 1.5);
  else if (dtype.startsWith('i')) tame.push(-1, -2);
  const special = isFloat(dtype) ? specialFloats : [];
  const choices = kind === 'tame' ? tame : [...tame, ...special];
  return choices[die % choices.length]!;
}

/** `shape` filled from a seed; seed 0 gives zeros. */
export function randomArray(dtype: DType, shape: FixedShape, seed: number, kind: ValueKind): HostArray {
  const words = wordsFrom(seed);
  const element = (): Scalar => {
    const word = words();
    if (seed === 0) return 0;
    if (dtype === 'bool') return word & 1;
    const special = kind !== 'tame' && word % 3 === 0;
    if (isInteger(dtype)) {
      const small = dtype.startsWith('u') ? (word >>> 8) % 8 : ((word >>> 8) % 11) - 5;
      // As bigints, so that they wrap into the dtype instead of saturating.
      return BigInt(special ? specialIntegers[(word >>> 8) % specialIntegers.length]! : small);
    }
    return special ? specialFloats[(word >>> 8) % specialFloats.length]! : (((word >>> 8) % 33) - 16) / 8;
  };
  return hostArray(dtype, shape, Array.from({ length: sizeOf(shape) * partCount(dtype) }, element));
}

/** i32 or u32 indices mostly inside [0, size), some one off either end. */
export function randomIndices(
  dtype: 'i32' | 'u32',
  shape: FixedShape,
  size: number,
  seed: number,
): HostArray {
  const words = wordsFrom(seed);
  const element = (): number => {
    const at = words() % (size + 2);
    return dtype === 'i32' ? at - 1 : at;
  };
  return hostArray(dtype, shape, Array.from({ length: sizeOf(shape) }, element));
}
