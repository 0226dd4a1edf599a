// Element types of fewer than 16 bits that no target computes with: what their bits mean, and how a
// tensor of f32 or of bytes is brought to their values. Rounding is to nearest even, by the
// exponent of each element (OCP 8-bit floating point, 2023).

import { bitcast, cast } from '../tensor/ops/elementwise/cast.ts';
import {
  bitwiseAnd,
  bitwiseLeftShift,
  bitwiseRightShift,
  eq,
  gt,
  isNan,
  where,
} from '../tensor/ops/elementwise/compare.ts';
import { abs, clamp, round } from '../tensor/ops/elementwise/elementwise.ts';
import { add, div, maximum, mul, sub } from '../tensor/ops/elementwise/arithmetic.ts';
import type { Tensor } from '../tensor/tensor.ts';

export type NarrowFloat =
  | 'float8e4m3fn'
  | 'float8e4m3fnuz'
  | 'float8e5m2'
  | 'float8e5m2fnuz'
  | 'float4e2m1'
  | 'float8e8m0';
export type NarrowInteger = 'uint4' | 'int4' | 'uint2' | 'int2';
export type Narrow = NarrowFloat | NarrowInteger;

interface FloatFormat {
  readonly bits: 8 | 4;
  readonly fraction: number;
  readonly bias: number;
  readonly largest: number;
  /** The value of an element that does not fit, where the conversion may not saturate. */
  readonly overflow: number;
  /** The format has no −0. */
  readonly unsignedZero?: true;
}

const floats = {
  float8e4m3fn: { bits: 8, fraction: 3, bias: 7, largest: 448, overflow: NaN },
  float8e4m3fnuz: { bits: 8, fraction: 3, bias: 8, largest: 240, overflow: NaN, unsignedZero: true },
  float8e5m2: { bits: 8, fraction: 2, bias: 15, largest: 57344, overflow: Infinity },
  float8e5m2fnuz: { bits: 8, fraction: 2, bias: 16, largest: 57344, overflow: NaN, unsignedZero: true },
  float4e2m1: { bits: 4, fraction: 1, bias: 1, largest: 6, overflow: 6 },
} as const satisfies Record<Exclude<NarrowFloat, 'float8e8m0'>, FloatFormat>;

const integers = {
  uint4: [0, 15],
  int4: [-8, 7],
  uint2: [0, 3],
  int2: [-2, 1],
} as const satisfies Record<NarrowInteger, readonly [number, number]>;

/**
 * How a type lies in bytes: `perByte` elements, the first in the low bits, and what each pattern of
 * bits means.
 */
export interface Codec {
  readonly perByte: 1 | 2 | 4;
  readonly values: readonly number[];
}

/** Every type's meaning of bits. */
export const codecs: Readonly<Record<Narrow, Codec>> = {
  float8e4m3fn: floatCodec(floats.float8e4m3fn),
  float8e4m3fnuz: floatCodec(floats.float8e4m3fnuz),
  float8e5m2: floatCodec(floats.float8e5m2),
  float8e5m2fnuz: floatCodec(floats.float8e5m2fnuz),
  float4e2m1: floatCodec(floats.float4e2m1),
  float8e8m0: {
    perByte: 1,
    values: Array.from({ length: 256 }, (_, i) => (i === 255 ? NaN : 2 ** (i - 127))),
  },
  uint4: integerCodec(4, false),
  int4: integerCodec(4, true),
  uint2: integerCodec(2, false),
  int2: integerCodec(2, true),
};

function floatCodec(format: FloatFormat): Codec {
  const { bits, fraction, bias, largest } = format;
  const half = 2 ** (bits - 1);
  const positive = Array.from({ length: half }, (_, code) => {
    const exponent = code >> fraction;
    const digits = code & (2 ** fraction - 1);
    const size =
      exponent === 0
        ? digits * 2 ** (1 - bias - fraction)
        : (2 ** fraction + digits) * 2 ** (exponent - bias - fraction);
    if (size <= largest) return size;
    return format === floats.float8e5m2 && digits === 0 ? Infinity : NaN;
  });
  const negative = positive.map((value, code) => (code === 0 && format.unsignedZero ? NaN : -value));
  return { perByte: bits === 8 ? 1 : 2, values: [...positive, ...negative] };
}

