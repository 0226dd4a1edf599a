// Sorted elements and their places along an axis: an argSort, and a gather by it; and where values
// stand among sorted ones.

import type { DType } from '../../../ir/dtype.ts';
import { TensorError } from '../../../errors.ts';
import { cast, reshape } from '../../../ir/build.ts';
import type { Node } from '../../../ir/graph.ts';
import * as arg from '../../../ir/arguments.ts';
import { normalizeAxis, sameShape } from '../../../ir/shape.ts';
import { anOperand, aTensor } from '../../expect.ts';
import { asTensor, recordMany } from '../../record.ts';
import type { Tensor, TensorLike } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, checkInteger, checkNotComplex, checkRank, show } from '../operand.ts';
import { sliceAxis } from '../../formula/layout.ts';

export interface SortOptions {
  /** From the largest to the smallest; false by default. */
  readonly descending?: boolean;
  /** Equal elements keep their order, by default and always. */
  readonly stable?: boolean;
}

/** Rank 0 sorts as one element. */
function row(x: Tensor): readonly number[] {
  return x.rank === 0 ? [1] : x.shape;
}

const takesSort = arg.takes<typeof sort>(
  ['x', aTensor],
  ['axis', arg.inside()],
  ['options', arg.options<SortOptions>({ descending: arg.flag, stable: arg.flag })],
);

/**
 * The elements along an axis in order, and their i32 positions; equal ones keep their order, NaN
 * counts as the greatest.
 *
 * @method
 * @example
 * const x = sn.tensor([[3, 1, 2], [1, 5, 1]]);
 * sn.sort(x, 1);
 */
export function sort<D extends DType>(
  x: Tensor<D>,
  axis = -1,
  options: SortOptions = {},
): [values: Tensor<D>, indices: Tensor<'i32'>] {
  takesSort('sort', x, axis, options);
  return sorted('sort', x, axis, options.descending === true, undefined);
}

/**
 * The i32 positions of the elements along an axis in order.
 *
 * @method
 * @example
 * const x = sn.tensor([[3, 1, 2], [1, 5, 1]]);
 * sn.argsort(x, 1);
 */
export function argsort(x: Tensor, axis = -1, options: SortOptions = {}): Tensor<'i32'> {
  takesSort('argsort', x, axis, options);
  checkNotComplex('argsort', x);
  const at = normalizeAxis('argsort', axis, Math.max(1, x.rank));
  return apply([x], (b, node) => {
    const order = formula.orderOf(b, reshape(b, node, row(x)), at, options.descending === true);
    return reshape(b, order, x.shape);
  });
}

const takesMsort = arg.takes<typeof msort>(['the operand', aTensor]);

/**
 * The elements along the first axis in ascending order.
 *
 * @jax jnp.sort
 * @example
 * const x = sn.tensor([[3, 1, 2], [1, 5, 1]]);
 * sn.msort(x);
 */
export function msort<D extends DType>(x: Tensor<D>): Tensor<D> {
  takesMsort('msort', x);
  return sorted('msort', x, 0, false, undefined)[0];
}

export interface TopkOptions {
  /** The largest (default) or the smallest. */
  readonly largest?: boolean;
  /** Best first, by default and always. */
  readonly sorted?: boolean;
}

const takesTopk = arg.takes<typeof topk>(
  ['x', aTensor],
  ['k', arg.count(0)],
  ['axis', arg.inside()],
  ['options', arg.options<TopkOptions>({ largest: arg.flag, sorted: arg.flag })],
);

/**
 * The k largest (or smallest) elements along an axis, best first, and their i32 positions.
 *
 * @method
 * @jax lax.top_k, jnp.top_k
 * @example
 * const x = sn.tensor([[3, 1, 2], [1, 5, 1]]);
 * sn.topk(x, 2, 1);
 */
export function topk<D extends DType>(
  x: Tensor<D>,
  k: number,
  axis = -1,
  options: TopkOptions = {},
): [values: Tensor<D>, indices: Tensor<'i32'>] {
  takesTopk('topk', x, k, axis, options);
  const size = x.shape[normalizeAxis('topk', axis, Math.max(1, x.rank))] ?? 1;
  if (k > size) {
    throw new TensorError('E_VALUE', 'topk', `cannot choose ${k} of ${size} elements: ${show(x)}`);
  }
  return sorted('topk', x, axis, options.largest !== false, k);
}

