// Statistics by order: medians, quantiles, the k-th smallest, the most frequent. All sort a line
// once and read from it, so a gradient goes to the elements that were read. NaN sorts last.

import { TensorError } from '../../../errors.ts';
import type { CustomRule } from '../../../autograd/custom.ts';
import * as arg from '../../../ir/arguments.ts';
import {
  add,
  binary,
  broadcast,
  cast,
  constant,
  div,
  full,
  fullLike,
  mul,
  permute,
  reduce,
  reduceKeep,
  reshape,
  sub,
  unary,
  where,
} from '../../../ir/build.ts';
import { isFloat, type DType } from '../../../ir/dtype.ts';
import { dims, type GraphBuilder, type Node } from '../../../ir/graph.ts';
import { normalizeAxis } from '../../../ir/shape.ts';
import { aTensor } from '../../expect.ts';
import { asTensor, record, recordMany } from '../../record.ts';
import { Tensor } from '../../tensor.ts';
import * as formula from '../../formula/elementwise.ts';
import { apply, checkFloat, checkNotComplex, checkNotEmpty, show } from '../operand.ts';
import { reduceOptions, type ReduceOptions } from '../reduce/axes.ts';
import { concat, sliceAxis } from '../../formula/layout.ts';

/** A line of a tensor, and the shape of results that keep its axis. */
interface Lines {
  readonly axis: number;
  readonly kept: readonly number[];
  readonly left: readonly number[];
}

/** The lines along an axis; rank 0 is a line of one element. */
function linesOf(op: string, x: Tensor, axis: number, keepdim: boolean): Lines {
  checkNotComplex(op, x);
  const shape = x.rank === 0 ? [1] : x.shape;
  const at = normalizeAxis(op, axis, shape.length);
  if (shape[at] === 0) checkNotEmpty(op, x, [at]);
  const left = x.rank === 0 ? [] : keepdim ? shape.with(at, 1) : shape.toSpliced(at, 1);
  return { axis: at, kept: shape.with(at, 1), left };
}

/** The element at each line's place, i32 with its axis kept, and the place. */
function chosen(b: GraphBuilder, line: Node, place: Node, { axis, left }: Lines): [Node, Node] {
  const value = b.add('gather', [line, place], { axis }) as Node;
  return [reshape(b, value, left), reshape(b, place, left)];
}

const lineOf = (b: GraphBuilder, x: Node): Node => (x.shape.length === 0 ? reshape(b, x, [1]) : x);

/** How many elements of each line are no NaN: i32, the axis kept. */
function countNumbers(b: GraphBuilder, line: Node, axis: number): Node {
  return reduceKeep(b, 'sum', cast(b, unary(b, 'not', formula.isNan(b, line)), 'i32'), [axis]);
}

const takesKth = arg.takes<typeof kthvalue>(
  ['the operand', aTensor],
  ['k', arg.count(1)],
  ['axis', arg.inside()],
  ['options', arg.options<ReduceOptions>(reduceOptions)],
);

/**
 * The k-th smallest elements along an axis, counted from 1, and their i32 places.
 *
 * @example
 * const x = sn.tensor([[3, 1, 2], [1, 5, 1]]);
 * sn.kthvalue(x, 2, 1);
 */
export function kthvalue<D extends DType>(
  x: Tensor<D>,
  k: number,
  axis = -1,
  options: ReduceOptions = {},
): [values: Tensor<D>, indices: Tensor<'i32'>] {
  takesKth('kthvalue', x, k, axis, options);
  const lines = linesOf('kthvalue', x, axis, options.keepdim === true);
  const size = x.shape[lines.axis] ?? 1;
  if (k > size)
    throw new TensorError('E_VALUE', 'kthvalue', `there is no element ${k} of ${size}: ${show(x)}`);
  const [values, indices] = recordMany([x], (b, [node]) => {
    const line = lineOf(b, node!);
    const order = formula.orderOf(b, line, lines.axis, false);
    return chosen(b, line, sliceAxis(b, order, lines.axis, k - 1, 1), lines);
  });
  return [values!, indices!];
}

