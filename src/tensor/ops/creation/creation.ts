// Tensors without tensor inputs: from host data, constants and sequences. Constants and sequences
// are graph nodes: they take no memory until a kernel must store them.

import type { HostType } from '../../inferred.ts';
import { showValue, TensorError } from '../../../errors.ts';
import { add, binary, cast, complex, full as spread, mul, sub, where } from '../../../ir/build.ts';
import {
  integerRange,
  isComplex,
  isInteger,
  isSmallInteger,
  partType,
  type DType,
} from '../../../ir/dtype.ts';
import * as arg from '../../../ir/arguments.ts';
import { checkShape, sizeOf, toShape } from '../../../ir/shape.ts';
import {
  hostArray,
  isComplexNumber,
  partCount,
  type ComplexNumber,
  type HostData,
  type Scalar,
} from '../../../ir/value.ts';
import { aTensor } from '../../expect.ts';
import { fromHost, record } from '../../record.ts';
import { Tensor } from '../../tensor.ts';
import { iota, wideType } from '../../formula/elementwise.ts';

/** Numbers, booleans, bigints or complex numbers `{ re, im }`, nested one array per axis. */
export type NestedData = number | boolean | bigint | ComplexNumber | readonly NestedData[];

/** A number, a boolean, a bigint or a complex number. @internal */
export type Element = number | boolean | bigint | ComplexNumber;

export interface CreateOptions<T extends DType = DType> {
  /** The dtype of the elements; by default that of the values or of x, else f32. */
  readonly dtype?: T;
}

/** @internal */
export const createOptions: arg.Table<CreateOptions> = { dtype: arg.dtype };

export interface TensorOptions<T extends DType = DType> extends CreateOptions<T> {
  /**
   * The shape of a flat array; by default typed arrays are vectors, and nested arrays say their
   * shape themselves.
   */
  readonly shape?: readonly number[];
}

type HostArray = HostData | Uint8ClampedArray;

const typed: readonly (readonly [new (length: number) => HostArray, DType])[] = [
  [Float32Array, 'f32'],
  [Float64Array, 'f64'],
  [Int32Array, 'i32'],
  [Uint32Array, 'u32'],
  [Int16Array, 'i16'],
  [Uint16Array, 'u16'],
  [Int8Array, 'i8'],
  [Uint8Array, 'u8'],
  [Uint8ClampedArray, 'u8'],
  [BigInt64Array, 'i64'],
  [BigUint64Array, 'u64'],
];

const takesTensor = arg.takes<(data: NestedData | HostArray, options?: TensorOptions) => Tensor>(
  ['the data', arg.anything()],
  ['options', arg.options<TensorOptions>({ ...createOptions, shape: arg.inside() })],
);

/**
 * A tensor of host data, which is copied. Nested arrays of numbers give f32, of booleans bool, of
 * bigints i64, of `{ re, im }` c64; a typed array gives its own dtype. With `dtype` the values are
 * brought into it (floats round, integers truncate and saturate). Typed arrays for c64 and c128 hold
 * real and imaginary parts by turns, as `data()` gives them.
 *
 * @jax jnp.array
 * @example
 * sn.tensor([1, 0, 1], { dtype: 'f32' });
 */
export function tensor<N extends NestedData | HostArray, T extends DType = HostType<N>>(
  data: N,
  options: TensorOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesTensor('tensor', data, options);
  if (ArrayBuffer.isView(data)) return fromTyped(data, options);
  const shape = shapeOf(data);
  const values = flatten(data, shape);
  const dtype = options.dtype ?? kindOf(values);
  const to = toCounted(options.shape ?? shape, values.length);
  const scalars = isComplex(dtype)
    ? values.flatMap(partsOf)
    : values.map((value) => realOf('tensor', value, dtype));
  return fromHost(hostArray(dtype, to, scalars).data, to, dtype);
}

