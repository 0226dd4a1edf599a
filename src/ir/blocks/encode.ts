// Values as blocks: each format's scales, then the levels nearest to the values under the scales as
// they are stored. What comes back has an error of about half a level; reading is decode.ts.

import { TensorError } from '../../errors.ts';
import * as arg from '../arguments.ts';
import { f16FromBits, f16ToBits } from '../value.ts';
import {
  aBlockFormat,
  blockFacts,
  bytesOfBlocks,
  nonlinearLevels,
  tinyFloatLevels,
  type BlockFormat,
} from './format.ts';
import { or, packScales, packSignedScales } from './scales.ts';
import { affineScale, clamp, farthest, nearestLevel, signedScale, tableScale } from './search.ts';

/** Writes the block of `x` over bytes that are 0, from `at` on. */
type Encoder = (x: Float32Array, out: Uint8Array, at: number) => void;

/** Stores a scale as f16, and gives what was stored. */
function putHalf(out: Uint8Array, at: number, value: number): number {
  const bits = f16ToBits(value);
  out[at] = bits & 255;
  out[at + 1] = bits >> 8;
  return f16FromBits(bits);
}

/** A level under a scale that may be 0, where every level stands for 0. */
function levelOf(value: number, scale: number, low: number, high: number): number {
  return scale === 0 ? clamp(0, low, high) : clamp(Math.round(value / scale), low, high);
}

/** 32 levels of 4 bits: byte j holds level j and, above, level j + 16. */
function putNibble(out: Uint8Array, at: number, j: number, level: number): void {
  or(out, at + (j & 15), level << (4 * (j >> 4)));
}

/** Symmetric levels: the value farthest from 0 takes the lowest one, so that the scale has its opposite sign. */
function symmetric(middle: 8 | 16): Encoder {
  return (x, out, at) => {
    const d = putHalf(out, at, farthest(x) / -middle);
    const place = at + (middle === 8 ? 2 : 6);
    x.forEach((value, j) => {
      const level = levelOf(value, d, -middle, middle - 1) + middle;
      putNibble(out, place, j, level & 15);
      if (middle === 16) or(out, at + 2 + (j >> 3), (level >> 4) << (j & 7));
    });
  };
}

/** Levels from the least value to the largest. */
function ranged(most: 15 | 31): Encoder {
  return (x, out, at) => {
    const low = x.reduce((a, b) => Math.min(a, b), Infinity);
    const high = x.reduce((a, b) => Math.max(a, b), -Infinity);
    const d = putHalf(out, at, (high - low) / most);
    const m = putHalf(out, at + 2, low);
    const place = at + (most === 15 ? 4 : 8);
    x.forEach((value, j) => {
      const level = levelOf(value - m, d, 0, most);
      putNibble(out, place, j, level & 15);
      if (most === 31) or(out, at + 4 + (j >> 3), (level >> 4) << (j & 7));
    });
  };
}

/** Groups with a scale and a minimum each, in units of one of each for the block. */
function affineGroups(
  x: Float32Array,
  size: number,
  most: number,
  largest: number,
  put: (d: number, dmin: number) => readonly [d: number, dmin: number],
): { scales: number[]; minima: number[]; level: (i: number) => number } {
  const groups = Array.from({ length: x.length / size }, (_, i) =>
    affineScale(x.subarray(i * size, (i + 1) * size), most),
  );
  const top = (values: readonly number[]): number => Math.max(...values) / largest;
  const [d, dmin] = put(top(groups.map(({ scale }) => scale)), top(groups.map(({ minimum }) => minimum)));
  const scales = groups.map(({ scale }) => levelOf(scale, d, 0, largest));
  const minima = groups.map(({ minimum }) => levelOf(minimum, dmin, 0, largest));
  const level = (i: number): number => {
    const group = Math.floor(i / size);
    return levelOf(x[i]! + dmin * minima[group]!, d * scales[group]!, 0, most);
  };
  return { scales, minima, level };
}