/** The place of each line's lower median; of NaN where one is there and `ignoring` is false. */
function medianPlace(b: GraphBuilder, line: Node, axis: number, ignoring: boolean): Node {
  const order = formula.orderOf(b, line, axis, false);
  const size = dims(line)[axis]!;
  if (!isFloat(line.dtype)) return sliceAxis(b, order, axis, Math.floor((size - 1) / 2), 1);
  const numbers = countNumbers(b, line, axis);
  const middle = binary(b, 'max', binary(b, 'div', sub(b, numbers, 1), 2), 0);
  const spoilt = binary(b, 'lt', numbers, size);
  const rank = ignoring ? middle : where(b, spoilt, numbers, middle);
  return b.add('gather', [order, rank], { axis }) as Node;
}

function medians(
  op: string,
  x: Tensor,
  axis: number,
  options: ReduceOptions,
  ignoring: boolean,
): [Tensor, Tensor] {
  const lines = linesOf(op, x, axis, options.keepdim === true);
  const [values, indices] = recordMany([x], (b, [node]) => {
    const line = lineOf(b, node!);
    return chosen(b, line, medianPlace(b, line, lines.axis, ignoring), lines);
  });
  return [values!, indices!];
}

/** The median of all elements, whose gradient equal elements share. */
function medianOfAll(op: string, x: Tensor, ignoring: boolean): Tensor {
  checkNotComplex(op, x);
  if (x.size === 0) return apply([x], (b) => constant(b, isFloat(x.dtype) ? NaN : 0, x.dtype));
  return apply([x], (b, node) => {
    const line = reshape(b, node, [x.size]);
    const place = medianPlace(b, line, 0, ignoring);
    const value = reshape(b, b.add('gather', [line, place], { axis: 0 }) as Node, []);
    return isFloat(x.dtype) ? formula.withRule(b, value, [node], sharedRule) : value;
  });
}

/** Elements that equal the result, or are NaN as it is, get an equal share. */
const sharedRule: CustomRule = (b, [x], value, g) => {
  const spread = formula.spreadTo(b, value, x!);
  const both = binary(b, 'and', formula.isNan(b, x!), formula.isNan(b, spread));
  const holds = binary(b, 'or', binary(b, 'eq', x!, spread), both);
  const axes = dims(x!).map((_, axis) => axis);
  const share = div(b, g, reduce(b, 'sum', cast(b, holds, x!.dtype), axes));
  return [where(b, holds, formula.spreadTo(b, share, x!), fullLike(b, x!, 0))];
};

const takesMedian = arg.takes<typeof median>(
  ['the operand', aTensor],
  ['axis', arg.optional(arg.integer)],
  ['options', arg.options<ReduceOptions>(reduceOptions)],
);
const takesMedianWithIndices = arg.takes<typeof medianWithIndices>(
  ['the operand', aTensor],
  ['axis', arg.inside()],
  ['options', arg.options<ReduceOptions>(reduceOptions)],
);

/**
 * The lower of the middle elements, along an axis or of all; NaN where there is one.
 *
 * @jax none
 * @example
 * const x = sn.tensor([[3, 1, 2], [1, 5, 1]]);
 * sn.median(x, 1);
 */
export function median<D extends DType>(x: Tensor<D>, axis?: number, options: ReduceOptions = {}): Tensor<D> {
  takesMedian('median', x, axis, options);
  return axis === undefined ? medianOfAll('median', x, false) : medians('median', x, axis, options, false)[0];
}

/**
 * The lower of the middle elements along an axis, and their i32 places.
 *
 * @torch torch.median
 * @example
 * const x = sn.tensor([[3, 1, 2], [1, 5, 1]]);
 * sn.medianWithIndices(x, 1);
 */
export function medianWithIndices<D extends DType>(
  x: Tensor<D>,
  axis: number,
  options: ReduceOptions = {},
): [values: Tensor<D>, indices: Tensor<'i32'>] {
  takesMedianWithIndices('medianWithIndices', x, axis, options);
  return medians('medianWithIndices', x, axis, options, false);
}

/**
 * As `median`, of the elements that are no NaN.
 *
 * @jax none
 * @example
 * const gap = sn.tensor([[1, NaN, 3], [0.5, 4, NaN]]);
 * sn.nanmedian(gap, 1);
 */
export function nanmedian(x: Tensor, axis?: number, options: ReduceOptions = {}): Tensor {
  takesMedian('nanmedian', x, axis, options);
  if (axis === undefined) return medianOfAll('nanmedian', x, true);
  return medians('nanmedian', x, axis, options, true)[0];
}

