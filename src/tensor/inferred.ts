// What the type checker knows of dtypes: a tensor's dtype is its type parameter, and these say what
// comes of it. Where a result depends on more than dtypes (a rank, whether a number is whole), the
// type is the union of what may come.

import type { ComplexDType, DType, FloatDType, IntegerDType, PartType } from '../ir/dtype.ts';
import type { ComplexNumber } from '../ir/value.ts';

/**
 * The dtype of a tensor of which nothing is known: it goes where any dtype is expected, and comes
 * from everywhere, as in gradual typing (Siek & Taha, "Gradual Typing for Functional Languages",
 * 2006). So `Tensor` in a signature says no more than it did, and `let h = zeros([4]); h = f(h)` is
 * well-typed for every `f`.
 */
// oxlint-disable-next-line typescript/no-explicit-any
export type Unknown = any;

/** What `dtype` gives: one of all where nothing is known. */
export type Known<D extends DType> = { [K in DType]: D extends K ? K : never }[DType];

/** One element on the host: a bigint of 64-bit integers, a boolean of bool, else a number. */
export type ItemOf<D extends DType> = D extends 'bool'
  ? boolean
  : D extends 'i64' | 'u64'
    ? bigint
    : D extends ComplexDType
      ? ComplexNumber
      : number;

interface DataArrays {
  bool: Uint8Array;
  i8: Int8Array;
  u8: Uint8Array;
  i16: Int16Array;
  u16: Uint16Array;
  i32: Int32Array;
  u32: Uint32Array;
  i64: BigInt64Array;
  u64: BigUint64Array;
  f16: Float32Array;
  bf16: Float32Array;
  f32: Float32Array;
  f64: Float64Array;
  c64: Float32Array;
  c128: Float64Array;
}

/** The typed array that `data()` gives. */
export type DataOf<D extends DType> = { [K in DType]: D extends K ? DataArrays[K] : never }[DType];

/** What an operation on floats gives: floats and complex numbers stay, all else becomes f32. */
export type Floated<D extends DType> = D extends FloatDType | ComplexDType ? D : 'f32';

/**
 * What a layer with weights gives. Weights are taken to be f32, or of half precision, as nearly all
 * are: `to(model, 'f64')` changes them while the program runs. What is not known counts as real.
 */
export type Weighed<D extends DType> = DType extends D
  ? FloatDType
  : D extends ComplexDType | 'f32' | 'f64'
    ? D extends ComplexDType
      ? ComplexDType
      : D
    : FloatDType;

/** What limits give: numbers stay what they are, bool becomes f32. */
export type Limited<D extends DType> = D extends 'bool' ? 'f32' : D;

/** What sums and products of elements are kept in: narrow integers and bool count in i32. */
export type Summed<D extends DType> = D extends 'bool' | 'i8' | 'u8' | 'i16' | 'u16' ? 'i32' : D;

/** The dtype of sizes: of a complex number's that of its parts. */
export type SizeOf<D extends DType> = D extends ComplexDType ? PartType<D> : D;

interface Kinds {
  bool: 'bool';
  integer: IntegerDType;
  float: FloatDType;
  complex: ComplexDType;
}

type KindOf<D extends DType> = D extends 'bool'
  ? 'bool'
  : D extends IntegerDType
    ? 'integer'
    : D extends FloatDType
      ? 'float'
      : 'complex';

/** The kinds below each one: where it meets one of those, its own dtype is the result's. */
interface Below {
  bool: never;
  integer: 'bool';
  float: 'bool' | 'integer';
  complex: 'bool' | 'integer';
}

type Met<A extends DType, B extends DType> = A extends B
  ? A
  : KindOf<B> extends Below[KindOf<A>]
    ? A
    : KindOf<A> extends Below[KindOf<B>]
      ? B
      : 'complex' extends KindOf<A> | KindOf<B>
        ? ComplexDType
        : KindOf<A> extends 'integer'
          ? // f32 of u64 with a signed integer, as PyTorch.
            IntegerDType | 'f32'
          : Kinds[KindOf<A>];

/** The common dtype of two operands, as `promote` gives it for tensors of any rank. */
export type Promoted<A extends DType, B extends DType> = A extends DType
  ? B extends DType
    ? Met<A, B>
    : never
  : never;

/** What a JavaScript number may be beside a tensor: it takes an integer dtype when it is whole. */
export type BesideNumber<D extends DType> = D extends FloatDType | ComplexDType
  ? D
  : D extends 'bool'
    ? 'i32' | 'f32'
    : D | 'f32';

/** A tuple of `N` where `N` is known, else a list. */
export type Times<T, N extends number> = number extends N ? T[] : Repeated<T, N>;

type Repeated<T, N extends number, Had extends readonly T[] = []> = Had['length'] extends N
  ? [...Had]
  : Had['length'] extends 64
    ? T[]
    : Repeated<T, N, readonly [...Had, T]>;

/** One `T` for each entry of a tuple, else a list. */
export type Each<T, List extends readonly unknown[]> = { -readonly [K in keyof List]: T };

/** The dtype of tensors that are joined: theirs where all have one. */
export type Joined<D extends DType, All extends DType = D> = D extends DType
  ? [All] extends [D]
    ? D
    : Unknown
  : never;

// A type of arrays of itself, as that of any nested data, says nothing.
type OfElement<E> = [E] extends [never]
  ? 'f32'
  : readonly E[] extends E
    ? Unknown
    : E extends number
      ? 'f32'
      : E extends boolean
        ? 'bool'
        : E extends bigint
          ? 'i64'
          : E extends ComplexNumber
            ? 'c64'
            : E extends readonly (infer Inner)[]
              ? OfElement<Inner>
              : Unknown;

/** The dtypes of typed arrays, by what they call themselves. */
interface ArrayTypes {
  Float32Array: 'f32';
  Float64Array: 'f64';
  Int32Array: 'i32';
  Uint32Array: 'u32';
  Int16Array: 'i16';
  Uint16Array: 'u16';
  Int8Array: 'i8';
  Uint8Array: 'u8';
  Uint8ClampedArray: 'u8';
  BigInt64Array: 'i64';
  BigUint64Array: 'u64';
}

/** The dtype of a typed array. */
export type OfArray<A> = A extends { readonly [Symbol.toStringTag]: infer Name extends keyof ArrayTypes }
  ? ArrayTypes[Name]
  : Unknown;

/** A dtype that is written down with a value; unknown where that may be any. */
export type Told<D extends DType> = DType extends D ? Unknown : D;

/** The dtype that `tensor` gives host data by itself. */
export type HostType<N> = N extends ArrayBufferView ? OfArray<N> : OfElement<N>;
