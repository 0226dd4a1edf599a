// Greatest and least elements along axes: their values, where they stand, and those that a mask
// lets through.

import { TensorError } from '../../../errors.ts';
import * as arg from '../../../ir/arguments.ts';
import { cast, fullLike, reduceKeep, reshape, where } from '../../../ir/build.ts';
import { type DType, integerRange, isFloat } from '../../../ir/dtype.ts';
import type { GraphBuilder, Node } from '../../../ir/graph.ts';
import { normalizeAxes, normalizeAxis } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import { recordMany } from '../../record.ts';
import type { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import {
  apply,
  checkMaskType,
  checkNotComplex,
  checkNotEmpty,
  checkReal,
  commonShape,
  show,
} from '../operand.ts';
import {
  type Axes,
  axesOf,
  type ReduceOptions,
  reduceOptions,
  reduction,
  dropKeptAxes,
  takesReduce,
} from './axes.ts';

function extremum(
  op: string,
  monoid: 'min' | 'max',
  x: Tensor,
  axes: Axes | undefined,
  options: ReduceOptions,
): Tensor {
  checkNotComplex(op, x);
  const list = axesOf(op, axes, x);
  checkNotEmpty(op, x, list);
  return reduction(op, x, axes, options, (b, node) =>
    reduceKeep(b, node.dtype === 'bool' ? (monoid === 'max' ? 'or' : 'and') : monoid, node, list),
  );
}

/**
 * The largest elements; NaN wins. Ties share the gradient.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.amax(x, 1);
 */
export function amax<D extends DType>(x: Tensor<D>, axes?: Axes, options: ReduceOptions = {}): Tensor<D> {
  takesReduce('amax', x, axes, options);
  return extremum('amax', 'max', x, axes, options);
}

/**
 * The smallest elements; NaN wins. Ties share the gradient.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.amin(x, 1);
 */
export function amin<D extends DType>(x: Tensor<D>, axes?: Axes, options: ReduceOptions = {}): Tensor<D> {
  takesReduce('amin', x, axes, options);
  return extremum('amin', 'min', x, axes, options);
}

function maskedExtremum(
  op: string,
  monoid: 'min' | 'max',
  x: Tensor,
  mask: Tensor,
  axes: Axes | undefined,
  options: ReduceOptions,
): Tensor {
  checkMaskType(op, mask);
  checkReal(op, x);
  if (commonShape(op, [x, mask]).some((dim, axis) => dim !== x.shape[axis])) {
    throw new TensorError('E_SHAPE', op, `the mask must broadcast to x: ${show(x, mask)}`);
  }
  const list = axesOf(op, axes, x);
  return apply([x, mask], (b, node, kept) => {
    const nothing = fullLike(b, node, identityOf(monoid, x.dtype));
    const masked = where(b, formula.spreadTo(b, kept, node), node, nothing);
    return dropKeptAxes(b, reduceKeep(b, monoid, masked, list), list, options.keepdim === true);
  });
}

/** What an extremum over nothing is: ±∞, or the end of an integer's range. */
function identityOf(monoid: 'min' | 'max', dtype: DType): number | bigint {
  if (isFloat(dtype)) return monoid === 'min' ? Infinity : -Infinity;
  return integerRange(dtype)[monoid === 'min' ? 1 : 0];
}

const takesMaskedMax = arg.takes<typeof maskedMax>(
  ['the operand', aTensor],
  ['the mask', aTensor],
  ['axes', arg.inside()],
  ['options', arg.options<ReduceOptions>(reduceOptions)],
);

/**
 * The largest elements where the mask holds, −∞ (or the least integer) where it never does.
 *
 * @family Masked operations
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.maskedMax(x, mask, 1);
 */
export function maskedMax<D extends DType>(
  x: Tensor<D>,
  mask: Tensor,
  axes?: Axes,
  options: ReduceOptions = {},
): Tensor<D> {
  takesMaskedMax('maskedMax', x, mask, axes, options);
  return maskedExtremum('maskedMax', 'max', x, mask, axes, options);
}

/**
 * The smallest elements where the mask holds, ∞ (or the largest integer) where it never does.
 *
 * @family Masked operations
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * const mask = sn.tensor([[true, false, true], [true, true, false]], { dtype: 'bool' });
 * sn.maskedMin(x, mask, 1);
 */
export function maskedMin<D extends DType>(
  x: Tensor<D>,
  mask: Tensor,
  axes?: Axes,
  options: ReduceOptions = {},
): Tensor<D> {
  takesMaskedMax('maskedMin', x, mask, axes, options);
  return maskedExtremum('maskedMin', 'min', x, mask, axes, options);
}

/**
 * The largest elements, as `amax`; for their places too see `maxWithIndices`.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.max(x, 1);
 */
export function max<D extends DType>(x: Tensor<D>, axes?: Axes, options: ReduceOptions = {}): Tensor<D> {
  takesReduce('max', x, axes, options);
  return extremum('max', 'max', x, axes, options);
}

/**
 * The smallest elements, as `amin`; for their places too see `minWithIndices`.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.min(x, 1);
 */
export function min<D extends DType>(x: Tensor<D>, axes?: Axes, options: ReduceOptions = {}): Tensor<D> {
  takesReduce('min', x, axes, options);
  return extremum('min', 'min', x, axes, options);
}

/** i32 positions of the first extremum along `axis`; bool is compared as numbers. */
function placeOf(b: GraphBuilder, monoid: 'min' | 'max', x: Node, axis: number): Node {
  const numbers = x.dtype === 'bool' ? cast(b, x, 'i32') : x;
  return b.add('argReduce', [numbers], { monoid, axis }) as Node;
}

function place(
  op: string,
  monoid: 'min' | 'max',
  x: Tensor,
  axis: number | undefined,
  keepdim: boolean,
): Tensor {
  checkNotComplex(op, x);
  const at = axis === undefined ? undefined : normalizeAxis(op, axis, Math.max(1, x.rank));
  checkNotEmpty(op, x, at === undefined || x.rank === 0 ? normalizeAxes(op, undefined, x.rank) : [at]);
  return apply([x], (b, node) => {
    if (at === undefined || x.rank === 0) {
      const found = placeOf(b, monoid, reshape(b, node, [x.size]), 0);
      return keepdim
        ? reshape(
            b,
            found,
            x.shape.map(() => 1),
          )
        : found;
    }
    const found = placeOf(b, monoid, node, at);
    return keepdim
      ? reshape(
          b,
          found,
          x.shape.map((dim, i) => (i === at ? 1 : dim)),
        )
      : found;
  });
}

const takesArgmax = arg.takes<typeof argmax>(
  ['the operand', aTensor],
  ['axis', arg.inside()],
  ['options', arg.options<ReduceOptions>(reduceOptions)],
);

/**
 * i32 position of the largest element along `axis`, or in C-order without one; the first of equals,
 * NaN first of all.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.argmax(x, 1);
 */
export function argmax(x: Tensor, axis?: number, options: ReduceOptions = {}): Tensor<'i32'> {
  takesArgmax('argmax', x, axis, options);
  return place('argmax', 'max', x, axis, options.keepdim === true);
}

/**
 * i32 position of the smallest element along `axis`, or in C-order without one; the first of
 * equals, NaN first of all.
 *
 * @method
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.argmin(x, 1);
 */
export function argmin(x: Tensor, axis?: number, options: ReduceOptions = {}): Tensor<'i32'> {
  takesArgmax('argmin', x, axis, options);
  return place('argmin', 'min', x, axis, options.keepdim === true);
}

function withIndices(
  op: string,
  monoid: 'min' | 'max',
  x: Tensor,
  axis: number,
  options: ReduceOptions,
): [Tensor, Tensor] {
  checkNotComplex(op, x);
  const at = normalizeAxis(op, axis, Math.max(1, x.rank));
  checkNotEmpty(op, x, [at]);
  const sizes = x.rank === 0 ? [1] : x.shape;
  const [values, indices] = recordMany([x], (b, [node]) => {
    const row = reshape(b, node!, sizes);
    const kept = reshape(
      b,
      placeOf(b, monoid, row, at),
      sizes.map((dim, i) => (i === at ? 1 : dim)),
    );
    const chosen = b.add('gather', [row, kept], { axis: at }) as Node;
    if (x.rank === 0) return [chosen, kept].map((result) => reshape(b, result, []));
    return [chosen, kept].map((result) => dropKeptAxes(b, result, [at], options.keepdim === true));
  });
  return [values!, indices!];
}

const takesMaxWithIndices = arg.takes<typeof maxWithIndices>(
  ['the operand', aTensor],
  ['axis', arg.inside()],
  ['options', arg.options<ReduceOptions>(reduceOptions)],
);

/**
 * The largest elements along `axis` and their i32 places (the first of equals); the gradient goes
 * to those places.
 *
 * @method
 * @torch torch.max
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.maxWithIndices(x, 1);
 */
export function maxWithIndices<D extends DType>(
  x: Tensor<D>,
  axis: number,
  options: ReduceOptions = {},
): [values: Tensor<D>, indices: Tensor<'i32'>] {
  takesMaxWithIndices('maxWithIndices', x, axis, options);
  return withIndices('maxWithIndices', 'max', x, axis, options);
}

/**
 * The smallest elements along `axis` and their i32 places (the first of equals); the gradient goes
 * to those places.
 *
 * @method
 * @torch torch.min
 * @example
 * const x = sn.tensor([[1, -2, 3], [0.5, 4, -1]]);
 * sn.minWithIndices(x, 1);
 */
export function minWithIndices<D extends DType>(
  x: Tensor<D>,
  axis: number,
  options: ReduceOptions = {},
): [values: Tensor<D>, indices: Tensor<'i32'>] {
  takesMaxWithIndices('minWithIndices', x, axis, options);
  return withIndices('minWithIndices', 'min', x, axis, options);
}