/**
 * As `medianWithIndices`, of the elements that are no NaN.
 *
 * @torch torch.nanmedian
 * @example
 * const gap = sn.tensor([[1, NaN, 3], [0.5, 4, NaN]]);
 * sn.nanmedianWithIndices(gap, 1);
 */
export function nanmedianWithIndices(
  x: Tensor,
  axis: number,
  options: ReduceOptions = {},
): [values: Tensor, indices: Tensor] {
  takesMedianWithIndices('nanmedianWithIndices', x, axis, options);
  return medians('nanmedianWithIndices', x, axis, options, true);
}

const takesMode = arg.takes<typeof mode>(
  ['the operand', aTensor],
  ['axis', arg.inside()],
  ['options', arg.options<ReduceOptions>(reduceOptions)],
);

/**
 * The most frequent elements along an axis, the smallest of several, and where each stands last (i32).
 *
 * @jax jax.scipy.stats.mode
 * @example
 * const x = sn.tensor([[3, 1, 2], [1, 5, 1]]);
 * sn.mode(x, 1);
 */
export function mode<D extends DType>(
  x: Tensor<D>,
  axis = -1,
  options: ReduceOptions = {},
): [values: Tensor<D>, indices: Tensor<'i32'>] {
  takesMode('mode', x, axis, options);
  const lines = linesOf('mode', x, axis, options.keepdim === true);
  const [values, indices] = recordMany([x], (b, [node]) => {
    const line = lineOf(b, node!);
    const fixed = formula.stopGradient(b, line);
    const order = formula.orderOf(b, fixed, lines.axis, false);
    const sorted = b.add('gather', [fixed, order], { axis: lines.axis }) as Node;
    const length = runLengths(b, sorted, lines.axis);
    // A run is as long as it gets at its end: the first place of the greatest length ends the run.
    const last = b.add('argReduce', [length], { monoid: 'max', axis: lines.axis }) as Node;
    const place = b.add('gather', [order, reshape(b, last, lines.kept)], { axis: lines.axis }) as Node;
    return chosen(b, line, place, lines);
  });
  return [values!, indices!];
}

/** For each element of sorted lines how many of its like there are up to it: i32. */
function runLengths(b: GraphBuilder, sorted: Node, axis: number): Node {
  const shape = dims(sorted);
  const place = formula.iota(b, shape, axis);
  const size = shape[axis]!;
  const [later, earlier] = [1, 0].map((start) => sliceAxis(b, sorted, axis, start, size - 1)) as [Node, Node];
  const first = full(b, shape.with(axis, 1), 1, 'bool');
  const begins = concat(b, [first, binary(b, 'ne', later, earlier)], axis);
  const start = b.add('scan', [where(b, begins, place, fullLike(b, place, 0))], {
    monoid: 'max',
    axis,
    reverse: false,
    exclusive: false,
  }) as Node;
  return sub(b, place, start);
}

/** What lies between two neighbours in order. */
export type Interpolation = 'linear' | 'lower' | 'higher' | 'midpoint' | 'nearest';

export interface QuantileOptions extends ReduceOptions {
  /** Between two neighbours: by distance (`linear`, the default), one of them, or half way. */
  readonly interpolation?: Interpolation;
}

const quantileOptions = arg.options<QuantileOptions>({
  ...reduceOptions,
  interpolation: arg.oneOf('linear', 'lower', 'higher', 'midpoint', 'nearest'),
});
const takesQuantile = arg.takes<typeof quantile>(
  ['the operand', aTensor],
  ['q', arg.either(aTensor, arg.share)],
  ['axis', arg.optional(arg.integer)],
  ['options', quantileOptions],
);