function fromTyped(data: HostArray, options: TensorOptions): Tensor {
  const own = typed.find(([type]) => data instanceof type)?.[1];
  if (own === undefined) {
    throw new TensorError('E_DTYPE', 'tensor', `no dtype holds a ${(data as object).constructor.name}`);
  }
  const dtype = options.dtype ?? own;
  const count = data.length / partCount(dtype);
  if (!Number.isInteger(count)) {
    const problem = `${dtype} takes real and imaginary parts by turns, got ${data.length} numbers`;
    throw new TensorError('E_SHAPE', 'tensor', problem);
  }
  const shape = toCounted(options.shape ?? [count], count);
  return fromHost(hostArray(dtype, shape, data as ArrayLike<Scalar>).data, shape, dtype);
}

/** A shape for this many elements. */
function toCounted(given: readonly number[], count: number): number[] {
  const shape = toShape('tensor', given);
  if (sizeOf(shape) !== count) {
    throw new TensorError(
      'E_SHAPE',
      'tensor',
      `shape [${shape.join(',')}] takes ${sizeOf(shape)} elements, got ${count}`,
    );
  }
  return shape;
}

/**
 * Elements beyond which a plain array of them cannot grow in V8, which ends the process instead of
 * throwing.
 */
const mostNested = 1e8;

/** The lengths along the first element of each level; `flatten` checks that all others agree. */
function shapeOf(data: NestedData): number[] {
  const shape: number[] = [];
  const seen = new Set<unknown>();
  for (let at: NestedData | undefined = data; Array.isArray(at); at = (at as readonly NestedData[])[0]) {
    if (seen.has(at)) throw new TensorError('E_VALUE', 'tensor', 'the array contains itself');
    seen.add(at);
    shape.push(at.length);
  }
  // An inner array that stands at many places can give more elements than memory holds.
  if (sizeOf(shape) > mostNested) {
    const problem = `nested arrays hold at most ${mostNested} elements, got [${shape.join(',')}]`;
    throw new TensorError('E_VALUE', 'tensor', problem, 'a typed array and { shape }');
  }
  return shape;
}

/** The elements of nested arrays, level by level: they may nest deeper than the stack. */
function flatten(data: NestedData, shape: readonly number[]): Element[] {
  let level: readonly (NestedData | undefined)[] = [data];
  shape.forEach((size, depth) => {
    const inner: (NestedData | undefined)[] = [];
    for (const item of level) {
      if (!Array.isArray(item) || item.length !== size) {
        const seen = Array.isArray(item) ? `an array of ${item.length}` : showValue(item);
        const problem = `ragged array: expected an array of ${size} at depth ${depth}, got ${seen}`;
        throw new TensorError('E_SHAPE', 'tensor', problem);
      }
      for (const one of item as readonly NestedData[]) inner.push(one);
    }
    level = inner;
  });
  for (const item of level) if (!isElement(item)) throw noElement(item, shape.length);
  return level as Element[];
}

/** The error of what stands where an element should. */
function noElement(data: NestedData | undefined, depth: number): TensorError {
  if (Array.isArray(data)) {
    const problem = `ragged array: expected a number at depth ${depth}, got an array of ${data.length}`;
    return new TensorError('E_SHAPE', 'tensor', problem);
  }
  const hint = data instanceof Tensor ? 'clone() copies a tensor, stack([…]) joins several' : undefined;
  const expected = 'expects numbers, booleans, bigints or { re, im }, in arrays or a typed array';
  return new TensorError('E_VALUE', 'tensor', `${expected}, got ${showValue(data)}`, hint);
}

function isElement(data: NestedData | undefined): data is Element {
  if (typeof data === 'object') return isComplexNumber(data);
  return typeof data === 'number' || typeof data === 'boolean' || typeof data === 'bigint';
}

function partsOf(value: Element): Scalar[] {
  return typeof value === 'object' ? [value.re, value.im] : [Number(value), 0];
}

function realOf(op: string, value: Element, dtype: DType): Scalar {
  if (typeof value !== 'object') return typeof value === 'boolean' ? Number(value) : value;
  throw new TensorError('E_DTYPE', op, `${dtype} does not hold ${value.re} + ${value.im}i`, 'c64');
}

