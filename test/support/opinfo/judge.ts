// Whether a result is PyTorch's: shapes, dtypes as far as docs/pytorch.md promises them, elements within the tolerances of the samples.

import type { HostTensor } from '../../../src/io/host.ts';
import { isInteger, type DType } from '../../../src/ir/dtype.ts';
import { unpackBytes } from '../../../src/ir/value.ts';
import { isComplexName } from './complex.ts';
import type { Operator, StoredTensor } from './read.ts';

export interface Tolerance {
  readonly rtol: number;
  readonly atol: number;
}

const usual: Tolerance = { rtol: 1e-4, atol: 1e-5 };
/** For linear algebra, Fourier transforms, special functions, and sums of more than 100 terms. */
const wide: Tolerance = { rtol: 1e-3, atol: 1e-4 };
const wideFamilies: ReadonlySet<string> = new Set(['linalg', 'spectral', 'fft', 'special']);
const manyTerms = 100;

const sizeOf = (shape: readonly number[]): number => shape.reduce((size, n) => size * n, 1);

/** The tolerance of an operator's case, by its family and by how many elements go into one of the smallest tensor. */
export function toleranceOf(
  family: string,
  name: string,
  inputs: readonly StoredTensor[],
  outputs: readonly StoredTensor[],
): Tolerance {
  if (wideFamilies.has(family) || /^(?:linalg|fft|special)\./.test(name)) return wide;
  // What goes into one element of a convolution is what its weight has for one channel of the result.
  const weight = name.includes('.conv') ? inputs[1]?.shape : undefined;
  const channels = weight?.[name.includes('transpose') ? 1 : 0] ?? 1;
  if (weight !== undefined && sizeOf(weight) / channels > manyTerms) return wide;
  const sizes = [...inputs, ...outputs].map(({ shape }) => sizeOf(shape)).filter((size) => size > 0);
  return Math.max(...sizes, 1) / Math.min(...sizes, Infinity) > manyTerms ? wide : usual;
}

/** Numbers of a tensor; two per element where they are complex. */
export interface Numbers {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data: ArrayLike<number | bigint>;
}

/** What the file stores under a name. */
export function expectedNumbers(operator: Operator, { tensor, dtype, shape }: StoredTensor): Numbers {
  const stored = operator.tensors.get(tensor);
  if (stored === undefined) throw new Error(`${operator.name}: the file has no tensor ${tensor}`);
  return { dtype, shape, data: elements(stored.data, stored.dtype) };
}

/** What a result holds. */
export function numbersOf({ dtype, shape, data }: HostTensor): Numbers {
  const part: Readonly<Record<string, DType>> = { c64: 'f32', c128: 'f64' };
  return { dtype, shape, data: elements(data, part[dtype] ?? dtype) };
}

function elements(bytes: Uint8Array, dtype: DType): ArrayLike<number | bigint> {
  const count = Math.round(bytes.byteLength / unit(dtype));
  return unpackBytes(bytes, dtype, [count]).data;
}

function unit(dtype: DType): number {
  const bits = /\d+$/.exec(dtype);
  return bits === null ? 1 : Number(bits[0]) / 8;
}

/**
 * The differences of docs/pytorch.md: positions and sums of integers are i32 where PyTorch has i64, `all` and `any` of u8 are bool; the values must
 * be the same.
 */
function isPromised(actual: string, expected: string): boolean {
  if (actual === expected || (expected === 'u8' && actual === 'bool')) return true;
  return expected === 'i64' && isInteger(actual as DType);
}

export interface Judging {
  readonly tolerance: Tolerance;
  /** Only finite elements are compared, and where the others are. */
  readonly onlyFinite: boolean;
}

/** Why a result is not the expected one; undefined when it is. */
export function difference(actual: Numbers, expected: Numbers, judging: Judging): string | undefined {
  const show = ({ dtype, shape }: Numbers): string => `${dtype}[${shape.join(',')}]`;
  const sameShape =
    actual.shape.length === expected.shape.length && actual.shape.every((n, i) => n === expected.shape[i]);
  if (!sameShape || !isPromised(actual.dtype, expected.dtype))
    return `expected ${show(expected)}, got ${show(actual)}`;
  const width = isComplexName(expected.dtype) ? 2 : 1;
  const isExact = !/^(?:c|f|bf)\d/.test(expected.dtype);
  for (let i = 0; i < expected.data.length; i += width) {
    const [got, want] = [part(actual.data, i, width), part(expected.data, i, width)];
    if (isExact ? same(actual.data[i]!, expected.data[i]!) : near(got, want, judging)) continue;
    return `element ${i / width} of ${show(expected)}: expected ${want.join(', ')}, got ${got.join(', ')}`;
  }
  return undefined;
}

function part(data: ArrayLike<number | bigint>, at: number, width: number): number[] {
  return Array.from({ length: width }, (_, k) => Number(data[at + k]!));
}

function same(actual: number | bigint, expected: number | bigint): boolean {
  return BigInt(actual) === BigInt(expected);
}

/** Complex numbers by the length of their difference, where both parts are finite. */
function near(got: readonly number[], want: readonly number[], judging: Judging): boolean {
  if (want.some((x) => !Number.isFinite(x))) {
    if (judging.onlyFinite) return got.some((x) => !Number.isFinite(x));
    return want.every((x, k) => Object.is(x, got[k]) || close(Math.abs(got[k]! - x), Math.abs(x), judging));
  }
  return close(Math.hypot(...got.map((x, k) => x - want[k]!)), Math.hypot(...want), judging);
}

function close(distance: number, size: number, { tolerance }: Judging): boolean {
  return distance <= tolerance.atol + tolerance.rtol * size && Number.isFinite(size);
}
