// What the kernels of a bundle compute by the interpreter: `check.json`, which `sinter build --check` writes. Inputs are
// given by their ranges and made by a hash. Of what a kernel writes, some elements are kept and sums of all the others, each
// with how far off it may be, so that the file is small. The build and the bundle's check measure values by this file.

import { placeOf, type ComparedFacts, type ValueDifference } from '../check/report.ts';
import type { ElementType } from '../runtime/program.ts';
import type { BundleTarget } from './manifest.ts';

export interface ExpectedBundle {
  readonly version: 1;
  /** For each target, all programs in the order of the manifest. */
  readonly targets: Readonly<Partial<Record<BundleTarget, readonly ExpectedProgram[]>>>;
}

/** A program with what a run of it is given. */
export interface ExpectedProgram {
  /** The entry, with its sizes where it has several programs. */
  readonly title: string;
  /** `fingerprint` of the program in the manifest. */
  readonly program: number;
  /** The run-time scalars that no input of the program holds. */
  readonly words: readonly number[];
  /** In the order of the entry's inputs; null for those that the program has no buffer for. */
  readonly inputs: readonly (SeededInput | null)[];
  /** The program's steps are those of its kernels, in order, behind so many others. */
  readonly before: number;
  readonly kernels: readonly ExpectedKernel[];
}

/** Numbers from `low` to `high`. */
export interface SeededInput {
  readonly dtype: ElementType;
  readonly count: number;
  readonly low: number;
  readonly high: number;
}

/** A kernel of the schedule. Values go by numbers. */
export interface ExpectedKernel {
  /** How many steps it takes. */
  readonly steps: number;
  readonly reads: readonly number[];
  readonly writes: readonly number[];
  /** The first kernel of the same source and size. */
  readonly first: number;
  /** Values of which it writes some elements only. */
  readonly open?: readonly ExpectedPlace[];
  /** What is compared when it has run. */
  readonly compared?: ExpectedComparison;
}

export interface ExpectedComparison extends ComparedFacts {
  /** The kernels that write the values, by the first of their kind. */
  readonly firsts: readonly number[];
  /** Elements may be left unwritten. */
  readonly partial?: true;
  readonly values: readonly ExpectedValue[];
}

/** Where a value lies: so many bytes from the beginning of a buffer of the program. */
export interface ExpectedPlace {
  readonly buffer: number;
  readonly offset: number;
  readonly bytes: number;
}

export interface ExpectedValue extends ExpectedPlace {
  readonly id: number;
  readonly dtype: ElementType;
  readonly shape: readonly number[];
  readonly digest: Digest;
}

export interface Digest {
  /** The elements at `samplesOf`. */
  readonly samples: readonly DigestNumber[];
  /** How far off each may be; null where nothing is known of it. */
  readonly sampleLimits: readonly (number | null)[];
  /** Weighted sums of the finite elements of each part, where samples are not all. */
  readonly sums?: readonly number[];
  readonly sumLimits?: readonly (number | null)[];
  /** Of each part, which of its elements are not finite, in a number; none where all are. */
  readonly odd?: readonly number[];
}

/** A number, or the name of one that JSON has no word for. */
export type DigestNumber = number | 'NaN' | 'Infinity' | '-Infinity';

/** Samples and parts of a value that has more elements than `wholeCount`. */
const partCount = 32;
const wholeCount = 64;

/** What a value is measured by. */
export interface DigestMeasure {
  readonly samples: readonly number[];
  readonly sums: readonly number[];
  readonly odd: readonly number[];
}

/** The elements that are looked at one by one: all of few, else the first, the last, and one of each part between. */
export function samplesOf(count: number): number[] {
  if (count <= wholeCount) return Array.from({ length: count }, (_, i) => i);
  return Array.from({ length: partCount }, (_, part) => {
    if (part === 0) return 0;
    if (part === partCount - 1) return count - 1;
    return Math.floor(((part + fraction(part, count)) * count) / partCount);
  });
}

/** The part of a value that an element is in; none where all elements are looked at one by one. */
export function partOf(element: number, count: number): number {
  return count <= wholeCount ? -1 : Math.floor((element * partCount) / count);
}

