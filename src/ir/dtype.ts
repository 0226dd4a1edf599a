// Element types: what each one is, how wide it is stored, and how two of them promote (PyTorch's
// lattice).

import { CompilerBug } from '../errors.ts';

/** Every element type the Graph IR knows; targets support subsets and say so in clear errors. */
export type DType =
  | 'bool'
  | 'i8'
  | 'u8'
  | 'i16'
  | 'u16'
  | 'i32'
  | 'u32'
  | 'i64'
  | 'u64'
  | 'f16'
  | 'bf16'
  | 'f32'
  | 'f64'
  | 'c64'
  | 'c128';

export type DTypeKind = 'bool' | 'int' | 'uint' | 'float' | 'complex';

interface DTypeInfo {
  readonly kind: DTypeKind;
  /** Bytes one element takes in tightly packed storage. */
  readonly bytes: number;
}

const info = {
  bool: { kind: 'bool', bytes: 1 },
  i8: { kind: 'int', bytes: 1 },
  u8: { kind: 'uint', bytes: 1 },
  i16: { kind: 'int', bytes: 2 },
  u16: { kind: 'uint', bytes: 2 },
  i32: { kind: 'int', bytes: 4 },
  u32: { kind: 'uint', bytes: 4 },
  i64: { kind: 'int', bytes: 8 },
  u64: { kind: 'uint', bytes: 8 },
  f16: { kind: 'float', bytes: 2 },
  bf16: { kind: 'float', bytes: 2 },
  f32: { kind: 'float', bytes: 4 },
  f64: { kind: 'float', bytes: 8 },
  c64: { kind: 'complex', bytes: 8 },
  c128: { kind: 'complex', bytes: 16 },
} as const satisfies Record<DType, DTypeInfo>;

/** Pairs of reals. */
export type ComplexDType = 'c64' | 'c128';
/** Real numbers with fractions. */
export type FloatDType = 'f16' | 'bf16' | 'f32' | 'f64';
/** Whole numbers; bool is none. */
export type IntegerDType = 'i8' | 'u8' | 'i16' | 'u16' | 'i32' | 'u32' | 'i64' | 'u64';
/** The dtype of the real and imaginary parts; other dtypes are their own. */
export type PartType<D extends DType> = D extends 'c64' ? 'f32' : D extends 'c128' ? 'f64' : D;
/** What memory and kernels hold: complex numbers are pairs of these there (passes/lower-complex.ts). */
export type RealDType = Exclude<DType, ComplexDType>;

/** All dtypes, in a fixed order. */
export const dtypes: readonly DType[] = Object.keys(info) as DType[];

/** Those that are no pairs. */
export const realDTypes: readonly RealDType[] = dtypes.filter((dtype) => dtype !== 'c64' && dtype !== 'c128');

/** Whether the text names an element type. */
export function isDType(text: string): text is DType {
  return typeof text === 'string' && Object.hasOwn(info, text);
}

export function dtypeKind(dtype: DType): DTypeKind {
  return info[dtype].kind;
}

/** Bytes of one element in packed storage. */
export function dtypeBytes(dtype: DType): number {
  return info[dtype].bytes;
}

export function isFloat(dtype: DType): boolean {
  return info[dtype].kind === 'float';
}

export function isComplex(dtype: DType): dtype is ComplexDType {
  return info[dtype].kind === 'complex';
}

/** Floats and complex numbers: what derivatives are taken of. */
export function isInexact(dtype: DType): boolean {
  return isFloat(dtype) || isComplex(dtype);
}

/** The dtype of the real and imaginary parts; other dtypes are their own. */
export function partType(dtype: DType): RealDType {
  return dtype === 'c64' ? 'f32' : dtype === 'c128' ? 'f64' : dtype;
}

/** The dtype of what kernels hold, once complex numbers are pairs. */
export function lowered(dtype: DType): RealDType {
  if (isComplex(dtype)) throw new CompilerBug('lowerComplex', `a value of ${dtype} was not lowered`);
  return dtype;
}

