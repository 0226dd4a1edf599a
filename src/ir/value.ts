// Host arrays: what a tensor's elements are in JavaScript memory, for every dtype, and how real
// numbers and integers are brought into a dtype. f16 and bf16 live in Float32Arrays that hold
// already rounded values, bool as 0/1 bytes, 64-bit integers as bigints; complex numbers as their
// real and imaginary parts, one after the other. `packBytes`/`unpackBytes`
// convert from and to tight little-endian storage (the host is taken to be little-endian, as every
// platform with a GPU driver is).

import { TensorError } from '../errors.ts';
import { dtypeBytes, integerRange, isComplex, isFloat, isWide, partType, type DType } from './dtype.ts';
import { showShape, sizeOf, type FixedShape } from './shape.ts';

/**
 * Elements in host memory, in C-order: f16 and bf16 as f32, bool as bytes of 0 and 1, complex
 * numbers as pairs of real and imaginary part.
 */
export type HostData =
  | Float64Array
  | Float32Array
  | Int32Array
  | Uint32Array
  | Int16Array
  | Uint16Array
  | Int8Array
  | Uint8Array
  | BigInt64Array
  | BigUint64Array;

/** A tensor's elements in C-order. Treated as immutable: views may share `data`. */
export interface HostArray {
  readonly dtype: DType;
  readonly shape: FixedShape;
  readonly data: HostData;
}

/** A complex number on the host. */
export interface ComplexNumber {
  readonly re: number;
  readonly im: number;
}

export function isComplexNumber(value: unknown): value is ComplexNumber {
  const { re, im } = (value ?? {}) as Partial<ComplexNumber>;
  return typeof re === 'number' && typeof im === 'number';
}

/** One element: a bigint for i64 and u64, a number for all others; of complex ones, a part. */
export type Scalar = number | bigint;

interface ArrayClass {
  new (length: number): HostData;
  new (buffer: ArrayBuffer): HostData;
}

const arrays = {
  bool: Uint8Array,
  i8: Int8Array,
  u8: Uint8Array,
  i16: Int16Array,
  u16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
  f16: Float32Array,
  bf16: Float32Array,
  f32: Float32Array,
  f64: Float64Array,
  c64: Float32Array,
  c128: Float64Array,
} as const satisfies Record<DType, ArrayClass>;

/** How many numbers of a host array make an element: 2 of complex dtypes. */
export function partCount(dtype: DType): 1 | 2 {
  return isComplex(dtype) ? 2 : 1;
}

/** `n` zeros in the memory form of `dtype`. */
export function emptyData(dtype: DType, n: number): HostData {
  return new arrays[dtype](n * partCount(dtype));
}

/**
 * An array of `shape` with `values` brought into `dtype`: numbers as a cast from f64 (integers
 * truncate and saturate), bigints as a cast from i64 (integers wrap). Complex dtypes take the parts
 * of each element one after the other. Throws E_SHAPE when the counts differ.
 */
export function hostArray(dtype: DType, shape: FixedShape, values: ArrayLike<Scalar>): HostArray {
  const size = sizeOf(shape) * partCount(dtype);
  if (values.length !== size) {
    throw new TensorError(
      'E_SHAPE',
      'hostArray',
      `${showShape(shape, dtype)} takes ${size} values, got ${values.length}`,
    );
  }
  const data = emptyData(dtype, sizeOf(shape));
  const [real, integer] = [fromReal(dtype), fromInteger(dtype)];
  for (let i = 0; i < size; i++) {
    const value = values[i]!;
    data[i] = typeof value === 'bigint' ? integer(value) : real(value);
  }
  return { dtype, shape, data };
}

/** The elements in tightly packed little-endian storage; always a fresh copy. */
export function packBytes(array: HostArray): Uint8Array {
  const { dtype, data } = array;
  if (dtype === 'f16' || dtype === 'bf16') {
    const toBits = dtype === 'f16' ? f16ToBits : bf16ToBits;
    const words = new Uint16Array(data.length);
    for (let i = 0; i < words.length; i++) words[i] = toBits(data[i] as number);
    return new Uint8Array(words.buffer);
  }
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice();
}

/**
 * The inverse of `packBytes`. Bytes past the elements are ignored (devices round sizes up); too few
 * throw E_SHAPE.
 */