/** Groups with a scale of either sign each, in units of one for the block; the farthest takes the lowest level. */
function signedGroups(
  x: Float32Array,
  size: number,
  half: number,
  scaleOf: (group: Float32Array) => number,
  put: (d: number) => number,
): { scales: number[]; unit: (i: number) => number } {
  const groups = Float32Array.from({ length: x.length / size }, (_, i) =>
    scaleOf(x.subarray(i * size, (i + 1) * size)),
  );
  const d = put(farthest(groups) / -half);
  const scales = Array.from(groups, (scale) => levelOf(scale, d, -half, half - 1));
  return { scales, unit: (i) => d * scales[Math.floor(i / size)]! };
}

const encoders = {
  q4_0: symmetric(8),
  q4_1: ranged(15),
  q5_0: symmetric(16),
  q5_1: ranged(31),
  q8_0: (x, out, at) => {
    const d = putHalf(out, at, Math.abs(farthest(x)) / 127);
    x.forEach((value, j) => {
      out[at + 2 + j] = levelOf(value, d, -128, 127);
    });
  },
  q2_k: (x, out, at) => {
    const { scales, minima, level } = affineGroups(x, 16, 3, 15, (d, dmin) => [
      putHalf(out, at + 80, d),
      putHalf(out, at + 82, dmin),
    ]);
    scales.forEach((scale, group) => or(out, at + group, scale | (minima[group]! << 4)));
    x.forEach((_, i) => or(out, at + 16 + (i >> 7) * 32 + (i & 31), level(i) << (2 * ((i >> 5) & 3))));
  },
  q3_k: (x, out, at) => {
    const { scales, unit } = signedGroups(
      x,
      16,
      32,
      (group) => signedScale(group, 4),
      (d) => putHalf(out, at + 108, d),
    );
    packSignedScales(out, at + 96, scales);
    x.forEach((value, i) => {
      const level = levelOf(value, unit(i), -4, 3) + 4;
      or(out, at + 32 + (i >> 7) * 32 + (i & 31), (level & 3) << (2 * ((i >> 5) & 3)));
      or(out, at + (i & 31), (level >> 2) << (i >> 5));
    });
  },
  q4_k: (x, out, at) => {
    const { scales, minima, level } = affineGroups(x, 32, 15, 63, (d, dmin) => [
      putHalf(out, at, d),
      putHalf(out, at + 2, dmin),
    ]);
    packScales(out, at + 4, scales, minima);
    x.forEach((_, i) => or(out, at + 16 + (i >> 6) * 32 + (i & 31), level(i) << (4 * ((i >> 5) & 1))));
  },
  q5_k: (x, out, at) => {
    const { scales, minima, level } = affineGroups(x, 32, 31, 63, (d, dmin) => [
      putHalf(out, at, d),
      putHalf(out, at + 2, dmin),
    ]);
    packScales(out, at + 4, scales, minima);
    x.forEach((_, i) => {
      const stored = level(i);
      or(out, at + 48 + (i >> 6) * 32 + (i & 31), (stored & 15) << (4 * ((i >> 5) & 1)));
      or(out, at + 16 + (i & 31), (stored >> 4) << (i >> 5));
    });
  },
  q6_k: (x, out, at) => {
    const { scales, unit } = signedGroups(
      x,
      16,
      128,
      (group) => signedScale(group, 32),
      (d) => putHalf(out, at + 208, d),
    );
    scales.forEach((scale, group) => {
      out[at + 192 + group] = scale;
    });
    x.forEach((value, i) => {
      const level = levelOf(value, unit(i), -32, 31) + 32;
      const [part, run, l] = [i >> 7, (i >> 5) & 3, i & 31];
      or(out, at + 64 * part + 32 * (run & 1) + l, (level & 15) << (4 * (run >> 1)));
      or(out, at + 128 + 32 * part + l, (level >> 4) << (2 * run));
    });
  },
  iq4_nl: (x, out, at) => {
    const d = putHalf(out, at, tableScale(x, nonlinearLevels));
    x.forEach((value, j) =>
      putNibble(out, at + 2, j, nearestLevel(nonlinearLevels, d === 0 ? 0 : value / d)),
    );
  },
  iq4_xs: (x, out, at) => {
    const { scales, unit } = signedGroups(
      x,
      32,
      32,
      (group) => tableScale(group, nonlinearLevels),
      (d) => putHalf(out, at, d),
    );
    scales.forEach((signed, group) => {
      const scale = signed + 32;
      or(out, at + 4 + (group >> 1), (scale & 15) << (4 * (group & 1)));
      or(out, at + 2 + (group >> 2), (scale >> 4) << (2 * (group & 3)));
    });
    x.forEach((value, i) => {
      const scale = unit(i);
      const level = nearestLevel(nonlinearLevels, scale === 0 ? 0 : value / scale);
      putNibble(out, at + 8 + 16 * (i >> 5), i & 31, level);
    });
  },
  mxfp4: (x, out, at) => {
    const far = Math.abs(farthest(x));
    // The largest float is 6: the exponent that keeps the farthest value at 4 to 8 of them, cut at 6.
    const exponent = far === 0 ? 0 : clamp(Math.floor(Math.log2(far)) - 2 + 127, 0, 254);
    out[at] = exponent;
    const scale = 2 ** (exponent - 128);
    x.forEach((value, j) => {
      const level = nearestLevel(positiveFloats, Math.abs(value) / scale);
      putNibble(out, at + 1, j, value < 0 ? level + 8 : level);
    });
  },
} as const satisfies Record<BlockFormat, Encoder>;