/** The complex dtype that values of `dtype` become: c128 for f64, else c64. */
export function complexType(dtype: DType): ComplexDType {
  return dtype === 'f64' || dtype === 'c128' ? 'c128' : 'c64';
}

/** Signed or unsigned integer; bool is not one. */
export function isInteger(dtype: DType): boolean {
  const kind = info[dtype].kind;
  return kind === 'int' || kind === 'uint';
}

export type SmallInteger = 'i8' | 'u8' | 'i16' | 'u16';

/** Integers of fewer than 32 bits. */
export function isSmallInteger(dtype: DType): dtype is SmallInteger {
  return isInteger(dtype) && info[dtype].bytes < 4;
}

/** 64-bit integers hold `bigint` values on the host. */
export function isWide(dtype: DType): dtype is 'i64' | 'u64' {
  return dtype === 'i64' || dtype === 'u64';
}

const signedOfBytes: Readonly<Record<number, DType>> = { 1: 'i8', 2: 'i16', 4: 'i32', 8: 'i64' };

/**
 * The dtype both operands are converted to, as `torch.promote_types`: bool < integers < floats <
 * complex numbers, which take the wider part (f64 with c64 gives c128); f16 with bf16 gives f32; signed with unsigned gives the next wider signed type (i64 for u32, f32 for
 * u64 with a signed type, as PyTorch).
 */
export function promote(a: DType, b: DType): DType {
  if (a === b) return a;
  const [x, y] = [info[a], info[b]];
  if (x.kind === 'bool') return b;
  if (y.kind === 'bool') return a;
  if (x.kind === 'complex' || y.kind === 'complex') {
    return complexType(a) === 'c128' || complexType(b) === 'c128' ? 'c128' : 'c64';
  }
  if (x.kind === 'float' || y.kind === 'float') {
    if (x.kind !== 'float') return b;
    if (y.kind !== 'float') return a;
    if (x.bytes === y.bytes) return 'f32';
    return x.bytes > y.bytes ? a : b;
  }
  if (x.kind === y.kind) return x.bytes > y.bytes ? a : b;
  const [signed, unsigned] = x.kind === 'int' ? [x, y] : [y, x];
  if (signed.bytes > unsigned.bytes) return signedOfBytes[signed.bytes] ?? 'i64';
  return signedOfBytes[unsigned.bytes * 2] ?? 'f32';
}

/** Inclusive range of an integer dtype, as exact integers. */
export function integerRange(dtype: DType): readonly [bigint, bigint] {
  const bits = BigInt(info[dtype].bytes * 8);
  if (info[dtype].kind === 'int') return [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n];
  if (info[dtype].kind === 'uint') return [0n, (1n << bits) - 1n];
  return [0n, 1n];
}

const largestFloat: Readonly<Partial<Record<DType, number>>> = {
  f16: 65504,
  bf16: 3.3895313892515355e38,
  f32: 3.4028234663852886e38,
  f64: Number.MAX_VALUE,
  c64: 3.4028234663852886e38,
  c128: Number.MAX_VALUE,
};

/** The largest finite value of a dtype, or of its parts (the nearest double, for 64-bit integers). */
export function largestOf(dtype: DType): number {
  return largestFloat[dtype] ?? (dtype === 'bool' ? 1 : Number(integerRange(dtype)[1]));
}

/** What run-time scalars of programs are of. */
export type ScalarDType = 'f32' | 'i32' | 'u32' | 'bool';

/**
 * How a constant of this dtype travels as a run-time scalar; undefined when it has to be compiled
 * in.
 */
export function scalarType(dtype: DType): ScalarDType | undefined {
  switch (dtype) {
    case 'f32':
    case 'f16':
    case 'bf16':
      return 'f32';
    case 'i32':
    case 'i16':
    case 'i8':
      return 'i32';
    case 'u32':
    case 'u16':
    case 'u8':
      return 'u32';
    case 'bool':
      return 'bool';
    case 'i64':
    case 'u64':
    case 'f64':
      return undefined;
  }
}
