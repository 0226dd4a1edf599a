// What the bytes of blocks stand for: the meaning of every format, which kernels are held to.
// Products of scales and levels are exact in f64, and in f32 but for q6_k's, so that a value is
// rounded once and equals what arithmetic in f32 gives.

import * as arg from '../arguments.ts';
import { f16FromBits } from '../value.ts';
import {
  aBlockFormat,
  blockFacts,
  nonlinearLevels,
  tinyFloatLevels,
  valuesOfBlocks,
  type BlockFormat,
} from './format.ts';
import { minimumOf, scaleOf, signedScaleOf } from './scales.ts';

/** Writes a block's values from `to` on, of the bytes from `at` on. */
type Decoder = (bytes: Uint8Array, at: number, out: Float32Array, to: number) => void;

const halves = Float32Array.from({ length: 65536 }, (_, bits) => f16FromBits(bits));

function half(bytes: Uint8Array, at: number): number {
  return halves[bytes[at]! | (bytes[at + 1]! << 8)]!;
}

/** 32 values as 4 bits each: byte j holds value j and, above, value j + 16. */
function nibbles(
  place: number,
  value: (bytes: Uint8Array, at: number) => (level: number, j: number) => number,
): Decoder {
  return (bytes, at, out, to) => {
    const of = value(bytes, at);
    for (let j = 0; j < 16; j++) {
      const byte = bytes[at + place + j]!;
      out[to + j] = of(byte & 15, j);
      out[to + j + 16] = of(byte >> 4, j + 16);
    }
  };
}

/** The fifth bits of 32 levels, one a value from the lowest bit on, as 16 or 0. */
function fifth(bytes: Uint8Array, at: number, j: number): number {
  return ((bytes[at + (j >> 3)]! >> (j & 7)) & 1) << 4;
}