export function unpackBytes(bytes: Uint8Array, dtype: DType, shape: FixedShape): HostArray {
  const size = sizeOf(shape);
  const needed = size * dtypeBytes(dtype);
  if (bytes.length < needed) {
    throw new TensorError(
      'E_SHAPE',
      'unpackBytes',
      `${showShape(shape, dtype)} takes ${needed} bytes, got ${bytes.length}`,
    );
  }
  const own = new Uint8Array(bytes.subarray(0, needed));
  if (dtype === 'f16' || dtype === 'bf16') {
    const fromBits = dtype === 'f16' ? f16FromBits : bf16FromBits;
    return { dtype, shape, data: Float32Array.from(new Uint16Array(own.buffer), fromBits) };
  }
  if (dtype === 'bool') return { dtype, shape, data: own.map((byte) => (byte === 0 ? 0 : 1)) };
  return { dtype, shape, data: new arrays[dtype](own.buffer) };
}

/** Packed elements, without a copy where they are aligned; those of f16 and bf16 are given by their bits. */
export function viewOf(bytes: Uint8Array, dtype: DType): HostData {
  const size = dtypeBytes(dtype);
  const { buffer, byteOffset, length } = bytes.byteOffset % size === 0 ? bytes : bytes.slice();
  const Words = dtype === 'f16' || dtype === 'bf16' ? Uint16Array : arrays[dtype];
  return new Words(buffer as ArrayBuffer, byteOffset, length / Words.BYTES_PER_ELEMENT);
}

/**
 * Brings a real number into `dtype` (of complex ones, into a part): floats round to nearest even, integers truncate and saturate
 * (NaN → 0).
 */
export function fromReal(dtype: DType): (x: number) => Scalar {
  switch (dtype) {
    case 'f64':
    case 'c128':
      return (x) => x;
    case 'f32':
    case 'c64':
      return Math.fround;
    // By way of f32, as kernels do and PyTorch does (c10::Half and c10::BFloat16 are made of
    // floats).
    case 'f16':
      return (x) => roundF16(Math.fround(x));
    case 'bf16':
      return (x) => roundBf16(Math.fround(x));
    case 'bool':
      return (x) => (x === 0 ? 0 : 1);
    default: {
      const [low, high] = integerRange(dtype);
      const [lowest, highest] = [Number(low), Number(high)];
      // Adding 0 turns −0 into 0. Number(high) of 64 bits is one too large, hence ≥: the bigint
      // itself is the bound.
      if (isWide(dtype)) {
        return (x) =>
          Number.isNaN(x) ? 0n : x >= highest ? high : x <= lowest ? low : BigInt(Math.trunc(x));
      }
      return (x) => (Number.isNaN(x) ? 0 : x >= highest ? highest : x <= lowest ? lowest : Math.trunc(x) + 0);
    }
  }
}

/**
 * Brings an exact integer into `dtype`: integers wrap at their width, floats round once to nearest
 * even.
 */
export function fromInteger(dtype: DType): (x: Scalar) => Scalar {
  switch (dtype) {
    case 'bool':
      return (x) => (Number(x) === 0 ? 0 : 1);
    case 'i8':
      return (x) => (low32(x) << 24) >> 24;
    case 'u8':
      return (x) => low32(x) & 0xff;
    case 'i16':
      return (x) => (low32(x) << 16) >> 16;
    case 'u16':
      return (x) => low32(x) & 0xffff;
    case 'i32':
      return low32;
    case 'u32':
      return (x) => low32(x) >>> 0;
    case 'i64':
      return (x) => BigInt.asIntN(64, BigInt(x));
    case 'u64':
      return (x) => BigInt.asUintN(64, BigInt(x));
    case 'f64':
    case 'c128':
      return Number;
    case 'f32':
    case 'c64':
    case 'f16':
    case 'bf16': {
      const round = fromReal(dtype);
      return (x) => round(typeof x === 'bigint' ? stickyNumber(x) : x);
    }
  }
}

function low32(x: Scalar): number {
  return typeof x === 'bigint' ? Number(BigInt.asIntN(32, x)) : x | 0;
}

/**
 * A double that rounds to any narrower format as `x` itself would: bits that do not fit are or-ed
 * into the last one.
 */
function stickyNumber(x: bigint): number {
  const near = Number(x);
  if (Number.isSafeInteger(near)) return near;
  const kept = x >> 12n;
  return Number(kept << 12n === x ? kept : kept | 1n) * 4096;
}

const word = new Float64Array(1);
const halves = new Uint32Array(word.buffer);

/** ⌊log2 |x|⌋ of a normal double; at most −1023 for smaller ones. */
function exponentOf(x: number): number {
  word[0] = x;
  return ((halves[1]! >>> 20) & 0x7ff) - 1023;
}

function powerOfTwo(exponent: number): number {
  halves[0] = 0;
  halves[1] = (exponent + 1023) << 20;
  return word[0]!;
}

const integerLimit = 2 ** 52;

/** The nearest integer, ties to even; keeps −0, infinities and NaN. */
export function roundHalfEven(x: number): number {
  const size = Math.abs(x);
  if (!(size < integerLimit)) return x;
  // 2⁵² + |x| has no fraction bits left, so the addition itself rounds.
  const whole = size + integerLimit - integerLimit;
  return x < 0 || Object.is(x, -0) ? -whole : whole;
}