function kindOf(values: readonly Element[]): DType {
  const kinds = new Set(values.map((value) => typeof value));
  // Real numbers among complex ones are complex.
  if (kinds.has('object') && [...kinds].every((kind) => kind === 'object' || kind === 'number')) return 'c64';
  if (kinds.size > 1) {
    throw new TensorError('E_DTYPE', 'tensor', `mixes ${[...kinds].join(' and ')} values`, '{ dtype }');
  }
  return kinds.has('boolean') ? 'bool' : kinds.has('bigint') ? 'i64' : 'f32';
}

function constantOf(op: string, shape: readonly number[], value: number | bigint, dtype: DType): Tensor {
  const to = toShape(op, shape);
  return record([], (b) => spread(b, to, value, dtype));
}

const takesZeros = arg.takes<typeof zeros>(
  ['the shape', arg.inside()],
  ['options', arg.options<CreateOptions>(createOptions)],
);

/**
 * All 0; f32 by default.
 *
 * @example
 * sn.zeros([3], { dtype: 'f32' });
 */
export function zeros<T extends DType = 'f32'>(
  shape: readonly number[],
  options: CreateOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesZeros('zeros', shape, options);
  return constantOf('zeros', shape, 0, options.dtype ?? 'f32');
}

/**
 * All 1; f32 by default.
 *
 * @example
 * sn.ones([3], { dtype: 'f32' });
 */
export function ones<T extends DType = 'f32'>(
  shape: readonly number[],
  options: CreateOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesZeros('ones', shape, options);
  return constantOf('ones', shape, 1, options.dtype ?? 'f32');
}

/** An element: a number, a boolean, a bigint or `{ re, im }`. */
const element: arg.Kind<Element> = arg.kind('a number', (value) => isElement(value as NestedData));
const takesFull = arg.takes<typeof full>(
  ['the shape', arg.inside()],
  ['the value', element],
  ['options', arg.options<CreateOptions>(createOptions)],
);

/**
 * All `value`: f32 by default, bool for a boolean, i64 for a bigint, c64 for `{ re, im }`.
 *
 * @example
 * sn.full([2], 1, { dtype: 'f32' });
 */
export function full<E extends Element, T extends DType = HostType<E>>(
  shape: readonly number[],
  value: E,
  options: CreateOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesFull('full', shape, value, options);
  return filled('full', shape, value, options.dtype ?? kindOf([value]));
}

/** Through host memory's rules, so that the value is one of the dtype's. @internal */
export function filled(op: string, shape: readonly number[], value: Element, dtype: DType): Tensor {
  if (isComplex(dtype) && typeof value === 'object') {
    const to = toShape(op, shape);
    const own = partType(dtype);
    return record([], (b) => complex(b, spread(b, to, value.re, own), spread(b, to, value.im, own)));
  }
  const given = realOf(op, value, dtype);
  const scalar = hostArray(partType(dtype), [], [given]).data[0]!;
  return constantOf(op, shape, scalar, dtype);
}

const takesZerosLike = arg.takes<typeof zerosLike>(
  ['the operand', aTensor],
  ['options', arg.options<CreateOptions>(createOptions)],
);

/**
 * 0 in x's shape and dtype.
 *
 * @example
 * const x = sn.tensor([[1, 2], [3, 4]]);
 * sn.zerosLike(x);
 */
export function zerosLike<D extends DType, T extends DType = D>(
  x: Tensor<D>,
  options: CreateOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesZerosLike('zerosLike', x, options);
  return constantOf('zerosLike', x.shape, 0, options.dtype ?? x.dtype);
}

/**
 * 1 in x's shape and dtype.
 *
 * @example
 * const x = sn.tensor([[1, 2], [3, 4]]);
 * sn.onesLike(x);
 */
export function onesLike<D extends DType, T extends DType = D>(
  x: Tensor<D>,
  options: CreateOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesZerosLike('onesLike', x, options);
  return constantOf('onesLike', x.shape, 1, options.dtype ?? x.dtype);
}

const takesFullLike = arg.takes<typeof fullLike>(
  ['the operand', aTensor],
  ['the value', element],
  ['options', arg.options<CreateOptions>(createOptions)],
);

/**
 * `value` in x's shape and dtype.
 *
 * @example
 * const x = sn.tensor([[1, 2], [3, 4]]);
 * sn.fullLike(x, 1);
 */