/** What an element counts in the sum of its part: 0.5 to 1.5, of either sign. */
export function weightOf(element: number): number {
  const share = 2 * fraction(element, 7) - 1;
  return share < 0 ? share - 0.5 : share + 0.5;
}

/** Measures a value. */
export function measured(data: ArrayLike<number | bigint>): DigestMeasure {
  const count = data.length;
  const samples = samplesOf(count).map((element) => Number(data[element]));
  if (count <= wholeCount) return { samples, sums: [], odd: [] };
  const [sums, odd] = [new Array<number>(partCount).fill(0), new Array<number>(partCount).fill(0)];
  for (let i = 0; i < count; i++) {
    const [value, part] = [Number(data[i]), partOf(i, count)];
    if (Number.isFinite(value)) sums[part]! += weightOf(i) * value;
    else odd[part]! += (Number.isNaN(value) ? 1 : value > 0 ? 2 : 3) * Math.ceil(1000 * fraction(i, 11));
  }
  return { samples, sums, odd };
}

/** What is wrong with a value, as far as its digest tells; undefined where nothing is. */
export function misfitOf(
  { dtype, shape, digest }: ExpectedValue,
  bytes: Uint8Array,
  isUnwritten: (first: number, bytes: number) => boolean,
): { readonly difference: ValueDifference } | { readonly problem: string } | undefined {
  const data = numbersOf(dtype, bytes, shape);
  const count = data.length;
  const width = widths[dtype];
  const isOpen = (element: number): boolean => isUnwritten(element * width, width);
  const got = measured(data);
  let [wrong, worst, furthest] = [0, 0, -1];
  const elements = samplesOf(count);
  for (const [k, element] of elements.entries()) {
    const limit = digest.sampleLimits[k]!;
    const [is, should] = [got.samples[k]!, Number(digest.samples[k])];
    if (limit === null || isOpen(element) || is === should || (Number.isNaN(is) && Number.isNaN(should)))
      continue;
    const off = Math.abs(is - should);
    if (Number.isFinite(should) && off <= limit) continue;
    wrong += 1;
    const distance = Number.isNaN(off) ? Infinity : off;
    if (distance > furthest) [worst, furthest] = [k, distance];
  }
  if (wrong > 0) {
    const at = placeOf(elements[worst]!, shape);
    const expected = Number(digest.samples[worst]);
    return { difference: { wrong, count: elements.length, at, got: got.samples[worst]!, expected } };
  }
  const { sums = [], sumLimits = [], odd } = digest;
  for (const [part, should] of sums.entries()) {
    const limit = sumLimits[part]!;
    const [start, end] = [Math.ceil((part * count) / partCount), Math.ceil(((part + 1) * count) / partCount)];
    if (limit === null) continue;
    if (got.odd[part] === (odd?.[part] ?? 0) && Math.abs(got.sums[part]! - should) <= limit) continue;
    // Sums of parts that were not wholly written say nothing.
    const range = Array.from({ length: end - start }, (_, i) => start + i);
    if (range.some(isOpen)) continue;
    const among = `the elements from [${placeOf(start, shape).join(', ')}] to [${placeOf(end - 1, shape).join(', ')}]`;
    return {
      problem:
        got.odd[part] === (odd?.[part] ?? 0)
          ? `a weighted sum of ${among} is ${got.sums[part]}, expected ${should}`
          : `other elements than expected are not finite among ${among}`,
    };
  }
  return undefined;
}

/** The bytes of an input, in whole words. */
export function seededBytes({ dtype, count, low, high }: SeededInput, seed: number): Uint8Array<ArrayBuffer> {
  const bytes = new DataView(new ArrayBuffer(4 * Math.ceil((count * widths[dtype]) / 4)));
  for (let i = 0; i < count; i++) {
    const share = fraction(i, 13 * seed + 1);
    const isReal = /f/.test(dtype);
    const value = isReal ? low + (high - low) * share : low + Math.floor((high - low + 1) * share);
    accesses[dtype].set(bytes, i * widths[dtype], value);
  }
  return new Uint8Array(bytes.buffer);
}