function sorted(
  op: string,
  x: Tensor,
  axis: number,
  descending: boolean,
  count: number | undefined,
): [values: Tensor, indices: Tensor] {
  checkNotComplex(op, x);
  const at = normalizeAxis(op, axis, Math.max(1, x.rank));
  const [values, indices] = recordMany([x], (b, [node]) => {
    const line = reshape(b, node!, row(x));
    const order = formula.orderOf(b, line, at, descending);
    const places = count === undefined ? order : sliceAxis(b, order, at, 0, count);
    const chosen = b.add('gather', [line, places], { axis: at }) as Node;
    return x.rank === 0 && count !== 0
      ? [chosen, places].map((result) => reshape(b, result, []))
      : [chosen, places];
  });
  return [values!, indices!];
}

export interface SearchsortedOptions {
  /** Counts boundaries that equal the value as well; false by default. */
  readonly right?: boolean;
  /**
   * The positions that put the boundaries in order, where they are not; by default they are in order.
   */
  readonly sorter?: Tensor;
}

const takesSearchsorted = arg.takes<typeof searchsorted>(
  ['the boundaries', aTensor],
  ['the values', anOperand],
  ['options', arg.options<SearchsortedOptions>({ right: arg.flag, sorter: aTensor })],
);

/**
 * For each value, how many of the ascending boundaries lie below it (i32), by a binary search:
 * where it would be inserted. NaN is last. One line of boundaries serves all values; several lines
 * [.., n] serve values [.., m], a line each.
 *
 * @example
 * const x = sn.tensor([[3, 1, 2], [1, 5, 1]]);
 * const sorted = sn.tensor([1, 2, 4]);
 * sn.searchsorted(sorted, x);
 */
export function searchsorted(
  boundaries: Tensor,
  values: TensorLike,
  options: SearchsortedOptions = {},
): Tensor<'i32'> {
  takesSearchsorted('searchsorted', boundaries, values, options);
  const { right = false, sorter } = options;
  if (sorter !== undefined && !sameShape(sorter.shape, boundaries.shape)) {
    const problem = `the sorter must have the boundaries' shape: ${show(boundaries, sorter)}`;
    throw new TensorError('E_SHAPE', 'searchsorted', problem);
  }
  const ordered = sorter === undefined ? boundaries : alongLast(boundaries, sorter);
  return searched('searchsorted', ordered, values, right);
}

/** Elements in the order of their positions along the last axis. */
function alongLast(x: Tensor, order: Tensor): Tensor {
  checkInteger('searchsorted', 'the sorter', order);
  return apply([x, order], (b, node, places) => {
    const index = formula.narrowIndex(b, places);
    return b.add('gather', [node, index], { axis: Math.max(0, x.rank - 1) }) as Node;
  });
}

const takesBucketize = arg.takes<typeof bucketize>(
  ['the values', anOperand],
  ['the boundaries', aTensor],
  ['options', arg.options<BucketizeOptions>({ right: arg.flag })],
);

export interface BucketizeOptions {
  /** Counts boundaries that equal the value as well; false by default. */
  readonly right?: boolean;
}

/**
 * `searchsorted` with one line of boundaries, and the values first.
 *
 * @jax jnp.searchsorted
 * @example
 * const x = sn.tensor([[3, 1, 2], [1, 5, 1]]);
 * const sorted = sn.tensor([1, 2, 4]);
 * sn.bucketize(x, sorted);
 */
export function bucketize(x: TensorLike, boundaries: Tensor, options: BucketizeOptions = {}): Tensor<'i32'> {
  takesBucketize('bucketize', x, boundaries, options);
  checkRank('bucketize', 'the boundaries', boundaries, 1);
  return searched('bucketize', boundaries, x, options.right === true);
}

function searched(op: string, boundaries: Tensor, given: TensorLike, right: boolean): Tensor {
  checkNotComplex(op, boundaries, given);
  const values = asTensor(given, boundaries.dtype, op);
  const lead = boundaries.shape.slice(0, -1);
  const isShared = boundaries.rank === 1;
  if (boundaries.rank === 0 || (!isShared && !sameShape(values.shape.slice(0, -1), lead))) {
    const problem = `expects boundaries [n], or [..,n] for values [..,m]: ${show(boundaries, values)}`;
    throw new TensorError('E_SHAPE', op, problem);
  }
  if (!values.weak && boundaries.dtype !== values.dtype) {
    throw new TensorError('E_DTYPE', op, `both must have one dtype: ${show(boundaries, values)}`);
  }
  return apply([boundaries, values], (b, table, node) => {
    const wanted = cast(b, node, boundaries.dtype);
    const line = isShared ? reshape(b, wanted, [values.size]) : wanted;
    return reshape(b, b.add('searchSorted', [table, line], { right }) as Node, values.shape);
  });
}