export function fullLike<D extends DType, T extends DType = D>(
  x: Tensor<D>,
  value: Element,
  options: CreateOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesFullLike('fullLike', x, value, options);
  return filled('fullLike', x.shape, value, options.dtype ?? x.dtype);
}

const takesArange = arg.takes<typeof arange>(
  ['every bound', arg.finite],
  ['every bound', arg.optional(arg.finite)],
  ['every step', arg.optional(arg.finite)],
  ['options', arg.options<CreateOptions>(createOptions)],
);

/**
 * start, start + step, … up to but without `end`; `arange(n)` counts from 0. i32 if all are whole
 * numbers, else f32.
 *
 * @example
 * sn.arange(0, 4, 1, { dtype: 'f32' });
 */
export function arange<T extends DType = 'i32' | 'f32'>(
  start: number,
  end?: number,
  step: number = 1,
  options: CreateOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesArange('arange', start, end, step, options);
  const [from, to] = end === undefined ? [0, start] : [start, end];
  const count = Math.ceil((to - from) / step);
  if (step === 0 || !Number.isSafeInteger(count) || count < 0) {
    throw new TensorError('E_VALUE', 'arange', `no steps of ${step} lead from ${from} to ${to}`);
  }
  const dtype = options.dtype ?? ([from, to, step].every(Number.isInteger) ? 'i32' : 'f32');
  return record([], (b) => {
    if (dtype === 'bool' || isComplex(dtype))
      throw new TensorError('E_DTYPE', 'arange', `${dtype} cannot count`, "dtype: 'f32'");
    // Narrow integers wrap around, so that they count through negative numbers.
    const counted = isSmallInteger(dtype) ? 'i32' : wideType(dtype);
    if ((counted === 'i32' || counted === 'u32') && count - 1 > integerRange(counted)[1])
      throw new TensorError('E_VALUE', 'arange', `${counted} does not count to ${count}`, "dtype: 'i64'");
    const places = iota(b, [count], 0, counted);
    return cast(b, add(b, mul(b, places, step), from), dtype);
  });
}

const takesLinspace = arg.takes<typeof linspace>(
  ['every bound', arg.finite],
  ['every bound', arg.finite],
  ['the count', arg.count(0)],
  ['options', arg.options<CreateOptions>(createOptions)],
);

/**
 * `count` numbers from start to end, both included, equally far apart; exact at both ends.
 *
 * @example
 * sn.linspace(0, 4, 5, { dtype: 'f32' });
 */
export function linspace<T extends DType = 'f32'>(
  start: number,
  end: number,
  count: number,
  options: CreateOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesLinspace('linspace', start, end, count, options);
  const dtype = options.dtype ?? 'f32';
  // Ends of integers are integers first, as in PyTorch.
  const [first, last] = isInteger(dtype) ? [Math.trunc(start), Math.trunc(end)] : [start, end];
  const step = count > 1 ? (last - first) / (count - 1) : 0;
  return record([], (b) => {
    const compute = partType(dtype) === 'f64' ? 'f64' : 'f32';
    const place = iota(b, [count], 0, compute);
    const fromStart = add(b, mul(b, place, step), first);
    const fromEnd = sub(b, last, mul(b, sub(b, count - 1, place), step));
    return cast(b, where(b, binary(b, 'lt', place, count / 2), fromStart, fromEnd), dtype);
  });
}

const takesEye = arg.takes<typeof eye>(
  ['rows', arg.count(0)],
  ['columns', arg.optional(arg.count(0))],
  ['options', arg.options<CreateOptions>(createOptions)],
);

/**
 * 1 on the main diagonal of a [rows, columns] matrix (square by default), 0 elsewhere.
 *
 * @example
 * sn.eye(2, 2, { dtype: 'f32' });
 */
export function eye<T extends DType = 'f32'>(
  rows: number,
  columns: number = rows,
  options: CreateOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesEye('eye', rows, columns, options);
  checkShape('eye', [rows, columns]);
  return record([], (b) => {
    const shape = [rows, columns];
    return cast(b, binary(b, 'eq', iota(b, shape, 0), iota(b, shape, 1)), options.dtype ?? 'f32');
  });
}
