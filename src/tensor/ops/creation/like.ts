// Tensors made in the dtype or the place of another one, spaced numbers, and places of triangles.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { isFloat, isInteger, type DType } from '../../../ir/dtype.ts';
import { anOperand, aTensor } from '../../expect.ts';
import { fromHost } from '../../record.ts';
import { Tensor, type TensorLike } from '../../tensor.ts';
import { checkHeld, inType } from '../number.ts';
import { fit, show } from '../operand.ts';
import { createOptions, filled, linspace, zerosLike, type CreateOptions } from './creation.ts';
import { pow } from '../elementwise/arithmetic.ts';
import { cast } from '../elementwise/cast.ts';
import { expand } from '../shape/view.ts';

const takesShape = arg.takes<typeof empty>(
  ['the shape', arg.inside()],
  ['options', arg.options<CreateOptions>(createOptions)],
);

/**
 * A tensor whose elements do not matter: they are 0.
 *
 * @example
 * sn.empty([3], { dtype: 'f32' });
 */
export function empty<T extends DType = 'f32'>(
  shape: readonly number[],
  options: CreateOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesShape('empty', shape, options);
  return filled('empty', shape, 0, options.dtype ?? 'f32');
}

const takesLike = arg.takes<typeof emptyLike>(
  ['x', aTensor],
  ['options', arg.options<CreateOptions>(createOptions)],
);

/**
 * A tensor in x's shape and dtype whose elements do not matter: they are 0.
 *
 * @example
 * const x = sn.tensor([[1, 2], [3, 4]]);
 * sn.emptyLike(x);
 */
export function emptyLike<D extends DType, T extends DType = D>(
  x: Tensor<D>,
  options: CreateOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesLike('emptyLike', x, options);
  return zerosLike(x, options);
}

const takesNew = arg.takes<typeof newZeros>(
  ['x', aTensor],
  ['the shape', arg.inside()],
  ['options', arg.options<CreateOptions>(createOptions)],
);

/**
 * All 0 in another shape and x's dtype.
 *
 * @example
 * const x = sn.tensor([[1, 2], [3, 4]]);
 * sn.newZeros(x, [2]);
 */
export function newZeros<D extends DType, T extends DType = D>(
  x: Tensor<D>,
  shape: readonly number[],
  options: CreateOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesNew('newZeros', x, shape, options);
  return filled('newZeros', shape, 0, options.dtype ?? x.dtype);
}

/**
 * All 1 in another shape and x's dtype.
 *
 * @example
 * const x = sn.tensor([[1, 2], [3, 4]]);
 * sn.newOnes(x, [2]);
 */
export function newOnes<D extends DType, T extends DType = D>(
  x: Tensor<D>,
  shape: readonly number[],
  options: CreateOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesNew('newOnes', x, shape, options);
  return filled('newOnes', shape, 1, options.dtype ?? x.dtype);
}

const element: arg.Kind<number | boolean | bigint> = arg.kind('a number', (value) =>
  ['number', 'boolean', 'bigint'].includes(typeof value),
);
const takesNewFull = arg.takes<typeof newFull>(
  ['x', aTensor],
  ['the shape', arg.inside()],
  ['the value', element],
  ['options', arg.options<CreateOptions>(createOptions)],
);

/**
 * All `value` in another shape and x's dtype.
 *
 * @example
 * const x = sn.tensor([[1, 2], [3, 4]]);
 * sn.newFull(x, [2], 1);
 */
export function newFull<D extends DType, T extends DType = D>(
  x: Tensor<D>,
  shape: readonly number[],
  value: number | boolean | bigint,
  options: CreateOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesNewFull('newFull', x, shape, value, options);
  return filled('newFull', shape, value, options.dtype ?? x.dtype);
}

const takesFill = arg.takes<typeof fill>(['x', aTensor], ['the value', anOperand]);

/**
 * `value`, a number or a rank-0 tensor, in x's shape and dtype.
 *
 * @example
 * const x = sn.tensor([[1, 2], [3, 4]]);
 * sn.fill(x, 1);
 */