function roundTo(x: number, fractionBits: number, leastExponent: number, overflow: number): number {
  if (!(Math.abs(x) < overflow)) return Number.isNaN(x) ? x : x * Infinity;
  const quantum = powerOfTwo(Math.max(exponentOf(x), leastExponent) - fractionBits);
  return roundHalfEven(x / quantum) * quantum;
}

/**
 * The nearest IEEE half-precision value, ties to even, with subnormals; from 65520 on, infinity.
 */
export function roundF16(x: number): number {
  return roundTo(x, 10, -14, 65520);
}

/** The nearest bfloat16 value, ties to even, with subnormals. */
export function roundBf16(x: number): number {
  return roundTo(x, 7, -126, (2 - 2 ** -8) * 2 ** 127);
}

/** The value that 16 bits of half precision stand for. */
export function f16FromBits(bits: number): number {
  const fraction = bits & 0x3ff;
  const exponent = (bits >>> 10) & 0x1f;
  const sign = (bits & 0x8000) === 0 ? 1 : -1;
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
}

/** The 16 bits of the half nearest to `x`; NaN gives the quiet one, 0x7e00. */
export function f16ToBits(x: number): number {
  if (Number.isNaN(x)) return 0x7e00;
  const rounded = roundF16(x);
  const sign = x < 0 || Object.is(x, -0) ? 0x8000 : 0;
  const size = Math.abs(rounded);
  if (size === Infinity) return sign | 0x7c00;
  if (size < 2 ** -14) return sign | (size * 2 ** 24);
  const exponent = exponentOf(size);
  return sign | ((exponent + 15) << 10) | ((size / 2 ** exponent - 1) * 1024);
}

const single = new Float32Array(1);
const singleBits = new Uint32Array(single.buffer);

/** The value that 16 bits of bfloat16 stand for. */
export function bf16FromBits(bits: number): number {
  singleBits[0] = bits << 16;
  return single[0]!;
}

/** The 16 bits of the bfloat16 nearest to `x`; NaN gives the quiet one, 0x7fc0. */
export function bf16ToBits(x: number): number {
  if (Number.isNaN(x)) return 0x7fc0;
  single[0] = roundBf16(x);
  return singleBits[0]! >>> 16;
}

/**
 * True when both arrays have the same dtype, shape and elements (NaN equals NaN, −0 differs from
 * 0).
 */
export function sameArray(a: HostArray, b: HostArray): boolean {
  return (
    a.dtype === b.dtype &&
    a.shape.length === b.shape.length &&
    a.shape.every((dim, axis) => dim === b.shape[axis]) &&
    a.data.every((value: Scalar, i: number) => Object.is(value, b.data[i]))
  );
}

/**
 * The array in another dtype, converted as `cast` defines it; the same array when it already has
 * that dtype.
 */
export function castArray(array: HostArray, dtype: DType): HostArray {
  if (array.dtype === dtype) return array;
  const { shape, data: from } = array;
  if (isComplex(dtype) || isComplex(array.dtype)) return castComplex(array, dtype);
  if (dtype === 'f64' && !isWide(array.dtype))
    return { dtype, shape, data: Float64Array.from(from as Float32Array) };
  const convert = isFloat(array.dtype) ? (fromReal(dtype) as (x: Scalar) => Scalar) : fromInteger(dtype);
  const data = emptyData(dtype, from.length);
  for (let i = 0; i < data.length; i++) data[i] = convert(from[i]!);
  return { dtype, shape, data };
}

/**
 * From and to complex dtypes: a real value has the imaginary part 0, and a complex one gives up its
 * own; bool is true where one part is not 0.
 */
function castComplex(array: HostArray, dtype: DType): HostArray {
  const { shape } = array;
  const length = sizeOf(shape);
  const parts = (x: HostArray): HostArray => ({
    dtype: partType(x.dtype),
    shape: [x.data.length],
    data: x.data,
  });
  if (isComplex(array.dtype) && isComplex(dtype))
    return { dtype, shape, data: castArray(parts(array), partType(dtype)).data };
  const data = emptyData(dtype, length);
  if (isComplex(dtype)) {
    const real = castArray(array, partType(dtype)).data;
    for (let i = 0; i < length; i++) data[2 * i] = real[i]!;
    return { dtype, shape, data };
  }
  const convert = fromReal(dtype);
  for (let i = 0; i < length; i++) {
    const [re, im] = [Number(array.data[2 * i]), Number(array.data[2 * i + 1])];
    data[i] = convert(dtype === 'bool' && re === 0 ? im : re);
  }
  return { dtype, shape, data };
}
