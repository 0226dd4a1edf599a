// Element types of the format: their numbers, and the dtype that carries each in Sinter. Floats of
// 8 and 4 bits are carried as f32 that holds only their values, integers of 4 and 2 bits as bytes:
// they are types for storage, and every target computes with the carriers.

import type { DType } from '../ir/dtype.ts';
import { codecs, type Narrow } from './narrow.ts';
import type { MessageDraft } from './schema.ts';

/**
 * Element types that are carried; complex numbers are not. Strings are carried as places in a list
 * of them (words.ts).
 */
export type ElementType =
  | 'float'
  | 'uint8'
  | 'int8'
  | 'uint16'
  | 'int16'
  | 'int32'
  | 'int64'
  | 'bool'
  | 'float16'
  | 'double'
  | 'uint32'
  | 'uint64'
  | 'bfloat16'
  | 'string'
  | Narrow;

interface ElementInfo {
  readonly code: number;
  readonly dtype: DType;
}

const table = {
  float: { code: 1, dtype: 'f32' },
  uint8: { code: 2, dtype: 'u8' },
  int8: { code: 3, dtype: 'i8' },
  uint16: { code: 4, dtype: 'u16' },
  int16: { code: 5, dtype: 'i16' },
  int32: { code: 6, dtype: 'i32' },
  int64: { code: 7, dtype: 'i64' },
  bool: { code: 9, dtype: 'bool' },
  float16: { code: 10, dtype: 'f16' },
  double: { code: 11, dtype: 'f64' },
  uint32: { code: 12, dtype: 'u32' },
  uint64: { code: 13, dtype: 'u64' },
  bfloat16: { code: 16, dtype: 'bf16' },
  float8e4m3fn: { code: 17, dtype: 'f32' },
  float8e4m3fnuz: { code: 18, dtype: 'f32' },
  float8e5m2: { code: 19, dtype: 'f32' },
  float8e5m2fnuz: { code: 20, dtype: 'f32' },
  uint4: { code: 21, dtype: 'u8' },
  int4: { code: 22, dtype: 'i8' },
  float4e2m1: { code: 23, dtype: 'f32' },
  float8e8m0: { code: 24, dtype: 'f32' },
  uint2: { code: 25, dtype: 'u8' },
  int2: { code: 26, dtype: 'i8' },
  string: { code: 8, dtype: 'i32' },
} as const satisfies Record<ElementType, ElementInfo>;

/** Names of the types that are known and not carried, for messages. */
const refused: Readonly<Record<number, string>> = {
  0: 'undefined',
  14: 'complex64',
  15: 'complex128',
};

const byCode = new Map<number, ElementType>(
  Object.entries(table).map(([type, { code }]) => [code, type as ElementType]),
);

/** The element type of a number in a file; undefined for those that are not carried. */
export function elementType(code: number): ElementType | undefined {
  return byCode.get(code);
}

/** The element type of a name in lower case; undefined for those that are not carried. */
export function elementTypeNamed(name: string): ElementType | undefined {
  return Object.hasOwn(table, name) ? (name as ElementType) : undefined;
}

/** What to call a number in a message. */
export function showCode(code: number): string {
  return byCode.get(code) ?? refused[code] ?? `element type ${code}`;
}

/** The number that files have for a type. */
export function codeOf(type: ElementType): number {
  return table[type].code;
}

/** The dtype that carries elements of this type. */
export function hostType(type: ElementType): DType {
  return table[type].dtype;
}

let doubles = true;

/** Whether what is recorded may compute in f64, which not every device has. */
export function hasDoubles(): boolean {
  return doubles;
}

/** Runs something with f64, or without. */
export function withDoubles<T>(has: boolean, run: () => T): T {
  const before = doubles;
  doubles = has;
  try {
    return run();
  } finally {
    doubles = before;
  }
}

export function isNarrow(type: ElementType): type is Narrow {
  return type in codecs;
}

const ofDType = new Map<DType, ElementType>();
for (const [type, { dtype }] of Object.entries(table)) {
  if (!ofDType.has(dtype)) ofDType.set(dtype, type as ElementType);
}

/** The element type that a dtype stands for when nothing else is known. */
export function typeOf(dtype: DType): ElementType {
  return ofDType.get(dtype)!;
}

/** A tensor to be written, with its elements in the message. */
export function tensorDraft(
  name: string,
  type: ElementType,
  shape: readonly number[],
  rawData: Uint8Array,
): MessageDraft<'Tensor'> {
  return { dims: shape.map(BigInt), dataType: codeOf(type), name, rawData };
}