/** A number that tells texts apart: Fowler, Noll and Vo's hash. */
export function fingerprint(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** From 0 up to 1: of a hash of an element. */
function fraction(element: number, seed: number): number {
  let hash = Math.imul((element + 1) ^ Math.imul(seed, 0x9e3779b1), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  hash = Math.imul(hash ^ (hash >>> 16), 0x27d4eb2f);
  return ((hash ^ (hash >>> 15)) >>> 0) / 2 ** 32;
}

function numbersOf(dtype: ElementType, bytes: Uint8Array, shape: readonly number[]): Float64Array {
  const numbers = new Float64Array(shape.reduce((product, size) => product * size, 1));
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const [{ get }, width] = [accesses[dtype], widths[dtype]];
  for (let i = 0; i < numbers.length; i++) numbers[i] = get(view, i * width);
  return numbers;
}

const widths: Readonly<Record<ElementType, number>> = {
  bool: 1,
  i8: 1,
  u8: 1,
  i16: 2,
  u16: 2,
  f16: 2,
  bf16: 2,
  i32: 4,
  u32: 4,
  f32: 4,
  i64: 8,
  u64: 8,
  f64: 8,
};

interface ElementAccess {
  readonly get: (view: DataView, at: number) => number;
  readonly set: (view: DataView, at: number, value: number) => void;
}

const accesses: Readonly<Record<ElementType, ElementAccess>> = {
  bool: {
    get: (view, at) => Math.min(1, view.getUint8(at)),
    set: (view, at, value) => view.setUint8(at, value),
  },
  i8: { get: (view, at) => view.getInt8(at), set: (view, at, value) => view.setInt8(at, value) },
  u8: { get: (view, at) => view.getUint8(at), set: (view, at, value) => view.setUint8(at, value) },
  i16: {
    get: (view, at) => view.getInt16(at, true),
    set: (view, at, value) => view.setInt16(at, value, true),
  },
  u16: {
    get: (view, at) => view.getUint16(at, true),
    set: (view, at, value) => view.setUint16(at, value, true),
  },
  i32: {
    get: (view, at) => view.getInt32(at, true),
    set: (view, at, value) => view.setInt32(at, value, true),
  },
  u32: {
    get: (view, at) => view.getUint32(at, true),
    set: (view, at, value) => view.setUint32(at, value, true),
  },
  f32: {
    get: (view, at) => view.getFloat32(at, true),
    set: (view, at, value) => view.setFloat32(at, value, true),
  },
  f64: {
    get: (view, at) => view.getFloat64(at, true),
    set: (view, at, value) => view.setFloat64(at, value, true),
  },
  i64: {
    get: (view, at) => Number(view.getBigInt64(at, true)),
    set: (view, at, value) => view.setBigInt64(at, BigInt(value), true),
  },
  u64: {
    get: (view, at) => Number(view.getBigUint64(at, true)),
    set: (view, at, value) => view.setBigUint64(at, BigInt(value), true),
  },
  bf16: {
    get: (view, at) => floatOf(view.getUint16(at, true) << 16),
    set: (view, at, value) => view.setUint16(at, bitsOfFloat(value) >>> 16, true),
  },
  f16: {
    get: (view, at) => half(view.getUint16(at, true)),
    set: (view, at, value) => view.setUint16(at, halfBits(value), true),
  },
};

function floatOf(bits: number): number {
  return new Float32Array(Int32Array.of(bits).buffer)[0]!;
}

function bitsOfFloat(value: number): number {
  return new Uint32Array(Float32Array.of(value).buffer)[0]!;
}

function half(bits: number): number {
  const [exponent, rest] = [(bits >> 10) & 31, bits & 1023];
  const size =
    exponent === 31
      ? rest === 0
        ? Infinity
        : NaN
      : exponent === 0
        ? rest * 2 ** -24
        : (1024 + rest) * 2 ** (exponent - 25);
  return bits & 0x8000 ? -size : size;
}

/** The bits of a number rounded towards 0, which is not below the smallest normal one, or becomes 0. */
function halfBits(value: number): number {
  const bits = bitsOfFloat(value);
  const exponent = ((bits >>> 23) & 255) - 112;
  const sign = (bits >>> 16) & 0x8000;
  if (exponent <= 0) return sign;
  return exponent > 30 ? sign | 0x7bff : sign | (exponent << 10) | ((bits >>> 13) & 1023);
}