export function fill<D extends DType>(x: Tensor<D>, value: TensorLike): Tensor<D> {
  takesFill('fill', x, value);
  if (!(value instanceof Tensor)) {
    checkHeld('fill', value, x.dtype);
    return filled('fill', x.shape, value, x.dtype);
  }
  if (value.rank !== 0)
    throw new TensorError('E_SHAPE', 'fill', `the value must have rank 0: ${show(x, value)}`);
  const like: Tensor = cast(inType('fill', value, x.dtype), x.dtype);
  return expand(like, x.shape);
}

const takesLogspace = arg.takes<typeof logspace>(
  ['every bound', arg.finite],
  ['every bound', arg.finite],
  ['the count', arg.count(0)],
  ['the base', arg.optional(arg.number)],
  ['options', arg.options<CreateOptions>(createOptions)],
);

/**
 * base^start to base^end in `count` steps of equal ratio.
 *
 * @example
 * sn.logspace(0, 2, 3, 2, { dtype: 'f32' });
 */
export function logspace<T extends DType = 'f32'>(
  start: number,
  end: number,
  count: number,
  base = 10,
  options: CreateOptions<T> = {},
): Tensor<NoInfer<T>> {
  takesLogspace('logspace', start, end, count, base, options);
  const { dtype = 'f32' } = options;
  // Exponents of integers are integers at both ends, as in PyTorch.
  const [first, last] = isInteger(dtype) ? [Math.trunc(start), Math.trunc(end)] : [start, end];
  const compute: DType = dtype === 'f64' ? 'f64' : 'f32';
  const exponents = linspace(first, last, count, { dtype: compute });
  const values = pow(
    fit(
      'logspace',
      [base],
      () => compute,
      (_, node) => node,
    ),
    exponents,
  );
  const result: Tensor = isFloat(dtype) && dtype === compute ? values : cast(values, dtype);
  return result;
}

export interface TriangleOptions {
  /** Which diagonal ends the triangle: 0 the main one, 1 the one above it, −1 below; 0 by default. */
  readonly offset?: number;
  /** i32 by default. */
  readonly dtype?: 'i32' | 'i64';
}

const takesTriangle = arg.takes<typeof trilIndices>(
  ['rows', arg.count(0)],
  ['columns', arg.optional(arg.count(0))],
  ['options', arg.options<TriangleOptions>({ offset: arg.integer, dtype: arg.oneOf('i32', 'i64') })],
);

/**
 * Row and column numbers of a matrix's lower triangle, as [2, n].
 *
 * @example
 * sn.trilIndices(2, 2, { dtype: 'i32' });
 */
export function trilIndices(rows: number, columns: number = rows, options: TriangleOptions = {}): Tensor {
  takesTriangle('trilIndices', rows, columns, options);
  const { offset = 0 } = options;
  return places(rows, columns, options, (row) => [0, Math.min(columns, row + offset + 1)]);
}

/**
 * Row and column numbers of a matrix's upper triangle, as [2, n].
 *
 * @example
 * sn.triuIndices(2, 2, { dtype: 'i32' });
 */
export function triuIndices(rows: number, columns: number = rows, options: TriangleOptions = {}): Tensor {
  takesTriangle('triuIndices', rows, columns, options);
  const { offset = 0 } = options;
  return places(rows, columns, options, (row) => [Math.max(0, row + offset), columns]);
}

function places(
  rows: number,
  columns: number,
  options: TriangleOptions,
  range: (row: number) => [start: number, stop: number],
): Tensor {
  const [down, across]: [number[], number[]] = [[], []];
  for (let row = 0; row < rows; row++) {
    const [start, stop] = range(row);
    for (let column = start; column < Math.min(stop, columns); column++) {
      down.push(row);
      across.push(column);
    }
  }
  const indices = fromHost(Int32Array.from([...down, ...across]), [2, down.length], 'i32');
  return options.dtype === 'i64' ? cast(indices, 'i64') : indices;
}