const positiveFloats = tinyFloatLevels.slice(0, 8);

const floats: arg.Kind<Float32Array> = arg.kind(
  'a Float32Array',
  (value) => Object.prototype.toString.call(value) === '[object Float32Array]',
);
const takes = arg.takes<typeof encodeBlocks>(['the format', aBlockFormat], ['the values', floats]);

/**
 * Blocks of values. Throws E_SHAPE where the values fill no whole blocks, E_VALUE for infinities, NaN
 * and values whose scale is past the largest f16, 65504.
 */
export function encodeBlocks(format: BlockFormat, values: Float32Array): Uint8Array {
  takes('encodeBlocks', format, values);
  const { values: each, bytes } = blockFacts[format];
  const encode: Encoder = encoders[format];
  const out = new Uint8Array(bytesOfBlocks('encodeBlocks', format, values.length));
  for (let from = 0, at = 0; from < values.length; from += each, at += bytes) {
    const x = values.subarray(from, from + each);
    checkValues(format, x, from);
    encode(x, out, at);
  }
  return out;
}

/** Below these sizes every scale is at most the largest half, 65504. */
const largest: Readonly<Record<BlockFormat, number>> = {
  q4_0: 65504 * 8,
  q4_1: 65504,
  q5_0: 65504 * 16,
  q5_1: 65504,
  q8_0: 65504 * 127,
  q2_k: 65504 * 10,
  q3_k: 65504 * 64,
  q4_k: 65504 * 48,
  q5_k: 65504 * 48,
  q6_k: 65504 * 1024,
  iq4_nl: 65504 * 64,
  iq4_xs: 65504 * 1024,
  mxfp4: (2 - 2 ** -23) * 2 ** 127,
};

function checkValues(format: BlockFormat, x: Float32Array, from: number): void {
  const most = largest[format];
  const at = x.findIndex((value) => !(Math.abs(value) <= most));
  if (at < 0) return;
  const problem = `value ${from + at} is ${x[at]}: blocks of ${format} hold sizes up to ${most}`;
  throw new TensorError('E_VALUE', 'encodeBlocks', problem, 'f32, or values that are finite');
}