const decoders = {
  // d·(q − 8)
  q4_0: nibbles(2, (bytes, at) => {
    const d = half(bytes, at);
    return (level) => d * (level - 8);
  }),
  // d·q + m
  q4_1: nibbles(4, (bytes, at) => {
    const [d, m] = [half(bytes, at), half(bytes, at + 2)];
    return (level) => d * level + m;
  }),
  // d·(q − 16)
  q5_0: nibbles(6, (bytes, at) => {
    const d = half(bytes, at);
    return (level, j) => d * ((level | fifth(bytes, at + 2, j)) - 16);
  }),
  // d·q + m
  q5_1: nibbles(8, (bytes, at) => {
    const [d, m] = [half(bytes, at), half(bytes, at + 2)];
    return (level, j) => d * (level | fifth(bytes, at + 4, j)) + m;
  }),
  // d·q
  q8_0: (bytes, at, out, to) => {
    const d = half(bytes, at);
    for (let j = 0; j < 32; j++) out[to + j] = d * ((bytes[at + 2 + j]! << 24) >> 24);
  },
  // d·scale·q − dmin·minimum, in groups of 16; 16 scales, 64 bytes of levels, d, dmin
  q2_k: (bytes, at, out, to) => {
    const [d, dmin] = [half(bytes, at + 80), half(bytes, at + 82)];
    for (let group = 0; group < 16; group++) {
      const both = bytes[at + group]!;
      const [scale, minimum] = [d * (both & 15), dmin * (both >> 4)];
      const [from, shift] = [at + 16 + quarterByte(group), quarterShift(group)];
      for (let l = 0; l < 16; l++) {
        out[to + 16 * group + l] = scale * ((bytes[from + l]! >> shift) & 3) - minimum;
      }
    }
  },
  // d·scale·(q − 4), whose third bit is in a mask; 32 bytes of mask, 64 of levels, 12 of scales, d
  q3_k: (bytes, at, out, to) => {
    const d = half(bytes, at + 108);
    for (let group = 0; group < 16; group++) {
      const scale = d * signedScaleOf(bytes, at + 96, group);
      const [from, shift] = [at + 32 + quarterByte(group), quarterShift(group)];
      const [mask, bit] = [at + 16 * (group & 1), group >> 1];
      for (let l = 0; l < 16; l++) {
        const level = ((bytes[from + l]! >> shift) & 3) | (((bytes[mask + l]! >> bit) & 1) << 2);
        out[to + 16 * group + l] = scale * (level - 4);
      }
    }
  },
  // d·scale·q − dmin·minimum, in groups of 32; d, dmin, 12 bytes of scales, 128 of levels
  q4_k: (bytes, at, out, to) => {
    const [d, dmin] = [half(bytes, at), half(bytes, at + 2)];
    for (let group = 0; group < 8; group++) {
      const [scale, minimum] = [d * scaleOf(bytes, at + 4, group), dmin * minimumOf(bytes, at + 4, group)];
      const [from, shift] = [at + 16 + 32 * (group >> 1), 4 * (group & 1)];
      for (let l = 0; l < 32; l++) {
        out[to + 32 * group + l] = scale * ((bytes[from + l]! >> shift) & 15) - minimum;
      }
    }
  },
  // As q4_k with a fifth bit; d, dmin, 12 bytes of scales, 32 of fifth bits, 128 of levels
  q5_k: (bytes, at, out, to) => {
    const [d, dmin] = [half(bytes, at), half(bytes, at + 2)];
    for (let group = 0; group < 8; group++) {
      const [scale, minimum] = [d * scaleOf(bytes, at + 4, group), dmin * minimumOf(bytes, at + 4, group)];
      const [from, shift] = [at + 48 + 32 * (group >> 1), 4 * (group & 1)];
      for (let l = 0; l < 32; l++) {
        const high = ((bytes[at + 16 + l]! >> group) & 1) << 4;
        out[to + 32 * group + l] = scale * (((bytes[from + l]! >> shift) & 15) | high) - minimum;
      }
    }
  },
  // d·scale·(q − 32), in groups of 16; 128 bytes of low bits, 64 of high ones, 16 scales of i8, d
  q6_k: (bytes, at, out, to) => {
    const d = half(bytes, at + 208);
    for (let group = 0; group < 16; group++) {
      const scale = d * ((bytes[at + 192 + group]! << 24) >> 24);
      // Eight groups a half of the block: four runs of 32 values, whose low bits are two to a byte.
      const [part, run, side] = [group >> 3, (group >> 1) & 3, 16 * (group & 1)];
      const [low, lowShift] = [at + 64 * part + 32 * (run & 1) + side, 4 * (run >> 1)];
      const [high, highShift] = [at + 128 + 32 * part + side, 2 * run];
      for (let l = 0; l < 16; l++) {
        const level = ((bytes[low + l]! >> lowShift) & 15) | (((bytes[high + l]! >> highShift) & 3) << 4);
        out[to + 16 * group + l] = scale * (level - 32);
      }
    }
  },
  // d·table[q]
  iq4_nl: nibbles(2, (bytes, at) => {
    const d = half(bytes, at);
    return (level) => d * nonlinearLevels[level]!;
  }),
  // d·(scale − 32)·table[q], in groups of 32; d, 2 bytes of scales' high bits, 4 of low ones, 128 of levels
  iq4_xs: (bytes, at, out, to) => {
    const d = half(bytes, at);
    for (let group = 0; group < 8; group++) {
      const low = (bytes[at + 4 + (group >> 1)]! >> (4 * (group & 1))) & 15;
      const high = (bytes[at + 2 + (group >> 2)]! >> (2 * (group & 3))) & 3;
      const scale = d * ((low | (high << 4)) - 32);
      for (let j = 0; j < 16; j++) {
        const byte = bytes[at + 8 + 16 * group + j]!;
        out[to + 32 * group + j] = scale * nonlinearLevels[byte & 15]!;
        out[to + 32 * group + j + 16] = scale * nonlinearLevels[byte >> 4]!;
      }
    }
  },
  // 2^(e − 127)·float[q]; the table is twice the floats
  mxfp4: nibbles(1, (bytes, at) => {
    const scale = 2 ** (bytes[at]! - 128);
    return (level) => scale * tinyFloatLevels[level]!;
  }),
} as const satisfies Record<BlockFormat, Decoder>;

/** Where sixteen 2-bit levels of a group begin, of q2_k and q3_k: four groups of a half share their bytes. */
function quarterByte(group: number): number {
  return 32 * (group >> 3) + 16 * (group & 1);
}

function quarterShift(group: number): number {
  return group & 6;
}

const takes = arg.takes<typeof decodeBlocks>(['the format', aBlockFormat], ['the bytes', arg.bytes]);

/**
 * The values of blocks, in order. Throws E_VALUE for no format, E_SHAPE where the bytes are no whole
 * blocks.
 */
export function decodeBlocks(format: BlockFormat, bytes: Uint8Array): Float32Array {
  takes('decodeBlocks', format, bytes);
  const { values, bytes: each } = blockFacts[format];
  const decode: Decoder = decoders[format];
  const out = new Float32Array(valuesOfBlocks('decodeBlocks', format, bytes.length));
  for (let at = 0, to = 0; at < bytes.length; at += each, to += values) decode(bytes, at, out, to);
  return out;
}
