// Tensors as callers give and get them: typed arrays by dtype, elements in rows. f16 and bf16 are
// given by their bits.

import { SinterError } from '../errors.ts';
import type { ElementType } from '../runtime/program.ts';
import type { EntryInput, OpenType, Sizes, TensorInput, BundleTensorType } from './manifest.ts';

/** The elements of a tensor. */
export type Data =
  | Uint8Array<ArrayBuffer>
  | Int8Array<ArrayBuffer>
  | Uint16Array<ArrayBuffer>
  | Int16Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | BigUint64Array<ArrayBuffer>
  | BigInt64Array<ArrayBuffer>
  | Float32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>;

/** Elements as they may be given: integers in any array of them. */
export type GivenData = Data | readonly (number | bigint)[];

/**
 * What callers give for an input: a number, or elements, with their shape where their count does
 * not tell it.
 */
export type Given = number | GivenData | { readonly data: GivenData; readonly shape: readonly number[] };

interface ArrayType {
  readonly name: string;
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBuffer | number, start?: number, length?: number): Data;
}

const arrays: Readonly<Record<ElementType, ArrayType>> = {
  bool: Uint8Array,
  i8: Int8Array,
  u8: Uint8Array,
  i16: Int16Array,
  u16: Uint16Array,
  i32: Int32Array,
  u32: Uint32Array,
  i64: BigInt64Array,
  u64: BigUint64Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  f32: Float32Array,
  f64: Float64Array,
};

/** Bytes of a tensor's elements. */
export function bytesOf({ dtype, shape }: BundleTensorType): number {
  return arrays[dtype].BYTES_PER_ELEMENT * product(shape);
}

function product(shape: readonly number[]): number {
  return shape.reduce((size, extent) => size * extent, 1);
}

/** The bytes of a buffer as elements; they are the caller's alone. */
export function fromBytes(type: OpenType, sizes: Sizes, bytes: Uint8Array): Data {
  return new arrays[type.dtype](bytes.slice().buffer, 0, product(shapeAt(type, sizes)));
}

/**
 * What an input that `fits` holds, as bytes, whole words of them: integers of 8 and 16 bits may lie
 * in a program's words. Throws E_VALUE at other elements.
 */
export function toBytes(entry: string, input: TensorInput, value: unknown): Uint8Array {
  const { data } = parted(value);
  const isOwn = data instanceof arrays[input.dtype];
  if (!isOwn && !/^[iu]/.test(input.dtype)) throw misfit(entry, input, value);
  const elements = isOwn ? data : integers(data as Integers, input.dtype, `${entry}: ${input.name}`);
  const { byteLength } = elements;
  const bytes = new Uint8Array(4 * Math.ceil(byteLength / 4));
  bytes.set(new Uint8Array(elements.buffer, elements.byteOffset, byteLength));
  // Kernels read truth as 0 or 1, and masks may say 255.
  return input.dtype === 'bool' ? bytes.map((byte) => byte && 1) : bytes;
}

type Integers = ArrayLike<number | bigint>;

/** Whether a value is an integer; what JavaScript converts to one, as null and texts, is none. */
export function isWhole(value: unknown): boolean {
  return typeof value === 'bigint' || Number.isInteger(value);
}

/** Integers in an array of a dtype. Throws E_VALUE at one that is none, or beyond the dtype's. */
function integers(data: Integers, dtype: ElementType, what: string): Data {
  const result = new arrays[dtype](data.length);
  const isWide = /64/.test(dtype);
  for (let i = 0; i < data.length; i++) {
    const value = data[i]!;
    const whole = isWhole(value);
    if (whole) result[i] = isWide ? BigInt(value) : Number(value);
    // Arrays of integers keep the low bits alone.
    if (!whole || BigInt(result[i]!) !== BigInt(value))
      throw new SinterError('E_VALUE', `${what}: element ${i} is ${value}, which does not fit ${dtype}`);
  }
  return result;
}

/** Whether what is given has the shape that an input has at these sizes, as far as it tells. */
export function fits(input: EntryInput, value: unknown, sizes: Sizes): boolean {
  if (input.kind === 'number') return true;
  const { data, shape } = parted(value);
  const own = shapeAt(input, sizes);
  return isList(data) && data.length === product(own) && (!shape || `${shape}` === `${own}`);
}

export function shapeAt({ shape }: OpenType, sizes: Sizes): number[] {
  return shape.map((size) => (typeof size === 'string' ? sizes[size]! : size));
}

function parted(value: unknown): { readonly data: unknown; readonly shape?: readonly number[] } {
  return isList(value) || !Object(value).shape
    ? { data: value }
    : (value as { data: unknown; shape: readonly number[] });
}

/** The shape that a value is given with, and how many elements it has, as far as it tells. */
export function shapeOf(value: unknown): readonly number[] | undefined {
  const { shape } = parted(value);
  return shape && Array.from(shape, Number);
}

export function countOf(value: unknown): number | undefined {
  const { data } = parted(value);
  return isList(data) ? data.length : undefined;
}

function isList(value: unknown): value is Integers {
  return Array.isArray(value) || ArrayBuffer.isView(value);
}

/**
 * What is wrong with what is given for an input: E_SHAPE where sizes are open, with those that were
 * `built`.
 */
export function misfit(entry: string, input: TensorInput, value: unknown, built?: string): SinterError {
  const { name, dtype, shape: own } = input;
  const { data, shape } = parted(value);
  const [open, other] = own.filter((size) => typeof size === 'string');
  let got: string = typeof data;
  if (isList(data)) {
    got = `${data.constructor.name} of ${data.length}`;
    if (shape) got += ` in [${shape}]`;
    else if (open && !other) got += `, ${open} ${data.length / product(shapeAt(input, { [open]: 1 }))}`;
  }
  if (built) got += `\n  built for ${built}${shape ? '' : '\n  try: { data, shape }'}`;
  return new SinterError(
    built ? 'E_SHAPE' : 'E_VALUE',
    `${entry}: ${name} is ${dtype}[${own.join(', ')}]: expected ${arrays[dtype].name}${open ? '' : ` of ${product(own as number[])}`}, got ${got}`,
  );
}
