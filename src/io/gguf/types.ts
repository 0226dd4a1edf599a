// What GGUF files are made of: types of metadata and of tensors, by the numbers that files call them.

import { blockFacts, type BlockFormat } from '../../ir/blocks/format.ts';
import type { DType } from '../../ir/dtype.ts';

/** The type of a metadata value. */
export type GgufValueType =
  | 'u8'
  | 'i8'
  | 'u16'
  | 'i16'
  | 'u32'
  | 'i32'
  | 'f32'
  | 'bool'
  | 'string'
  | 'array'
  | 'u64'
  | 'i64'
  | 'f64';

/** In the order of their numbers. */
export const valueTypes: readonly GgufValueType[] = [
  'u8',
  'i8',
  'u16',
  'i16',
  'u32',
  'i32',
  'f32',
  'bool',
  'string',
  'array',
  'u64',
  'i64',
  'f64',
];

/** Types of numbers, which arrays hold as typed arrays. */
export type GgufNumberType = Exclude<GgufValueType, 'bool' | 'string' | 'array'>;

type NumberArray =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array;

/** A list of metadata: numbers as a typed array, and lists of strings, flags or lists. */
export type GgufList = NumberArray | readonly string[] | readonly boolean[] | readonly GgufList[];

/** A metadata value: 64-bit integers are numbers where a number holds them, bigints else. */
export type GgufValue = number | bigint | boolean | string | GgufList;

/** A metadata value and the type that it has in the file; of a list, the type of its items. */
export interface GgufEntry {
  readonly type: GgufValueType;
  /** Of a list. */
  readonly items?: GgufValueType;
  readonly value: GgufValue;
}

interface NumberClass {
  readonly bytes: 1 | 2 | 4 | 8;
  readonly list: new (buffer: ArrayBuffer) => NumberArray;
  read(view: DataView, at: number): number | bigint;
  write(view: DataView, at: number, value: number | bigint): void;
}

/** How numbers lie in files, little-endian. */
export const numberTypes: Readonly<Record<GgufNumberType, NumberClass>> = {
  u8: {
    bytes: 1,
    list: Uint8Array,
    read: (view, at) => view.getUint8(at),
    write: (view, at, value) => view.setUint8(at, Number(value)),
  },
  i8: {
    bytes: 1,
    list: Int8Array,
    read: (view, at) => view.getInt8(at),
    write: (view, at, value) => view.setInt8(at, Number(value)),
  },
  u16: {
    bytes: 2,
    list: Uint16Array,
    read: (view, at) => view.getUint16(at, true),
    write: (view, at, value) => view.setUint16(at, Number(value), true),
  },
  i16: {
    bytes: 2,
    list: Int16Array,
    read: (view, at) => view.getInt16(at, true),
    write: (view, at, value) => view.setInt16(at, Number(value), true),
  },
  u32: {
    bytes: 4,
    list: Uint32Array,
    read: (view, at) => view.getUint32(at, true),
    write: (view, at, value) => view.setUint32(at, Number(value), true),
  },
  i32: {
    bytes: 4,
    list: Int32Array,
    read: (view, at) => view.getInt32(at, true),
    write: (view, at, value) => view.setInt32(at, Number(value), true),
  },
  f32: {
    bytes: 4,
    list: Float32Array,
    read: (view, at) => view.getFloat32(at, true),
    write: (view, at, value) => view.setFloat32(at, Number(value), true),
  },
  u64: {
    bytes: 8,
    list: BigUint64Array,
    read: (view, at) => exact(view.getBigUint64(at, true)),
    write: (view, at, value) => view.setBigUint64(at, BigInt(value), true),
  },
  i64: {
    bytes: 8,
    list: BigInt64Array,
    read: (view, at) => exact(view.getBigInt64(at, true)),
    write: (view, at, value) => view.setBigInt64(at, BigInt(value), true),
  },
  f64: {
    bytes: 8,
    list: Float64Array,
    read: (view, at) => view.getFloat64(at, true),
    write: (view, at, value) => view.setFloat64(at, Number(value), true),
  },
};

/** As a number where that is exact. */
function exact(value: bigint): number | bigint {
  const near = Number(value);
  return Number.isSafeInteger(near) ? near : value;
}

/** How a tensor of a GGUF file is stored. */
export type GgufType = 'f32' | 'f16' | 'bf16' | 'f64' | 'i8' | 'i16' | 'i32' | 'i64' | BlockFormat;

/** What files call element types by; the formats of blocks have theirs in their table. */
const elementTypes: Readonly<Record<Exclude<GgufType, BlockFormat>, number>> = {
  f32: 0,
  f16: 1,
  i8: 24,
  i16: 25,
  i32: 26,
  i64: 27,
  f64: 28,
  bf16: 30,
} satisfies Partial<Record<DType, number>>;

/** The number of each type of tensors. */
export const tensorTypeIds: ReadonlyMap<GgufType, number> = new Map<GgufType, number>([
  ...Object.entries(elementTypes).map(([type, id]) => [type as GgufType, id] as const),
  ...Object.entries(blockFacts).map(([type, { ggml }]) => [type as GgufType, ggml] as const),
]);

/** The type of each number. */
export const tensorTypes: ReadonlyMap<number, GgufType> = new Map(
  [...tensorTypeIds].map(([type, id]) => [id, type]),
);

/** Types that files have and this reader does not, for messages. */
export const foreignTypes: ReadonlyMap<number, string> = new Map([
  [9, 'q8_1'],
  [15, 'q8_k'],
  [16, 'iq2_xxs'],
  [17, 'iq2_xs'],
  [18, 'iq3_xxs'],
  [19, 'iq1_s'],
  [21, 'iq3_s'],
  [22, 'iq2_s'],
  [29, 'iq1_m'],
  [34, 'tq1_0'],
  [35, 'tq2_0'],
  [40, 'nvfp4'],
]);

/** Bytes that tensors are aligned to unless `general.alignment` says otherwise. */
export const defaultAlignment = 32;
/** `GGUF`, as a little-endian word. */
export const magic = 0x46554747;