function quantiles(
  op: string,
  x: Tensor,
  q: number | Tensor,
  axis: number | undefined,
  options: QuantileOptions,
  ignoring: boolean,
): Tensor {
  checkFloat(op, x);
  const share = asTensor(q, x.dtype, op);
  if (share.rank > 1) throw new TensorError('E_SHAPE', op, `q must have rank 0 or 1: ${show(share)}`);
  if (q instanceof Tensor && q.dtype !== x.dtype)
    throw new TensorError('E_DTYPE', op, `x and q must have one dtype: ${show(x, q)}`);
  const { keepdim = false, interpolation = 'linear' } = options;
  const shape = axis === undefined ? [x.size] : x.rank === 0 ? [1] : x.shape;
  const at = axis === undefined ? 0 : normalizeAxis(op, axis, shape.length);
  const size = shape[at]!;
  if (size === 0) checkNotEmpty(op, x, axis === undefined ? x.shape.map((_, i) => i) : [at]);
  const ones = x.shape.map(() => 1);
  const whole = axis === undefined || x.rank === 0;
  const left = whole ? (keepdim ? ones : []) : keepdim ? shape.with(at, 1) : shape.toSpliced(at, 1);
  return record([x, share], (b, [node, shares]) => {
    const wide = cast(b, reshape(b, node!, shape), formula.wideType(x.dtype));
    const asked = reshape(b, cast(b, shares!, wide.dtype), [share.size]);
    const values = betweenNeighbours(b, wide, asked, at, interpolation, ignoring);
    const order = [at, ...shape.flatMap((_, i) => (i === at ? [] : [i]))];
    const inFront = permute(b, values, order);
    const count = share.rank === 0 ? [] : [share.size];
    return cast(b, reshape(b, inFront, [...count, ...left]), x.dtype);
  });
}

/** Quantiles along an axis, in place of it. */
function betweenNeighbours(
  b: GraphBuilder,
  x: Node,
  shares: Node,
  axis: number,
  interpolation: Interpolation,
  ignoring: boolean,
): Node {
  const shape = dims(x).with(axis, dims(shares)[0]!);
  const order = formula.orderOf(b, x, axis, false);
  const sorted = b.add('gather', [x, order], { axis }) as Node;
  const last = dims(x)[axis]! - 1;
  const numbers = countNumbers(b, x, axis);
  const spread = (node: Node): Node => broadcast(b, node, shape);
  const along = spread(formula.alongAxis(b, shares, shape.length, axis));
  const rank = ((): Node => {
    if (ignoring) {
      const top = cast(b, sub(b, numbers, 1), x.dtype);
      return binary(b, 'max', mul(b, along, spread(top)), 0);
    }
    const spoilt = spread(binary(b, 'le', numbers, last));
    return where(b, spoilt, full(b, shape, last, x.dtype), mul(b, along, last));
  })();
  const read = (place: Node): Node =>
    b.add('gather', [sorted, cast(b, formula.stopGradient(b, place), 'i32')], { axis }) as Node;
  switch (interpolation) {
    case 'lower':
      return read(unary(b, 'floor', rank));
    case 'higher':
      return read(unary(b, 'ceil', rank));
    case 'nearest':
      return read(unary(b, 'round', rank));
    case 'linear':
    case 'midpoint': {
      const below = unary(b, 'floor', rank);
      const weight = interpolation === 'midpoint' ? fullLike(b, rank, 0.5) : sub(b, rank, below);
      const [low, high] = [read(below), read(unary(b, 'ceil', rank))];
      const step = sub(b, high, low);
      // From the nearer end, as PyTorch's lerp.
      return where(
        b,
        binary(b, 'lt', weight, 0.5),
        add(b, low, mul(b, weight, step)),
        sub(b, high, mul(b, sub(b, fullLike(b, weight, 1), weight), step)),
      );
    }
  }
}

/**
 * The elements at shares q of the way through the order of all elements or of an axis; the axis of
 * several q comes first. NaN where one is there.
 *
 * @example
 * const x = sn.tensor([[3, 1, 2], [1, 5, 1]]);
 * const q = sn.tensor([0.25, 0.5]);
 * sn.quantile(x, q, 1);
 */
export function quantile(
  x: Tensor,
  q: number | Tensor,
  axis?: number,
  options: QuantileOptions = {},
): Tensor {
  takesQuantile('quantile', x, q, axis, options);
  return quantiles('quantile', x, q, axis, options, false);
}

/**
 * As `quantile`, of the elements that are no NaN.
 *
 * @example
 * const gap = sn.tensor([[1, NaN, 3], [0.5, 4, NaN]]);
 * const q = sn.tensor([0.25, 0.5]);
 * sn.nanquantile(gap, q, 1);
 */
export function nanquantile(
  x: Tensor,
  q: number | Tensor,
  axis?: number,
  options: QuantileOptions = {},
): Tensor {
  takesQuantile('nanquantile', x, q, axis, options);
  return quantiles('nanquantile', x, q, axis, options, true);
}