function integerCodec(bits: 2 | 4, signed: boolean): Codec {
  const count = 2 ** bits;
  const values = Array.from({ length: count }, (_, i) => (signed && i >= count / 2 ? i - count : i));
  return { perByte: bits === 2 ? 4 : 2, values };
}

/** Elements out of packed bytes. */
export function unpack(
  type: Narrow,
  bytes: Uint8Array,
  count: number,
): Float32Array | Int8Array | Uint8Array {
  const { perByte, values } = codecs[type];
  const out = new (
    type in floats || type === 'float8e8m0' ? Float32Array : type.startsWith('u') ? Uint8Array : Int8Array
  )(count);
  const bits = 8 / perByte;
  const mask = 2 ** bits - 1;
  for (let i = 0; i < count; i++) {
    const byte = bytes[Math.floor(i / perByte)]!;
    out[i] = values[(byte >> ((i % perByte) * bits)) & mask]!;
  }
  return out;
}

/**
 * How values that do not fit are brought into a format, and which way the format without a fraction
 * rounds.
 */
export interface Narrowing {
  readonly saturate: boolean;
  readonly roundMode?: string;
}

/** An f32 tensor (integers: of bytes) whose elements are the nearest values of a narrow type. */
export function narrowed(x: Tensor, type: Narrow, { saturate, roundMode = 'up' }: Narrowing): Tensor {
  if (type === 'float8e8m0') return toPowerOfTwo(cast(x, 'f32'), saturate, roundMode);
  if (type in integers) return toNarrowInteger(x, type as NarrowInteger);
  return toNarrowFloat(cast(x, 'f32'), floats[type as keyof typeof floats], saturate);
}

/** The low bits of an integer, or a float cut off towards zero. */
function toNarrowInteger(x: Tensor, type: NarrowInteger): Tensor {
  const [low, high] = integers[type];
  const count = high - low + 1;
  const bits = bitwiseAnd(cast(x, 'i32'), count - 1);
  const value = low === 0 ? bits : where(gt(bits, high), sub(bits, count), bits);
  return cast(value, low === 0 ? 'u8' : 'i8');
}

/** ⌊log2 |x|⌋ of each element, in i32. */
function exponents(x: Tensor): Tensor {
  return sub(bitwiseAnd(bitwiseRightShift(bitcast(x, 'i32'), 23), 255), 127);
}

/** 2 to the power of each element, which must be one of a normal f32. */
function powersOfTwo(exponent: Tensor): Tensor {
  return bitcast(bitwiseLeftShift(add(exponent, 127), 23), 'f32');
}

function toNarrowFloat(x: Tensor, format: FloatFormat, saturate: boolean): Tensor {
  const { fraction, bias, largest, overflow } = format;
  const exponent = maximum(exponents(x), 1 - bias);
  const quantum = powersOfTwo(sub(exponent, fraction));
  const rounded = mul(round(div(x, quantum)), quantum);
  const signless = format.unsignedZero ? where(eq(rounded, 0), 0, rounded) : rounded;
  if (overflow === largest) return clamp(where(isNan(signless), 0, signless), -largest, largest);
  if (saturate) return clamp(signless, -largest, largest);
  const beyond = Number.isNaN(overflow) ? NaN : mul(signless, Infinity);
  return where(gt(abs(signless), largest), beyond, signless);
}

/** To the next power of two: up, down, or to the nearer one. */
function toPowerOfTwo(x: Tensor, saturate: boolean, roundMode: string): Tensor {
  const bits = bitwiseAnd(bitcast(x, 'i32'), 0x7fffffff);
  const remainder = bitwiseAnd(bits, 0x7fffff);
  const floor = bitwiseRightShift(bits, 23);
  const threshold = roundMode === 'down' ? 0x7fffff : roundMode === 'nearest' ? 0x3fffff : 0;
  const code = add(floor, cast(gt(remainder, threshold), 'i32'));
  const limitedCode = saturate ? where(gt(code, 254), 254, code) : code;
  // Code 0 stands for 2⁻¹²⁷, a subnormal f32.
  const value = where(
    eq(limitedCode, 0),
    2 ** -127,
    bitcast(bitwiseLeftShift(maximum(limitedCode, 1), 23), 'f32'),
  );
  return where(isNan(x), NaN, where(gt(limitedCode, 254), NaN, value));
}
